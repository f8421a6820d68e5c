/* Implements heap.h; holds nothing of any workload. */
#define _GNU_SOURCE
#include "heap.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Prints it without allocating: the allocator may be broken. */
_Noreturn void fail(const char *form, ...)
{
    char text[256] = "heap: ";
    va_list rest;
    va_start(rest, form);
    int used = vsnprintf(text + 6, sizeof text - 7, form, rest);
    va_end(rest);
    size_t length = 6 + (used < 0 ? 0 : (size_t)used);
    length = length < sizeof text - 1 ? length : sizeof text - 2;
    text[length++] = '\n';
    if (write(2, text, length) < 0)
        _exit(2);
    _exit(1);
}

_Noreturn void forged(const void *block, size_t size)
{
    fail("the block of %zu bytes at %p is not as it was left", size, (const void *)block);
}

size_t log_uniform(choices *c, double low, double high)
{
    double part = (double)(draw(c) >> 11) * 0x1p-53;
    return (size_t)(low * exp(part * log(high / low)));
}

size_t mixed_size(choices *c)
{
    uint64_t kind = below(c, 100);
    if (kind < 85)
        return log_uniform(c, 16, 1024);
    return kind < 98 ? log_uniform(c, 1024, 32768) : log_uniform(c, 32768, 524288);
}

size_t real_time_size(choices *c)
{
    /* How many of 10,000 blocks have at most 8, 16, 32 ... bytes. The labels are upper edges. */
    static const uint16_t until[] = {753, 3719, 4448, 8900, 9450, 9694, 9853, 9904};
    uint64_t place = below(c, until[7]);
    size_t high = 8;
    for (int bin = 0; place >= until[bin]; bin++)
        high *= 2;
    return high == 8 ? between(c, 1, 8) : between(c, high / 2 + 1, high);
}

void *own_memory(size_t bytes)
{
    void *at = mmap(NULL, bytes == 0 ? 1 : bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (at == MAP_FAILED)
        fail("the system has no %zu bytes: %s", bytes, strerror(errno));
    return at;
}

double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The first bytes of a file of /proc. */
static void peruse(const char *path, char *text, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : read(file, text, size - 1);
    if (got < 0)
        fail("%s: %s", path, strerror(errno));
    text[got] = 0;
    close(file);
}

uint64_t resident(void)
{
    char text[128];
    unsigned long all, here;
    peruse("/proc/self/statm", text, sizeof text);
    if (sscanf(text, "%lu %lu", &all, &here) != 2)
        fail("/proc/self/statm says %s", text);
    return (uint64_t)here * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t available(void)
{
    char text[1024];
    unsigned long kib;
    peruse("/proc/meminfo", text, sizeof text);
    const char *line = strstr(text, "MemAvailable:");
    if (line == NULL || sscanf(line, "MemAvailable: %lu", &kib) != 1)
        fail("/proc/meminfo does not tell what is available");
    return (uint64_t)kib * 1024;
}

/* `here` counts arrivals; the last of them begins the next turn. Its release pairs with the acquire
 * of those that wait: all that was done before is seen after. */
void meet(meeting *m)
{
    unsigned looks = 0;
    unsigned turn = atomic_load_explicit(&m->turn, memory_order_acquire);
    if (atomic_fetch_add_explicit(&m->here, 1, memory_order_acq_rel) + 1 == m->count) {
        atomic_store_explicit(&m->here, 0, memory_order_relaxed);
        atomic_store_explicit(&m->turn, turn + 1, memory_order_release);
    } else {
        while (atomic_load_explicit(&m->turn, memory_order_acquire) == turn)
            relax(&looks);
    }
}

typedef struct {
    meeting *all;
    void (*work)(void *, unsigned);
    void *argument;
    unsigned number;
    /* Taken by the lane itself: its starter may not have a core just then. */
    double begin_s, end_s;
} lane;

static void *run_lane(void *given)
{
    lane *mine = given;
    meet(mine->all);
    mine->begin_s = now_s();
    mine->work(mine->argument, mine->number);
    mine->end_s = now_s();
    return NULL;
}

double together(unsigned count, void (*work)(void *, unsigned), void *argument)
{
    static lane lanes[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    meeting all = {.count = count};
    if (count == 0 || count > THREADS_MAX)
        fail("%u threads; from 1 to %d can be had", count, THREADS_MAX);
    for (unsigned i = 0; i < count; i++) {
        lanes[i] = (lane){&all, work, argument, i, 0, 0};
        int wrong = pthread_create(&threads[i], NULL, run_lane, &lanes[i]);
        if (wrong != 0)
            fail("no thread: %s", strerror(wrong));
    }
    double begin_s = 1e300, end_s = 0;
    for (unsigned i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        begin_s = lanes[i].begin_s < begin_s ? lanes[i].begin_s : begin_s;
        end_s = lanes[i].end_s > end_s ? lanes[i].end_s : end_s;
    }
    return end_s - begin_s;
}

void tell(const char *name, double value)
{
    char text[128];
    int length = snprintf(text, sizeof text, "%s %.17g\n", name, value);
    if (length < 0 || write(1, text, (size_t)length) != length)
        fail("cannot say %s", name);
}

uint64_t number(const char *text)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text == 0 || *end != 0 || errno != 0)
        fail("'%s' is no number", text);
    return value;
}

int file_begin(const char *path)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0)
        fail("%s: %s", path, strerror(errno));
    return file;
}

void file_words(int file, const uint32_t *words, size_t count)
{
    const char *at = (const char *)words;
    size_t left = count * sizeof *words;
    while (left > 0) {
        ssize_t wrote = write(file, at, left);
        if (wrote <= 0)
            fail("cannot write what was measured: %s", strerror(errno));
        at += wrote;
        left -= (size_t)wrote;
    }
}
