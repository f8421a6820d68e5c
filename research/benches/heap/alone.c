/* Programs of the suite in which every thread keeps to its own blocks. */
#include "heap.h"

typedef struct {
    uint64_t operations, slots, seed, blocks, rounds, threads;
} setting;

/* ---- replace: blocks of skewed sizes at random places, every byte written and read
   ------------- */

static void replace_lane(void *argument, unsigned lane)
{
    const setting *s = argument;
    choices c = {s->seed * THREADS_MAX + lane};
    held *slots = own_memory(s->slots * sizeof *slots);
    for (uint64_t i = 0; i < s->operations; i++) {
        held *slot = &slots[below(&c, s->slots)];
        if (slot->at != NULL) {
            const unsigned char *bytes = slot->at;
            for (size_t at = 0; at < slot->size; at += 16)
                if (bytes[at] != (unsigned char)slot->size)
                    forged(slot->at, slot->size);
            free(slot->at);
        }
        /* Half of the blocks have at most 32 bytes, one in a thousand a page or more. */
        slot->size = (size_t)16 << __builtin_ctzll(draw(&c) | 1 << 9);
        slot->size -= below(&c, slot->size / 2);
        slot->at = malloc(slot->size);
        if (slot->at == NULL)
            fail("there is no block of %zu bytes", slot->size);
        memset(slot->at, (int)slot->size, slot->size);
    }
    for (uint64_t i = 0; i < s->slots; i++)
        free(slots[i].at);
}

int replace(char **arguments)
{
    setting s = {.operations = number(arguments[1]), .slots = number(arguments[2])};
    s.seed = number(arguments[3]);
    tell("seconds", together((unsigned)number(arguments[0]), replace_lane, &s));
    return 0;
}

/* ---- batches: many blocks of a size at once, half of them freed early
   ------------------------- */

static void batches_lane(void *argument, unsigned lane)
{
    enum { MOST = 1600 };
    static const int counts[] = {25, 100, 400, MOST};
    const setting *s = argument;
    void **blocks = own_memory(MOST * sizeof *blocks);
    (void)lane;
    for (uint64_t i = 0; i < s->operations; i++)
        for (size_t size = 16; size <= 1024; size *= 2) {
            int count = counts[(i + size / 16) % 4];
            for (int k = 0; k < count; k++)
                blocks[k] = get(size);
            for (int k = 1; k < count; k += 2)
                put(blocks[k], size);
            for (int k = 1; k < count; k += 2)
                blocks[k] = get(size);
            for (int k = count - 1; k >= 0; k--)
                put(blocks[k], size);
        }
}

int batches(char **arguments)
{
    setting s = {.operations = number(arguments[1])};
    tell("seconds", together((unsigned)number(arguments[0]), batches_lane, &s));
    return 0;
}

/* ---- large: at most 20 blocks of 5 to 25 MB, every page written
   ------------------------------- */

int large(char **arguments)
{
    enum { SLOTS = 20, PAGE = 4096 };
    held slots[SLOTS] = {0};
    uint64_t iterations = number(arguments[0]);
    choices c = {number(arguments[1])};
    double start = now_s();
    for (uint64_t i = 0; i < iterations; i++) {
        held *slot = &slots[below(&c, SLOTS)];
        if (slot->at != NULL)
            put(slot->at, slot->size);
        slot->size = between(&c, 5 << 20, 25 << 20);
        slot->at = get(slot->size);
        for (size_t at = PAGE; at + PAGE < slot->size; at += PAGE)
            ((volatile char *)slot->at)[at] = 1;
    }
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].at != NULL)
            put(slots[i].at, slots[i].size);
    tell("seconds", now_s() - start);
    return 0;
}

/* ---- in-runs: runs of one size after another, freed in four ways
   ------------------------------- */

static void in_runs_lane(void *argument, unsigned lane)
{
    enum { RUN = 50, SIZES = 1000 };
    const setting *s = argument;
    held *blocks = own_memory(s->blocks * sizeof *blocks);
    for (uint64_t round = 0; round < s->rounds; round++) {
        for (uint64_t i = 0; i < s->blocks; i++) {
            size_t size = 1 + (i / RUN * 37 + round * 11 + lane) % SIZES;
            blocks[i] = (held){get(size), size};
        }
        /* Forwards, backwards, the odd ones first, and in strides. */
        uint64_t n = s->blocks, half = n / 2;
        for (uint64_t i = 0; i < n; i++) {
            uint64_t place = i;
            if (round % 4 == 1)
                place = n - 1 - i;
            else if (round % 4 == 2)
                place = i < half ? 2 * i + 1 : 2 * (i - half);
            else if (round % 4 == 3)
                /* 7919 is a prime, and no count of blocks here is one of its multiples. */
                place = i * 7919 % n;
            put(blocks[place].at, blocks[place].size);
        }
    }
}

int in_runs(char **arguments)
{
    setting s = {.blocks = number(arguments[1]), .rounds = number(arguments[2])};
    if (s.blocks == 0 || s.blocks % 7919 == 0)
        fail("%s blocks cannot be freed in strides of 7919", arguments[1]);
    tell("seconds", together((unsigned)number(arguments[0]), in_runs_lane, &s));
    return 0;
}

/* ---- cache-scratch and cache-thrash: do blocks of two threads share a line?
   ------------------- */

typedef struct {
    uint64_t iterations, size, writes;
    /* Blocks that the main thread had one after the other, if the threads are to free them. */
    void *given[THREADS_MAX];
} cache_setting;

static void cache_lane(void *argument, unsigned lane)
{
    const cache_setting *s = argument;
    if (s->given[lane] != NULL)
        put(s->given[lane], s->size);
    for (uint64_t i = 0; i < s->iterations; i++) {
        volatile char *block = malloc(s->size);
        if (block == NULL)
            fail("there is no block of %llu bytes", (unsigned long long)s->size);
        *block = 0;
        for (uint64_t k = 0; k < s->writes; k++)
            *block = (char)(*block + 1);
        if (*block != (char)s->writes)
            forged((void *)block, s->size);
        free((void *)block);
    }
}

/* The same number of writes however many threads share them. */
static int cache(char **arguments, int is_given)
{
    cache_setting s = {number(arguments[1]), number(arguments[2]), number(arguments[3]), {0}};
    unsigned threads = (unsigned)number(arguments[0]);
    if (threads == 0 || threads > THREADS_MAX)
        fail("%u threads; from 1 to %d can be had", threads, THREADS_MAX);
    s.writes /= threads;
    for (unsigned lane = 0; is_given && lane < threads; lane++)
        s.given[lane] = get(s.size);
    tell("seconds", together(threads, cache_lane, &s));
    return 0;
}

int cache_scratch(char **arguments) { return cache(arguments, 1); }

int cache_thrash(char **arguments) { return cache(arguments, 0); }
