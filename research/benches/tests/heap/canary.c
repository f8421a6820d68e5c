/* An allocator with a fault: every block of 600 to 700 bytes is handed out twice. A workload
 * under which this goes unnoticed checks nothing. All other blocks are glibc's. */
#include <stddef.h>
#include <stdint.h>

extern void *__libc_malloc(size_t size);
extern void __libc_free(void *block);

enum { LOW = 600, HIGH = 700, STEP = 1024, COUNT = 1 << 16 };

static _Alignas(16) unsigned char arena[(size_t)STEP * COUNT];
static unsigned next;

void *malloc(size_t size)
{
    if (size < LOW || size > HIGH)
        return __libc_malloc(size);
    unsigned number = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % COUNT;
    return arena + (size_t)STEP * (number / 2);
}

void free(void *block)
{
    if ((uintptr_t)block - (uintptr_t)arena >= sizeof arena)
        __libc_free(block);
}
