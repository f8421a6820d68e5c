// malloc over the life of a process: start, threads and their ends, forks, signals, limits.
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

static void use(uint64_t *state, int count) {
    enum { LIVE = 64 };
    char *live[LIVE] = {0};
    for (int i = 0; i < count; i++) {
        uint64_t word = next_random(state);
        int at = (int)(word % LIVE);
        free(live[at]);
        size_t size = (word >> 8) % ((size_t)1 << ((word >> 40) % 15 + 1));
        live[at] = hide(malloc(size));
        CHECK(live[at] != NULL);
        if (size) live[at][0] = live[at][size - 1] = (char)i;
    }
    for (int i = 0; i < LIVE; i++) free(live[i]);
}

static int number_of(const char *name, int usual) {
    const char *text = getenv(name);
    return text ? atoi(text) : usual;
}

// ---- forks -----------------------------------------------------------------------------------

static atomic_bool is_over;
static _Atomic(char *) crossing[256];

static void *churn(void *seed) {
    uint64_t state = (uintptr_t)seed;
    while (!is_over) {
        use(&state, 100);
        // Also allocates blocks that another thread frees.
        for (int i = 0; i < 50; i++) {
            uint64_t word = next_random(&state);
            char *block = hide(malloc(word % 3000));
            free(atomic_exchange(&crossing[word >> 20 & 255], block));
        }
    }
    return NULL;
}

static void *own_life(void *seed) {
    uint64_t state = (uintptr_t)seed;
    use(&state, 300);
    return malloc(100);
}

// A child made by the C library, and by two calls that run no fork handlers.
static pid_t raw_fork(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }
static pid_t bare_fork(void) {
#if __GLIBC_PREREQ(2, 34)
    return _Fork();
#else
    return raw_fork();
#endif
}

static void during_churn(pid_t (*make_child)(void), int may_have_threads) {
    pthread_t threads[3];
    for (uintptr_t i = 0; i < 3; i++) CHECK(!pthread_create(&threads[i], NULL, churn, (void *)(i + 7)));
    int children = number_of("CHILDREN", 300);
    for (int i = 0; i < children; i++) {
        pid_t child = make_child();
        CHECK(child >= 0);
        if (child == 0) {
            // A child that waits for a lock held by a thread it does not have would never end.
            alarm(20);
            uint64_t state = (uint64_t)i + 99;
            use(&state, 300);
            for (int j = 0; j < 256; j++) free(atomic_exchange(&crossing[j], NULL));
            if (may_have_threads && i % 16 == 0) {
                pthread_t thread;
                void *block;
                CHECK(!pthread_create(&thread, NULL, own_life, (void *)5));
                CHECK(!pthread_join(thread, &block));
                free(block);
            }
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    is_over = 1;
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
}

static void fork_during_churn(void) { during_churn(fork, 1); }
static void bare_fork_during_churn(void) { during_churn(bare_fork, 0); }
static void raw_fork_during_churn(void) { during_churn(raw_fork, 0); }

static void fork_in_a_row(void) {
    // A child of a child of a child, each with the blocks that its ancestors allocated.
    char *blocks[40];
    for (int depth = 0; depth < 40; depth++) {
        blocks[depth] = hide(malloc(1000 * (size_t)depth + 1));
        memset(blocks[depth], depth, 1000 * (size_t)depth + 1);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child) {
            int status;
            CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
            if (depth) _exit(WEXITSTATUS(status));
            CHECK(WEXITSTATUS(status) == 0);
            return;
        }
    }
    for (int depth = 0; depth < 40; depth++) {
        CHECK(blocks[depth][1000 * depth] == depth);
        free(blocks[depth]);
    }
    _exit(0);
}

// ---- threads ---------------------------------------------------------------------------------

static char *left[3000][10];

static void *leave_ten(void *number) {
    char **place = left[(uintptr_t)number];
    for (int i = 0; i < 10; i++) {
        place[i] = hide(malloc(100 + 300 * (size_t)i));
        memset(place[i], i, 100);
    }
    uint64_t state = (uintptr_t)number + 1;
    use(&state, 50);
    return NULL;
}

static void thread_churn(void) {
    long before = 0;
    for (uintptr_t i = 0; i < 3000; i++) {
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, leave_ten, (void *)i));
        pthread_join(thread, NULL);
        for (int j = 0; j < 10; j++) CHECK(left[i][j][99] == j);
        for (int j = 0; j < 10; j++) free(left[i][j]);
        if (i == 100) before = resident();
    }
    long after = resident();
    if (after - before > 2 << 20) fprintf(stderr, "%ld KiB grew to %ld\n", before >> 10, after >> 10);
    CHECK(after - before <= 2 << 20);
}

