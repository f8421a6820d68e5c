/* Common parts of the six problems in C: their arguments, threads that may be bound to a core, an
 * array that is incremented, and a hand-over. Threads communicate through shared memory, guarded by
 * a mutex.
 *
 * Arguments: groups, passes, rounds, then a core for each thread in the order in which the threads
 * are made, or none.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef ROWS
#define ROWS 1000
#endif
#define COLUMNS 5
/* Clients of a server, workers of a dispatcher. */
#define AROUND 4
#define THREADS_MAX 64

typedef int grid[ROWS][COLUMNS];

static int groups, passes, rounds;
static char **cores;
static int cores_given;

struct thread {
    pthread_t id;
    void (*body)(int number, void *with);
    int number;
    void *with;
};
static struct thread threads[THREADS_MAX];
static int threads_started;

static void fail(const char *what)
{
    fprintf(stderr, "cannot %s\n", what);
    exit(1);
}

static void *start(void *argument)
{
    struct thread *self = argument;
    self->body(self->number, self->with);
    return NULL;
}

/* Starts a thread; it is bound to its core before it runs. */
static inline void make(void (*body)(int, void *), int number, void *with)
{
    if (threads_started == THREADS_MAX) fail("start so many threads");
    struct thread *thread = &threads[threads_started];
    *thread = (struct thread){.body = body, .number = number, .with = with};
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (threads_started < cores_given) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(atoi(cores[threads_started]), &set);
        pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
    }
    if (pthread_create(&thread->id, &attributes, start, thread)) fail("start a thread on its core");
    pthread_attr_destroy(&attributes);
    threads_started++;
}

static inline void join_all(void)
{
    for (int i = 0; i < threads_started; i++) pthread_join(threads[i].id, NULL);
}

static inline void read_arguments(int count, char **words)
{
    if (count < 4) fail("run without groups, passes and rounds");
    groups = atoi(words[1]);
    passes = atoi(words[2]);
    rounds = atoi(words[3]);
    cores = words + 4;
    cores_given = count - 4;
}

static inline void increment(grid array, int times)
{
    for (int r = 0; r < times; r++)
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++) array[i][j]++;
}

/* Half done, all done: what the first of the components prints. */
static inline void progress(const char *name, int done, int of)
{
    if (done * 2 == of) printf("%s: 50 %%\n", name);
    if (done == of) printf("%s: 100 %%\n", name);
}

/* A value that is handed over: who gives waits until it is taken. Any number may give and take. */
struct slot {
    pthread_mutex_t lock;
    pthread_cond_t filled, emptied, taken;
    bool is_full;
    unsigned long given, got;
    int value;
};

static inline void slot_init(struct slot *slot)
{
    memset(slot, 0, sizeof *slot);
    pthread_mutex_init(&slot->lock, NULL);
    pthread_cond_init(&slot->filled, NULL);
    pthread_cond_init(&slot->emptied, NULL);
    pthread_cond_init(&slot->taken, NULL);
}

static inline void give(struct slot *slot, int value)
{
    pthread_mutex_lock(&slot->lock);
    while (slot->is_full) pthread_cond_wait(&slot->emptied, &slot->lock);
    slot->value = value;
    slot->is_full = true;
    unsigned long mine = ++slot->given;
    pthread_cond_signal(&slot->filled);
    while (slot->got < mine) pthread_cond_wait(&slot->taken, &slot->lock);
    pthread_mutex_unlock(&slot->lock);
}

static inline int take(struct slot *slot)
{
    pthread_mutex_lock(&slot->lock);
    while (!slot->is_full) pthread_cond_wait(&slot->filled, &slot->lock);
    int value = slot->value;
    slot->is_full = false;
    slot->got++;
    /* One whose value it was, and one that waits to give. */
    pthread_cond_broadcast(&slot->taken);
    pthread_cond_signal(&slot->emptied);
    pthread_mutex_unlock(&slot->lock);
    return value;
}
