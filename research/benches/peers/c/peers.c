/* Peers in C that Hearth's components are measured against: c-peers ROW ROUNDS.
 *
 * ping-pong, stream   two threads, each on a core of its own. A channel is an atomic word, full or
 *                     empty, beside its value; a waiting thread looks at it for a while, then
 *                     sleeps on a futex.
 * line                two threads write a number each, on its own line, as soon as they see
 *                     the other's: about the time of a message to another core and back.
 * memcpy              1 MiB copied between two blocks: no copy through a channel can beat it.
 * burn                plain computing, to see what two processes at the same time reach.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Looks before a sleep: more than a message across two cores takes, about what a futex costs. */
enum { LOOKS = 2000 };

enum { EMPTY, FULL };

/* On cache lines of its own; processors fetch them in pairs. */
typedef struct {
    _Alignas(128) _Atomic uint32_t state;
    _Atomic uint32_t asleep;
    int32_t value;
} channel;

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Until the state is no longer this. Acquire pairs with the release in `become`. */
static inline void wait_while(channel *c, uint32_t state)
{
    for (int looks = 0; looks < LOOKS; looks++) {
        if (atomic_load_explicit(&c->state, memory_order_acquire) != state)
            return;
        relax();
    }
    /* Counted before the kernel looks again: either it sees the new state or `become` sees us. */
    atomic_fetch_add(&c->asleep, 1);
    while (atomic_load(&c->state) == state)
        syscall(SYS_futex, &c->state, FUTEX_WAIT_PRIVATE, state, NULL, NULL, 0);
    atomic_fetch_sub(&c->asleep, 1);
}

static inline void become(channel *c, uint32_t state)
{
    atomic_store(&c->state, state);
    if (atomic_load(&c->asleep) != 0)
        syscall(SYS_futex, &c->state, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* One sender, one receiver; the sender continues when its value has been taken. */
static inline void channel_send(channel *c, int32_t value)
{
    c->value = value;
    become(c, FULL);
    wait_while(c, FULL);
}

static inline int32_t channel_receive(channel *c)
{
    wait_while(c, EMPTY);
    int32_t value = c->value;
    become(c, EMPTY);
    return value;
}

static channel there, back;
static long rounds;
/* The cores the process might use at its start. */
static cpu_set_t allowed;

/* Binds the calling thread to the place-th of them. */
static void keep_on(int place)
{
    if (CPU_COUNT(&allowed) == 0)
        return;
    place %= CPU_COUNT(&allowed);
    cpu_set_t one;
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &allowed) && place-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(core, &one);
            pthread_setaffinity_np(pthread_self(), sizeof one, &one);
            return;
        }
}

static void *pong(void *unused)
{
    keep_on(1);
    for (long i = 0; i < rounds; i++)
        channel_send(&back, channel_receive(&there) + 1);
    return unused;
}

static void *source(void *unused)
{
    keep_on(1);
    for (long i = 1; i <= rounds; i++)
        channel_send(&there, (int32_t)i);
    return unused;
}

static pthread_t beside(void *(*run)(void *))
{
    pthread_t other;
    if (pthread_create(&other, NULL, run, NULL) != 0) {
        fprintf(stderr, "c-peers: no thread\n");
        exit(3);
    }
    keep_on(0);
    return other;
}

static int32_t ping_pong(void)
{
    pthread_t other = beside(pong);
    int32_t value = 0;
    for (long i = 0; i < rounds; i++) {
        channel_send(&there, value);
        value = channel_receive(&back);
    }
    pthread_join(other, NULL);
    return value;
}

static void see(channel *c, int32_t value)
{
    while (atomic_load_explicit(&c->state, memory_order_acquire) != (uint32_t)value)
        relax();
}

static void *reflect(void *unused)
{
    keep_on(1);
    for (long i = 1; i <= rounds; i++) {
        see(&there, (int32_t)i);
        atomic_store_explicit(&back.state, (uint32_t)i, memory_order_release);
    }
    return unused;
}

static int32_t line(void)
{
    pthread_t other = beside(reflect);
    for (long i = 1; i <= rounds; i++) {
        atomic_store_explicit(&there.state, (uint32_t)i, memory_order_release);
        see(&back, (int32_t)i);
    }
    pthread_join(other, NULL);
    return (int32_t)rounds;
}

static int32_t stream(void)
{
    pthread_t other = beside(source);
    uint32_t sum = 0;
    for (long i = 0; i < rounds; i++)
        sum += (uint32_t)channel_receive(&there);
    pthread_join(other, NULL);
    return (int32_t)sum;
}

/* As copy-1m.isf, without components. */
static int32_t copy(void)
{
    enum { LENGTH = 262144 };
    int32_t *block = malloc(LENGTH * sizeof *block), *other = malloc(LENGTH * sizeof *other);
    if (!block || !other)
        exit(3);
    for (int i = 0; i < LENGTH; i++)
        block[i] = 1;
    uint32_t sum = 0;
    for (long i = 1; i <= rounds; i++) {
        block[i % LENGTH] = (int32_t)i;
        memcpy(other, block, LENGTH * sizeof *block);
        /* The compiler must not see through the copy. */
        __asm__ volatile("" : : "r"(other) : "memory");
        sum += (uint32_t)other[i % LENGTH] + (uint32_t)other[LENGTH - 1];
    }
    free(block);
    free(other);
    return (int32_t)sum;
}

/* A million steps a round, each of which needs the one before. */
static int32_t burn(void)
{
    uint32_t x = 1;
    for (long i = 0; i < rounds * 1000000; i++) {
        x = x * 1664525u + 1013904223u;
        __asm__ volatile("" : "+r"(x));
    }
    return (int32_t)x;
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        int32_t (*run)(void);
    } rows[] = {
        {"ping-pong", ping_pong}, {"stream", stream}, {"line", line},
        {"memcpy", copy}, {"burn", burn}};
    /* If the system does not report the cores, it keeps choosing them. */
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        CPU_ZERO(&allowed);
    if (count == 3) {
        rounds = strtol(words[2], NULL, 10);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            if (strcmp(words[1], rows[i].name) == 0) {
                printf("%d\n", rows[i].run());
                return 0;
            }
    }
    fprintf(stderr, "usage: c-peers ROW ROUNDS\n");
    return 2;
}
