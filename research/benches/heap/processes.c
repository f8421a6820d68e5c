/* Threads that come and go, forks in the middle of things, and the start of programs. */
#define _GNU_SOURCE
#include "heap.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- thread-churn: what is left of a thread that has ended, besides ten blocks
   ---------------- */

static void *short_life(void *unused)
{
    enum { LEFT = 10, FREED = 90 };
    held freed[FREED];
    for (int i = 0; i < FREED; i++) {
        freed[i].size = 16 + (size_t)i * 5;
        freed[i].at = get(freed[i].size);
    }
    for (int i = 0; i < LEFT; i++)
        /* Nothing refers to them any more: the reported growth includes them. Glibc's blocks for 24
         * bytes have 32, and so have most others' that keep to multiples of 16. */
        get(24);
    for (int i = 0; i < FREED; i++)
        put(freed[i].at, freed[i].size);
    return unused;
}

int thread_churn(char **arguments)
{
    /* Threads before the measured ones: the first threads pay for one-time set-up. */
    enum { FIRST = 50 };
    uint64_t threads = number(arguments[0]), base = 0;
    double start = 0;
    for (uint64_t i = 0; i < threads + FIRST; i++) {
        pthread_t thread;
        if (i == FIRST) {
            base = resident();
            start = now_s();
        }
        if (pthread_create(&thread, NULL, short_life, NULL) != 0)
            fail("no thread");
        pthread_join(thread, NULL);
    }
    tell("us", (now_s() - start) / (double)threads * 1e6);
    tell("growth-mb", ((double)resident() - (double)base) / 1048576);
    return 0;
}

/* ---- fork-churn: is a child able to allocate, whatever the others were doing?
   ----------------- */

static atomic_int is_over;

static void *churn(void *seed)
{
    enum { SLOTS = 1000 };
    choices c = {*(uint64_t *)seed};
    held *slots = own_memory(SLOTS * sizeof *slots);
    while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
        held *slot = &slots[below(&c, SLOTS)];
        if (slot->at != NULL)
            put(slot->at, slot->size);
        slot->size = mixed_size(&c);
        slot->at = get(slot->size);
    }
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].at != NULL)
            put(slots[i].at, slots[i].size);
    return NULL;
}

static void child(uint64_t seed)
{
    enum { BLOCKS = 200 };
    choices c = {seed};
    held blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i].size = mixed_size(&c);
        blocks[i].at = get(blocks[i].size);
    }
    for (int i = 0; i < BLOCKS; i++)
        put(blocks[i].at, blocks[i].size);
    _exit(0);
}

/* Did it end well within three seconds? Otherwise it is killed. */
static int ends_in_time(pid_t one)
{
    double start = now_s();
    struct timespec moment = {0, 20000};
    int status;
    for (;;) {
        pid_t ended = waitpid(one, &status, WNOHANG);
        if (ended == one && WIFEXITED(status) && WEXITSTATUS(status) == 0)
            return 1;
        if (ended == one || ended < 0)
            fail("a child ended with status %d", ended < 0 ? errno : status);
        if (now_s() - start > 3) {
            kill(one, SIGKILL);
            waitpid(one, &status, 0);
            return 0;
        }
        nanosleep(&moment, NULL);
    }
}

int fork_churn(char **arguments)
{
    /* More would take minutes and tell nothing more. */
    enum { THREADS = 2, HANGS_MAX = 3 };
    uint64_t children = number(arguments[0]), seeds[THREADS], done = 0;
    pthread_t threads[THREADS];
    int hangs = 0;
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = number(arguments[1]) * 100 + (uint64_t)i;
        if (pthread_create(&threads[i], NULL, churn, &seeds[i]) != 0)
            fail("no thread");
    }
    double start = now_s();
    for (; done < children && hangs < HANGS_MAX; done++) {
        pid_t one = fork();
        if (one < 0)
            fail("no child");
        if (one == 0)
            child(done);
        hangs += !ends_in_time(one);
    }
    double seconds = now_s() - start;
    atomic_store(&is_over, 1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    tell("children", (double)done);
    tell("hangs", hangs);
    tell("us", seconds / (double)done * 1e6);
    return 0;
}

/* ---- launch: any program under an allocator, and the most that was resident of it
   -------------- */

/* The system counts memory of a program's parent, too: this one has next to nothing, and the
 * library is preloaded in the child alone. The last line on standard error has the figures. */
int launch(char **arguments)
{
    double start = now_s();
    pid_t one = fork();
    if (one < 0)
        fail("no child");
    if (one == 0) {
        /* A signal that kills us is meant for the program. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (strcmp(arguments[0], "-") != 0)
            setenv("LD_PRELOAD", arguments[0], 1);
        execvp(arguments[1], arguments + 1);
        fail("cannot start %s: %s", arguments[1], strerror(errno));
    }
    struct rusage used;
    int status;
    if (wait4(one, &status, 0, &used) != one)
        fail("%s is lost", arguments[1]);
    double seconds = now_s() - start;
    fprintf(stderr, "\nlaunched %.9f %ld\n", seconds, used.ru_maxrss);
    if (WIFSIGNALED(status))
        fail("%s ended by signal %d", arguments[1], WTERMSIG(status));
    return WEXITSTATUS(status);
}