static pthread_barrier_t together;

static void *leave_ten_together(void *number) {
    leave_ten(number);
    pthread_barrier_wait(&together);
    return leave_ten(number + 50);
}

static void thread_crowds(void) {
    // Many threads at once, repeatedly: there must never be more heaps than threads at once.
    long before = 0;
    pthread_barrier_init(&together, NULL, 50);
    for (int round = 0; round < 60; round++) {
        pthread_t threads[50];
        for (uintptr_t i = 0; i < 50; i++)
            CHECK(!pthread_create(&threads[i], NULL, leave_ten_together, (void *)i));
        for (int i = 0; i < 50; i++) pthread_join(threads[i], NULL);
        for (int i = 0; i < 100; i++)
            for (int j = 0; j < 10; j++) free(left[i][j]);
        if (round == 10) before = resident();
    }
    CHECK(resident() - before <= 8 << 20);
}

static pthread_key_t keys[3];
static _Thread_local char *kept;

static void last_words(void *block) {
    // Runs at a thread's end, before and after the allocator's own destructor, several times.
    free(block);
    static _Thread_local int rounds;
    uint64_t state = 77;
    use(&state, 30);
    if (rounds++ < 6) pthread_setspecific(keys[rounds % 3], malloc(200));
}

static void *with_keys(void *number) {
    (void)number;
    for (int i = 0; i < 3; i++) pthread_setspecific(keys[i], hide(malloc(100 + 50 * (size_t)i)));
    kept = hide(malloc(3000));
    memset(kept, 1, 3000);
    free(kept);
    // The C library keeps this text for the thread, and frees it after all destructors.
    CHECK(strlen(strerror(123456)) > 0);
    dlsym(RTLD_DEFAULT, "there is no such name");
    CHECK(dlerror() != NULL);
    return NULL;
}

// Short threads, one after the other: the memory they leave behind must not grow.
static void threads_in_a_row(void *(*run)(void *), long limit) {
    long before = 0;
    for (int i = 0; i < 1500; i++) {
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, run, NULL));
        pthread_join(thread, NULL);
        if (i == 100) before = resident();
    }
    long after = resident();
    if (after - before > limit) fprintf(stderr, "%ld KiB grew to %ld\n", before >> 10, after >> 10);
    CHECK(after - before <= limit);
}

static void thread_ends(void) {
    for (int i = 0; i < 3; i++) CHECK(!pthread_key_create(&keys[i], last_words));
    threads_in_a_row(with_keys, 4 << 20);
}

static void *only_ask(void *number) {
    (void)number;
    CHECK(strlen(strerror(123456)) > 0);
    return NULL;
}

static void late_frees(void) {
    // As above, with only memory that the C library frees after all destructors.
    threads_in_a_row(only_ask, 2 << 20);
}

static void *produce(void *count) {
    for (uintptr_t i = 0; i < (uintptr_t)count; i++) {
        char *block = hide(malloc(20 + i % 500));
        *block = 1;
        char *none = NULL;
        while (!atomic_compare_exchange_weak(&crossing[i & 255], &none, block)) none = NULL;
    }
    return NULL;
}

static void handed_over(void) {
    // One thread allocates, another frees: the memory of both must stay small.
    pthread_t thread;
    uintptr_t count = 400000;
    CHECK(!pthread_create(&thread, NULL, produce, (void *)count));
    long before = 0;
    for (uintptr_t i = 0; i < count; i++) {
        char *block;
        while ((block = atomic_exchange(&crossing[i & 255], NULL)) == NULL) sched_yield();
        free(block);
        if (i == 20000) before = resident();
    }
    pthread_join(thread, NULL);
    CHECK(resident() - before <= 4 << 20);
}

// ---- signals ---------------------------------------------------------------------------------

static atomic_int interruptions;

static void crash_handler(int signal) {
    // POSIX forbids this in a handler, but every crash reporter does it.
    (void)signal;
    uint64_t state = 5;
    use(&state, 200);
    char *text = strdup("as a crash reporter says");
    void *large = malloc(5 << 20);
    CHECK(text != NULL && large != NULL);
    free(text);
    free(large);
    _exit(42);
}

