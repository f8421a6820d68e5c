/* The source's private heaps, to be preloaded: each thread but the first has one mapping of
 * 4,000,980 bytes, given out first fit from a list of free blocks in the order of their addresses.
 *
 *   block   | words that follow | payload ...                     |
 *   free    | words that follow | ...      | index of next free   |
 *
 * A heap is an array of words of 4 bytes, and the index after its last word ends the list. The
 * first thread has malloc, as in the source. What was mended: free finds the heap that holds a
 * block rather than the calling thread's, and a block of another thread's goes to a stack that its
 * owner empties; a free block is merged on both sides; it has room for its two words; the thread's
 * heap is found by a thread-local pointer rather than by a search, and payloads begin at multiples
 * of 16, as programs of today need. A heap that is full, or a second one than there is room for,
 * makes malloc's blocks.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

enum {
    HEAP_BYTES = 4000980,
    WORDS = HEAP_BYTES / 4 / 4 * 4,
    /* The head lies in the last word before a multiple of 16. */
    HEAD = 3,
    HEAPS_MAX = 256,
};

struct heap {
    uint32_t *words;
    uint32_t available;
    /* Blocks that other threads freed; each holds the address of the next. */
    _Atomic(void *) returned;
};

static struct heap heaps[HEAPS_MAX];
static _Atomic int heap_count;
/* All heaps lie in one range of addresses, so that a block's heap is found by division. */
static _Atomic(char *) range;
static const size_t STRIDE = (HEAP_BYTES + 4095) / 4096 * 4096;
static __thread struct heap *own __attribute__((tls_model("initial-exec")));
static __thread int is_settled __attribute__((tls_model("initial-exec")));

static void settle(void)
{
    is_settled = 1;
    if (getpid() == syscall(SYS_gettid)) return;
    int number = atomic_fetch_add(&heap_count, 1);
    if (number >= HEAPS_MAX) return;
    char *base = atomic_load(&range);
    if (!base) {
        char *fresh = mmap(NULL, STRIDE * HEAPS_MAX, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (fresh == MAP_FAILED) return;
        if (atomic_compare_exchange_strong(&range, &base, fresh))
            base = fresh;
        else
            munmap(fresh, STRIDE * HEAPS_MAX);
    }
    struct heap *heap = &heaps[number];
    heap->words = (uint32_t *)(base + STRIDE * number);
    heap->available = HEAD;
    heap->words[HEAD] = WORDS - 1 - HEAD;
    heap->words[WORDS - 1] = WORDS;
    own = heap;
}

static uint32_t end_of(struct heap *heap, uint32_t block) { return block + heap->words[block]; }

static uint32_t *next_of(struct heap *heap, uint32_t block) { return &heap->words[end_of(heap, block)]; }

static void *take(struct heap *heap, size_t size)
{
    if (size > HEAP_BYTES) return NULL;
    /* With its head a multiple of four words. */
    uint32_t need = (uint32_t)((size + 3) / 4 + 1 + 3) / 4 * 4 - 1;
    uint32_t *link = &heap->available;
    for (uint32_t block = *link; block != WORDS; link = next_of(heap, block), block = *link) {
        uint32_t has = heap->words[block];
        if (has < need) continue;
        uint32_t rest = has - need;
        if (rest < 4) {
            *link = *next_of(heap, block);
        } else {
            uint32_t left = block + need + 1;
            heap->words[block] = need;
            /* Its last word, with the link, is where it was. */
            heap->words[left] = rest - 1;
            *link = left;
        }
        return &heap->words[block + 1];
    }
    return NULL;
}

static void give_back(struct heap *heap, void *payload)
{
    uint32_t block = (uint32_t)((uint32_t *)payload - heap->words) - 1;
    uint32_t before = WORDS, after = heap->available;
    while (after < block) {
        before = after;
        after = *next_of(heap, after);
    }
    if (after != WORDS && end_of(heap, block) + 1 == after) {
        uint32_t next = *next_of(heap, after);
        heap->words[block] += heap->words[after] + 1;
        after = next;
    }
    *next_of(heap, block) = after;
    if (before == WORDS) {
        heap->available = block;
    } else if (end_of(heap, before) + 1 == block) {
        heap->words[before] += heap->words[block] + 1;
    } else {
        *next_of(heap, before) = block;
    }
}

static struct heap *heap_of(void *block)
{
    char *base = atomic_load_explicit(&range, memory_order_relaxed);
    size_t offset = (size_t)((char *)block - base);
    if (!base || offset >= STRIDE * HEAPS_MAX) return NULL;
    return &heaps[offset / STRIDE];
}

static void collect(struct heap *heap)
{
    void *block = atomic_exchange(&heap->returned, NULL);
    while (block) {
        void *next = *(void **)block;
        give_back(heap, block);
        block = next;
    }
}

/* Built with -fno-builtin: else the compiler makes calloc of malloc and memset, even in calloc. */
static void *allocate(size_t size)
{
    if (!is_settled) settle();
    struct heap *heap = own;
    if (heap) {
        if (atomic_load_explicit(&heap->returned, memory_order_relaxed)) collect(heap);
        void *block = take(heap, size ? size : 1);
        if (block) return block;
    }
    return __libc_malloc(size);
}

void *malloc(size_t size) { return allocate(size); }

void free(void *block)
{
    struct heap *heap = heap_of(block);
    if (!heap) {
        __libc_free(block);
    } else if (heap == own) {
        give_back(heap, block);
    } else {
        void *head = atomic_load(&heap->returned);
        do {
            *(void **)block = head;
        } while (!atomic_compare_exchange_weak(&heap->returned, &head, block));
    }
}

void *calloc(size_t count, size_t size)
{
    if (!is_settled) settle();
    size_t bytes;
    if (!own || __builtin_mul_overflow(count, size, &bytes)) return __libc_calloc(count, size);
    void *block = allocate(bytes);
    return block ? memset(block, 0, bytes) : NULL;
}

void *realloc(void *block, size_t size)
{
    struct heap *heap = heap_of(block);
    if (!heap) return __libc_realloc(block, size);
    void *larger = allocate(size);
    if (!larger) return NULL;
    size_t had = 4 * (size_t)((uint32_t *)block)[-1];
    memcpy(larger, block, had < size ? had : size);
    free(block);
    return larger;
}

/* The C library's looks into a head that blocks here do not have. */
size_t malloc_usable_size(void *block)
{
    static size_t (*_Atomic of_library)(void *);
    if (!block) return 0;
    if (heap_of(block)) return 4 * (size_t)((uint32_t *)block)[-1];
    size_t (*usable)(void *) = atomic_load(&of_library);
    if (!usable) {
        usable = (size_t (*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
        atomic_store(&of_library, usable);
    }
    return usable(block);
}
