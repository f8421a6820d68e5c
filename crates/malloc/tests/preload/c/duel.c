// Two threads and one block. The owner allocates and frees the block's neighbours as fast as it
// can, while the other thread asks for its size, or grows it, interrupted every 20 microseconds.
// This runs at full speed what `steps.c` runs one instruction at a time; COUNT sets the number of
// repetitions.
#define _GNU_SOURCE
#include "check.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

enum { SIZE = 20000, BESIDE = 4, AHEAD = 8 };

static _Atomic(char *) block; // set while the other thread has it
static atomic_bool is_over;

static void interrupt(int signal) { (void)signal; }

static void start_timer(void) {
    CHECK(signal(SIGALRM, interrupt) != SIG_ERR);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    timer_t timer;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    struct itimerspec often = {{0, 20000}, {0, 20000}};
    CHECK(timer_settime(timer, 0, &often, NULL) == 0);
}

// Allocates the neighbours and frees them in reverse order; sometimes fills them and checks their
// contents.
static void flip(int with_contents) {
    char *beside[BESIDE];
    for (int i = 0; i < BESIDE; i++) {
        CHECK((beside[i] = hide(malloc(SIZE))) != NULL);
        if (with_contents) memset(beside[i], 'o', SIZE);
    }
    for (int i = BESIDE - 1; i >= 0; i--) {
        for (size_t j = 0; with_contents && j < SIZE; j += 64) CHECK(beside[i][j] == 'o');
        free(beside[i]);
    }
}

static void *own(void *nothing) {
    while (!is_over) {
        char *ahead[AHEAD];
        for (int i = 0; i < AHEAD; i++) CHECK((ahead[i] = hide(malloc(SIZE))) != NULL);
        char *made = hide(malloc(SIZE));
        CHECK(made != NULL);
        memset(made, 'b', SIZE);
        flip(0);
        atomic_store(&block, made);
        for (unsigned i = 0; atomic_load_explicit(&block, memory_order_relaxed) && !is_over; i++) flip(i % 64 == 63);
        for (int i = 0; i < AHEAD; i++) free(ahead[i]);
    }
    return nothing;
}

static unsigned long count_of(unsigned long usual) {
    const char *text = getenv("COUNT");
    return text ? strtoul(text, NULL, 0) : usual;
}

static char *taken(void) {
    char *now;
    while ((now = atomic_load(&block)) == NULL) sched_yield();
    return now;
}

static void duel(void (*with)(unsigned long), unsigned long usual) {
    pthread_t owner;
    CHECK(!pthread_create(&owner, NULL, own, NULL));
    start_timer();
    with(count_of(usual));
    is_over = 1;
    pthread_join(owner, NULL);
}

static void ask_often(unsigned long count) {
    char *asked = taken();
    size_t told = malloc_usable_size(asked);
    for (unsigned long i = 0; i < 100 * count; i++) {
        size_t now = malloc_usable_size(hide(asked));
        if (now != told) fprintf(stderr, "after %lu: %zu bytes, told were %zu\n", i, now, told);
        CHECK(now == told);
    }
}

static void grow_often(unsigned long count) {
    for (unsigned long i = 0; i < count; i++) {
        char *begun = taken();
        char *grown = realloc(begun, 2 * SIZE);
        CHECK(grown != NULL);
        for (size_t j = 0; j < SIZE; j += 64) CHECK(grown[j] == 'b');
        memset(grown, 'r', 2 * SIZE);
        if (malloc_usable_size(grown) < 2 * SIZE) fprintf(stderr, "after %lu: %zu\n", i, malloc_usable_size(grown));
        CHECK(malloc_usable_size(grown) >= 2 * SIZE);
        free(grown);
        atomic_store(&block, NULL);
    }
}

static void ask(void) { duel(ask_often, 20000); }
static void grow(void) { duel(grow_often, 200); }

static const struct named_case CASES[] = {{"ask", ask}, {"grow", grow}};

int main(int count, char **arguments) {
    (void)count;
    return run_case(CASES, sizeof CASES / sizeof *CASES, arguments);
}
