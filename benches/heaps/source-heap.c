/* The source's shared heap, to be preloaded: malloc under one lock, and, with SOURCE_LIST, a list of all
 * blocks ever given out to which each allocation appends a node of its own. The source does not tell
 * how its free path treated the list; nothing is taken off it here, as its memory grew.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void __libc_free(void *);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#ifdef SOURCE_LIST
struct item {
    void *value;
    struct item *previous, *next;
};
static struct item *first, *last;

static void append(void *block)
{
    struct item *item = __libc_malloc(sizeof *item);
    if (!item) return;
    *item = (struct item){block, last, NULL};
    if (last)
        last->next = item;
    else
        first = item;
    last = item;
}
#else
static void append(void *block) { (void)block; }
#endif

void *malloc(size_t size)
{
    pthread_mutex_lock(&lock);
    void *block = __libc_malloc(size);
    append(block);
    pthread_mutex_unlock(&lock);
    return block;
}

void *calloc(size_t count, size_t size)
{
    pthread_mutex_lock(&lock);
    void *block = __libc_calloc(count, size);
    append(block);
    pthread_mutex_unlock(&lock);
    return block;
}

void free(void *block)
{
    pthread_mutex_lock(&lock);
    __libc_free(block);
    pthread_mutex_unlock(&lock);
}