static void signal_in_malloc(void) {
    // In each child, a signal interrupts malloc or free. Its handler allocates and ends the
    // process; it must not wait for anything.
    for (int i = 0; i < number_of("CHILDREN", 200); i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(20);
            signal(SIGPROF, crash_handler);
            struct itimerval timer = {{0, 0}, {0, 1000 + 37 * (i % 100)}};
            setitimer(ITIMER_PROF, &timer, NULL);
            uint64_t state = (uint64_t)i + 1;
            for (;;) use(&state, 100);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    }
}

static void count_it(int signal) {
    (void)signal;
    interruptions++;
}

static void interrupted(void) {
    // An interrupted system call does not count as a refusal.
    struct sigaction action = {.sa_handler = count_it};
    sigaction(SIGPROF, &action, NULL);
    struct itimerval timer = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_PROF, &timer, NULL);
    uint64_t state = 11;
    for (int i = 0; i < 1000000 && interruptions < 50; i++) {
        use(&state, 300);
        char *block = hide(malloc(40 << 20));
        CHECK(block != NULL);
        block[0] = 1;
        free(block);
        malloc_trim(0);
    }
    CHECK(interruptions >= 50);
}

// ---- loading ---------------------------------------------------------------------------------

static void *in_library(void *library) {
    void *(*get)(size_t) = (void *(*)(size_t))dlsym(library, "malloc");
    void (*put)(void *) = (void (*)(void *))dlsym(library, "free");
    CHECK(get != NULL && put != NULL);
    char *blocks[500];
    for (int i = 0; i < 500; i++) {
        blocks[i] = get((size_t)i * 40);
        CHECK(blocks[i] != NULL);
        memset(blocks[i], i, (size_t)i * 40);
    }
    for (int i = 0; i < 500; i++) put(blocks[i]);
    return NULL;
}

static void opened(void) {
    // Without preloading: a program with another malloc opens the library, uses it and closes it;
    // threads end afterwards.
    const char *path = getenv("LIBRARY");
    CHECK(path != NULL);
    for (int round = 0; round < 3; round++) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) fprintf(stderr, "%s\n", dlerror());
        CHECK(library != NULL);
        in_library(library);
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, in_library, library));
        pthread_join(thread, NULL);
        dlclose(library);
    }
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, own_life, (void *)9));
    void *block;
    pthread_join(thread, &block);
    free(block);
}

// ---- limits ----------------------------------------------------------------------------------

// Allocates until refused; returns the number of bytes.
static size_t until_refused(size_t size) {
    static char *all[1 << 21];
    size_t count = 0;
    errno = 0;
    for (char *block; count < 1 << 21 && (block = hide(malloc(size))) != NULL; count++) {
        *block = 1;
        all[count] = block;
    }
    CHECK(count == 1 << 21 || errno == ENOMEM);
    for (size_t i = 0; i < count; i++) free(all[i]);
    return count * size;
}

static void limited(void) {
    // Under a limit set before the start, the program gets a fair part of it, is then refused, and
    // continues.
    size_t limit = (size_t)number_of("LIMIT_MB", 0) << 20;
    struct rlimit addresses;
    CHECK(getrlimit(RLIMIT_AS, &addresses) == 0);
    static const size_t sizes[] = {1000, 100, 10000, 100000, 1000000, 5000000};
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            // Whole arenas need free arenas, which a limit on data may not leave.
            if (sizes[i] > 1 << 20 && addresses.rlim_cur == RLIM_INFINITY) continue;
            size_t got = until_refused(sizes[i]);
            if (got < limit / 6 || got > limit)
                fprintf(stderr, "%zu of %zu in blocks of %zu\n", got, limit, sizes[i]);
            CHECK(got >= limit / 6 && got <= limit);
        }
        // Some of the limit is left to others. Memory that was once writable counts against the
        // data limit for good.
        if (addresses.rlim_cur == RLIM_INFINITY) continue;
        void *mapping = mmap(NULL, limit / 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(mapping != MAP_FAILED);
        munmap(mapping, limit / 16);
        malloc_trim(0);
    }
}

static pthread_barrier_t at_the_neighbour;

static void *grow(void *nothing) {
    pthread_barrier_wait(&at_the_neighbour);
    for (int i = 0; i < 200000; i++) {
        char *block = hide(malloc(3000));
        if (block) memset(block, 'B', 3000);
    }
    return nothing;
}

