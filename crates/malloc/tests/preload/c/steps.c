// Single-steps one thread while it asks for the size of another thread's block, grows, shrinks or
// frees it. Between any two of its instructions, the owner allocates or frees the blocks next to
// it.
//
// The processor's trap flag stops the thread after each instruction, and its handler has the owner
// make a change where the schedule says so. No interleaving depends on chance: a schedule that
// fails once fails in every run.
#define _GNU_SOURCE
#include "check.h"

#include <linux/futex.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <ucontext.h>

#if defined(__x86_64__)
#define TRAP 0x100
static inline void begin_steps(void) {
    // Skips the red zone below the stack pointer, which belongs to the compiler.
    __asm__ volatile("lea -128(%%rsp), %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n"
                     "lea 128(%%rsp), %%rsp" ::: "memory", "cc");
}
static inline void end_steps(void) {
    __asm__ volatile("lea -128(%%rsp), %%rsp\n pushfq\n andq $~0x100, (%%rsp)\n popfq\n"
                     "lea 128(%%rsp), %%rsp" ::: "memory", "cc");
}
#endif

// ---- the owner -------------------------------------------------------------------------------

// A request to the owner, which stores NOTHING when it is done.
enum request { NOTHING, MAKE, FLIP, END };
static _Atomic uint32_t request;

enum { BESIDE_MAX = 12, AHEAD = 64 };

struct scenario {
    size_t size;   // of the block
    size_t beside; // of the neighbours
    int count;     // of neighbours
};

// Changes this many instructions apart or fewer count as near each other.
enum { NEAR = 4 };
// Instructions single-stepped in an operation: after them comes a copy, one step per round of a
// loop. A free fills the block later than realloc reads it.
enum { STEPS_MAX = 140, STEPS_OF_FREE_MAX = 240 };

static const struct scenario *scene;
static char *block;        // the block under test
static char *ahead[AHEAD]; // blocks of the same size, kept throughout the scenario
static char *beside[BESIDE_MAX];
static int are_there;      // whether the neighbours exist

static void fill(char *at, size_t size, char mark) { memset(at, mark, size); }

static void verify(const char *at, size_t size, char mark, const char *whose) {
    for (size_t i = 0; i < size; i++) {
        if (at[i] == mark) continue;
        fprintf(stderr, "%s: byte %zu of %zu at %p is '%c', not '%c'\n", whose, i, size, (void *)at, at[i], mark);
        exit(1);
    }
}

static void flip(void) {
    if (are_there) {
        for (int i = scene->count - 1; i >= 0; i--) {
            verify(beside[i], scene->beside, 'o', "beside");
            free(beside[i]);
        }
    } else {
        for (int i = 0; i < scene->count; i++) {
            beside[i] = hide(malloc(scene->beside));
            CHECK(beside[i] != NULL);
            fill(beside[i], scene->beside, 'o');
        }
    }
    are_there = !are_there;
}

static void wait_while(_Atomic uint32_t *word, uint32_t is) {
    while (atomic_load(word) == is) syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, is, NULL, NULL, 0);
}

// Allocates the block, if possible one that ends where another will begin.
static void make(void) {
    for (int i = 0; i < AHEAD; i++)
        if (ahead[i] == NULL) CHECK((ahead[i] = hide(malloc(scene->size))) != NULL);
    if (!are_there) flip();
    int best = AHEAD - 1;
    for (int i = 0; i < AHEAD; i++)
        for (int j = 0; j < scene->count; j++)
            if (ahead[i] + malloc_usable_size(ahead[i]) == beside[j]) best = i;
    flip();
    block = ahead[best];
    ahead[best] = NULL;
    fill(block, scene->size, 'b');
}

