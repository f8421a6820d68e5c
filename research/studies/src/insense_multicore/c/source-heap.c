/* The source's shared heap, to be preloaded: malloc under one lock, and, with SOURCE_LIST, a list
 * of all blocks ever given out to which each allocation appends a node of its own. The source does
 * not tell how its free path treated the list. Nothing is taken off it here, as its memory grew;
 * with SOURCE_SEARCH a block is searched from the front and taken off, as its private heaps' free
 * does.
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

#ifdef SOURCE_SEARCH
static void take_off(void *block)
{
    struct item *item = first;
    while (item && item->value != block) item = item->next;
    if (!item) return;
    if (item->previous)
        item->previous->next = item->next;
    else
        first = item->next;
    if (item->next)
        item->next->previous = item->previous;
    else
        last = item->previous;
    __libc_free(item);
}
#else
static void take_off(void *block) { (void)block; }
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
    if (block) take_off(block);
    __libc_free(block);
    pthread_mutex_unlock(&lock);
}