static void limited_neighbour(void) {
    // Several threads grow at once towards a mapping of the program, which must stay intact.
    const size_t bytes = 4 << 20;
    char *first = hide(malloc(3000)), *own = MAP_FAILED;
    pthread_t threads[4];
    CHECK(first && !pthread_barrier_init(&at_the_neighbour, NULL, 5));
    for (int i = 0; i < 4; i++) CHECK(!pthread_create(&threads[i], NULL, grow, NULL));
    char *arena = first - (uintptr_t)first % bytes;
    for (int i = 1; i < 8 && own == MAP_FAILED; i++)
        own = mmap(arena + i * bytes, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(own != MAP_FAILED);
    memset(own, 'A', bytes);
    pthread_barrier_wait(&at_the_neighbour);
    for (int i = 0; i < 4; i++) CHECK(!pthread_join(threads[i], NULL));
    for (size_t i = 0; i < bytes; i++) CHECK(own[i] == 'A');
    free(first);
}

static void limited_small(void) {
    // Small blocks can use most of a limit; then a thread starts, for which nothing else was left.
    size_t limit = (size_t)number_of("LIMIT_MB", 0) << 20;
    static const size_t sizes[] = {1000, 10000, 100000, 250000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t got = until_refused(sizes[i]);
        if (got < limit / 10 * 6) fprintf(stderr, "%zu of %zu in blocks of %zu\n", got, limit, sizes[i]);
        CHECK(got >= limit / 10 * 6);
        pthread_t thread;
        void *block;
        CHECK(!pthread_create(&thread, NULL, own_life, (void *)1));
        pthread_join(thread, &block);
        free(block);
    }
}

static void limited_count(void) {
    // For a comparison of what a limit gives in different modes.
    printf("%zu\n", until_refused(number_of("SIZE", 0)));
}

static void limited_threads(void) {
    for (int round = 0; round < 20; round++) {
        pthread_t threads[4];
        for (uintptr_t i = 0; i < 4; i++)
            CHECK(!pthread_create(&threads[i], NULL, own_life, (void *)(i + 1)));
        for (int i = 0; i < 4; i++) {
            void *block;
            pthread_join(threads[i], &block);
            free(block);
        }
    }
}

static void limit_lowered(void) {
    // A refusal while the limit is low must do no harm later.
    CHECK(hide(malloc(100)) != NULL);
    struct rlimit old, low;
    CHECK(getrlimit(RLIMIT_DATA, &old) == 0);
    low = old;
    low.rlim_cur = 40 << 20;
    CHECK(setrlimit(RLIMIT_DATA, &low) == 0);
    for (int i = 0; i < 3000; i++) {
        errno = 0;
        char *block = hide(malloc(60 << 20));
        CHECK(block == NULL && errno == ENOMEM);
    }
    malloc_trim(0);
    CHECK(setrlimit(RLIMIT_DATA, &old) == 0);
    char *blocks[50];
    for (int i = 0; i < 50; i++) {
        blocks[i] = hide(malloc(3 << 20));
        CHECK(blocks[i] != NULL);
        memset(blocks[i], i, 3 << 20);
    }
    for (int i = 0; i < 50; i++) free(blocks[i]);
    malloc_trim(0);
}

static void locked(void) {
    // With mlockall, all mapped memory is resident. Unused memory must not be.
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        CHECK(errno == EPERM || errno == ENOMEM);
        return;
    }
    uint64_t state = 3;
    use(&state, 10000);
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++) CHECK(!pthread_create(&threads[i], NULL, own_life, (void *)(i + 1)));
    for (int i = 0; i < 4; i++) {
        void *block;
        pthread_join(threads[i], &block);
        free(block);
    }
    char *large = hide(malloc(50 << 20));
    CHECK(large != NULL);
    free(large);
    use(&state, 10000);
    // Four stacks of 8 MiB, the block, and what the allocator reserves at once.
    long now = resident();
    if (now > 200 << 20) fprintf(stderr, "%ld MiB\n", now >> 20);
    CHECK(now < 200 << 20);
}

int main(int count, char **arguments) {
    (void)count;
    static const struct named_case cases[] = {
        {"fork-during-churn", fork_during_churn}, {"fork-in-a-row", fork_in_a_row},
    {"bare-fork-during-churn", bare_fork_during_churn},
    {"raw-fork-during-churn", raw_fork_during_churn},
        {"thread-churn", thread_churn}, {"thread-crowds", thread_crowds}, {"thread-ends", thread_ends},
        {"late-frees", late_frees}, {"handed-over", handed_over}, {"signal-in-malloc", signal_in_malloc},
        {"interrupted", interrupted}, {"opened", opened}, {"limited-small", limited_small}, {"limited", limited},
        {"limited-count", limited_count},
        {"limited-threads", limited_threads}, {"limited-neighbour", limited_neighbour},
        {"limit-lowered", limit_lowered}, {"locked", locked}};
    return run_case(cases, sizeof cases / sizeof *cases, arguments);
}