static void *own(void *nothing) {
    for (;;) {
        wait_while(&request, NOTHING);
        uint32_t now = atomic_load(&request);
        if (now == MAKE) {
            make();
        } else if (now == FLIP) {
            flip();
        } else {
            for (int i = 0; i < AHEAD; i++) {
                free(ahead[i]);
                ahead[i] = NULL;
            }
        }
        atomic_store(&request, NOTHING);
        syscall(SYS_futex, &request, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        if (now == END) return nothing;
    }
}

static void ask_owner(enum request for_what) {
    atomic_store(&request, for_what);
    syscall(SYS_futex, &request, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    wait_while(&request, for_what);
}

// ---- the other thread ------------------------------------------------------------------------

// The owner makes a change after these instructions, counted from 1. 0 means never.
enum { CHANGES = 3 };
static int schedule[CHANGES];
static volatile int step;
static int next_change;
static int steps_max;
static int is_measuring;

#if defined(__x86_64__)
static void stepped(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    step++;
    while (next_change < CHANGES && schedule[next_change] == step) {
        next_change++;
        ask_owner(FLIP);
    }
    if (step >= steps_max || (next_change == CHANGES && !is_measuring)) ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP;
}
#endif

static size_t told;      // usable size when the block was allocated
static char *grown;      // the block after the operation
static size_t answer;

// Pointers, so that no step belongs to the dynamic linker.
static size_t (*ask)(void *) = malloc_usable_size;
static void *(*resize)(void *, size_t) = realloc;
static void (*give_back)(void *) = free;

static void ask_size(void) { answer = ask(block); }
static void grow(void) { grown = resize(block, 2 * scene->size); }
static void shrink(void) { grown = resize(block, scene->size / 3 + 1); }
static void release(void) { give_back(block); }

struct operation {
    const char *name;
    void (*run)(void);
    size_t (*size_after)(void); // size of the block afterwards; NULL if it is freed
};
static size_t twice(void) { return 2 * scene->size; }
static size_t third(void) { return scene->size / 3 + 1; }
static size_t same(void) { return scene->size; }

// Runs the operation with the changes of the schedule, then checks all blocks.
static void run_schedule(const struct operation *operation) {
    if (operation->run != ask_size || block == NULL) {
        ask_owner(MAKE);
        told = malloc_usable_size(block);
        CHECK(told >= scene->size);
    }
    grown = block;
    next_change = 0;
    step = 0;
#if defined(__x86_64__)
    begin_steps();
    operation->run();
    end_steps();
#endif
    if (operation->run == ask_size) {
        if (answer != told) fprintf(stderr, "a block of %zu bytes has %zu\n", told, answer);
        CHECK(answer == told);
        return;
    }
    size_t size = operation->size_after ? operation->size_after() : 0;
    if (size == 0) return;
    size_t kept = size < scene->size ? size : scene->size;
    CHECK(grown != NULL);
    verify(grown, kept, 'b', "moved");
    if (malloc_usable_size(grown) < size)
        fprintf(stderr, "%p was made %zu long and has %zu\n", (void *)grown, size, malloc_usable_size(grown));
    CHECK(malloc_usable_size(grown) >= size);
    fill(grown, size, 'r');
    // A block that overlaps with it exists now or after the next flip.
    ask_owner(FLIP);
    verify(grown, size, 'r', "grown");
    ask_owner(FLIP);
    free(grown);
}

static int is_told;

static void complain(const struct operation *operation) {
    if (is_told++) return;
    fprintf(stderr, "%s of %zu, %d of %zu beside: changes behind instructions %d, %d and %d\n", operation->name,
            scene->size, scene->count, scene->beside, schedule[0], schedule[1], schedule[2]);
}

static const struct operation *now;
static void at_exit(void) {
    if (now) complain(now);
}

static void run_scene(const struct operation *operation, int schedules_max, uint64_t *state) {
    pthread_t owner;
    now = operation;
    for (int begins_full = 0; begins_full < 2; begins_full++) {
        block = NULL;
        are_there = 0;
        CHECK(!pthread_create(&owner, NULL, own, NULL));
        if (operation->run == ask_size) ask_owner(MAKE), told = malloc_usable_size(block);
        // The first flips fault memory in.
        ask_owner(FLIP);
        ask_owner(FLIP);
        if (are_there != begins_full) ask_owner(FLIP);
        memset(schedule, 0, sizeof schedule);
        steps_max = operation->run == release ? STEPS_OF_FREE_MAX : STEPS_MAX;
        is_measuring = 1;
        run_schedule(operation);
        is_measuring = 0;
        int length = step < steps_max ? step : steps_max;
        CHECK(length > 10);
        long pairs = (long)length * (length - 1) / 2;
        for (int first = 1; first < length; first++) {
            for (int second = first + 1; second <= length; second++) {
                // All schedules whose changes are near each other, and some of the others.
                int is_near = second - first <= NEAR;
                int is_drawn = (long)(next_random(state) % (uint64_t)pairs) < schedules_max;
                if (!is_near && !is_drawn) continue;
                schedule[0] = first;
                schedule[1] = second;
                schedule[2] = second + 1 + (int)(next_random(state) % 4);
                run_schedule(operation);
                // Restores the initial state.
                if (are_there != begins_full) ask_owner(FLIP);
            }
        }
        if (are_there) ask_owner(FLIP);
        if (operation->run == ask_size) free(block);
        ask_owner(END);
        pthread_join(owner, NULL);
    }
    now = NULL;
}

// Blocks of all levels. A short run uses only the first few. The three smaller than 4 KiB share a
// KiB with blocks of other classes. Without hardening, freed blocks are deferred until their class
// needs some, so there must be more neighbours than can be deferred.
static const struct scenario HARDENED[] = {
    {176, 48, 3},     {20000, 20000, 4}, {70000, 70000, 4}, {704, 320, 2},
    {2816, 1280, 2}, {5120, 5120, 4},   {60000, 20000, 4},
};
static const struct scenario PLAIN[] = {
    {5120, 5120, 12}, {70000, 70000, 4}, {20000, 20000, 12}, {60000, 20000, 12}, {200000, 200000, 4},
};

static int number_of(const char *name, int usual) {
    const char *text = getenv(name);
    return text ? atoi(text) : usual;
}

static void run_scenes(struct operation operation) {
#if defined(__x86_64__)
    struct sigaction action = {.sa_sigaction = stepped, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGTRAP, &action, NULL) == 0);
    atexit(at_exit);
    // On one core, each thread runs only while the other waits, and other threads interfere less.
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    CHECK(sched_setaffinity(0, sizeof here, &here) == 0);
    uint64_t state = (uint64_t)number_of("SEED", 1);
    int schedules = number_of("SCHEDULES", 50), scenes = number_of("SCENES", 2);
    const char *mode = getenv("HEARTH_HARDEN");
    int is_plain = mode == NULL || *mode == 0;
    int count = is_plain ? (int)(sizeof PLAIN / sizeof *PLAIN) : (int)(sizeof HARDENED / sizeof *HARDENED);
    for (int i = 0; i < count && i < scenes; i++) {
        scene = is_plain ? &PLAIN[i] : &HARDENED[i];
        run_scene(&operation, schedules, &state);
    }
#else
    (void)operation, (void)at_exit, (void)run_scene, (void)PLAIN, (void)HARDENED, (void)number_of;
    puts("skipped: one instruction at a time is for x86-64");
#endif
}

static void sizes(void) { run_scenes((struct operation){"size", ask_size, same}); }
static void grows(void) { run_scenes((struct operation){"grow", grow, twice}); }
static void shrinks(void) { run_scenes((struct operation){"shrink", shrink, third}); }
static void releases(void) { run_scenes((struct operation){"free", release, NULL}); }

static const struct named_case CASES[] = {
    {"sizes", sizes},
    {"grows", grows},
    {"shrinks", shrinks},
    {"releases", releases},
};

int main(int count, char **arguments) {
    (void)count;
    return run_case(CASES, sizeof CASES / sizeof *CASES, arguments);
}
