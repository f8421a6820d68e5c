/* Shared parts of the workloads for allocators: seeded choices, signed blocks, clocks, memory,
 * threads.
 *
 * Every block that is looked at again is signed when it is allocated and examined before it is
 * freed, so that an allocator that hands out a block twice, or less than was asked for, ends the
 * program. A workload maps its own data and never allocates it: the allocator sees only what is
 * measured.
 */
#ifndef HEAP_H
#define HEAP_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program with a message. */
_Noreturn void fail(const char *form, ...) __attribute__((format(printf, 1, 2)));

/* ---- seeded choices: splitmix64 ------------------------------------------------------------- */

typedef struct {
    uint64_t state;
} choices;

static inline uint64_t draw(choices *c)
{
    uint64_t z = c->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* From 0 to limit - 1. */
static inline uint64_t below(choices *c, uint64_t limit)
{
    return (uint64_t)(((unsigned __int128)draw(c) * limit) >> 64);
}

/* Both included. */
static inline uint64_t between(choices *c, uint64_t low, uint64_t high)
{
    return low + below(c, high - low + 1);
}

/* Every power of two within is as likely as every other. */
size_t log_uniform(choices *c, double low, double high);
/* 85 of 100 are 16 B to 1 KiB, 13 are 1 to 32 KiB, 2 are 32 to 512 KiB. */
size_t mixed_size(choices *c);
/* The thesis' pooled distribution of block sizes (its table 4.10, from the histograms), up
   to 1 KiB. */
size_t real_time_size(choices *c);

/* ---- blocks --------------------------------------------------------------------------------- */

/* Signature of a block at this address, of this size: two that overlap cannot both keep theirs. */
static inline uint64_t signature(const void *block, size_t size)
{
    return ((uint64_t)(uintptr_t)block ^ (uint64_t)size << 48) * 0x9e3779b97f4a7c15u;
}

static inline void sign(void *block, size_t size)
{
    uint64_t mark = signature(block, size);
    unsigned char *bytes = block;
    memcpy(bytes, &mark, size < sizeof mark ? size : sizeof mark);
    if (size > sizeof mark)
        bytes[size - 1] = (unsigned char)(mark >> 56);
}

_Noreturn void forged(const void *block, size_t size);

static inline void examine(const void *block, size_t size)
{
    uint64_t mark = signature(block, size);
    const unsigned char *bytes = block;
    if (memcmp(bytes, &mark, size < sizeof mark ? size : sizeof mark) != 0 ||
        (size > sizeof mark && bytes[size - 1] != (unsigned char)(mark >> 56)))
        forged(block, size);
}

/* A signed block, or the end. */
static inline void *get(size_t size)
{
    void *block = malloc(size);
    if (block == NULL)
        fail("there is no block of %zu bytes", size);
    sign(block, size);
    return block;
}

/* Examines, and takes the signature away: another holder of this block finds it missing. */
static inline void examine_last(void *block, size_t size)
{
    examine(block, size);
    *(unsigned char *)block ^= 0xff;
}

/* Examines and frees. */
static inline void put(void *block, size_t size)
{
    examine_last(block, size);
    free(block);
}

/* A block and the size requested. */
typedef struct {
    void *at;
    size_t size;
} held;

/* Touched memory that no allocator knows of, zero. */
void *own_memory(size_t bytes);

/* ---- clocks and memory ---------------------------------------------------------------------- */

double now_s(void);

/* Cycles of the time-stamp counter, or ticks of the processor's substitute. Nothing before
 * `ticks_begin` is still under way after it, and nothing after `ticks_end` has begun before it. */
static inline uint64_t ticks_begin(void)
{
#if defined(__x86_64__)
    uint32_t low, high;
    __asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high)::"memory");
    return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks)::"memory");
    return ticks;
#else
    return (uint64_t)(now_s() * 1e9);
#endif
}

static inline uint64_t ticks_end(void)
{
#if defined(__x86_64__)
    uint32_t low, high, core;
    __asm__ volatile("rdtscp\n\tlfence" : "=a"(low), "=d"(high), "=c"(core)::"memory");
    return (uint64_t)high << 32 | low;
#else
    return ticks_begin();
#endif
}

/* Resident bytes of this process now. */
uint64_t resident(void);
/* As many as are free in the system. */
uint64_t available(void);

/* ---- threads -------------------------------------------------------------------------------- */

enum { THREADS_MAX = 64, LINE = 128 };

static inline void relax(unsigned *looks)
{
    extern int sched_yield(void);
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    /* There may be fewer cores than threads. */
    if (++*looks % 1024 == 0)
        sched_yield();
}

/* A barrier at which `count` threads wait for each other, again and again. */
typedef struct {
    _Alignas(LINE) atomic_uint here;
    _Alignas(LINE) atomic_uint turn;
    unsigned count;
} meeting;

void meet(meeting *m);

/* Runs `work(argument, 0)` to `work(argument, count - 1)`, each on a thread: seconds from the
 * moment when all were there until the last had ended. */
double together(unsigned count, void (*work)(void *, unsigned), void *argument);

/* ---- what a workload says ------------------------------------------------------------------- */

/* A line `name value` for the harness. */
void tell(const char *name, double value);

/* A number of the command line. */
uint64_t number(const char *text);

/* Ticks go to files: words of 32 bits, the machine's own byte order. */
int file_begin(const char *path);
void file_words(int file, const uint32_t *words, size_t count);

/* Workloads: arguments after the name. How many each has stands in main.c. */
int fast(char **arguments);
int latency(char **arguments);
int burst(char **arguments);
int fragment(char **arguments);
int thread_churn(char **arguments);
int fork_churn(char **arguments);
int larson(char **arguments);
int hand_over(char **arguments);
int stress(char **arguments);
int short_lives(char **arguments);
int random_pool(char **arguments);
int cache_scratch(char **arguments);
int cache_thrash(char **arguments);
int replace(char **arguments);
int batches(char **arguments);
int large(char **arguments);
int in_runs(char **arguments);
int in_shifts(char **arguments);
int launch(char **arguments);

#endif
