// The helper thread, where processes and threads are created in unusual ways.
#define _GNU_SOURCE
#include "check.h"

#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

// A hanging child is killed after this time.
enum { SECONDS = 120 };

static sem_t never;

static void *nothing(void *argument) {
    return argument;
}

static void *waits(void *argument) {
    while (sem_wait(&never) != 0) {
    }
    return argument;
}

static void start(void *(*what)(void *)) {
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, what, NULL));
    if (what == nothing) CHECK(!pthread_join(thread, NULL));
}

static int threads(void) {
    DIR *all = opendir("/proc/self/task");
    CHECK(all != NULL);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(all)) != NULL;) count += entry->d_name[0] != '.';
    closedir(all);
    return count;
}

static void passes(pid_t child) {
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// ---- a fork handler starts a thread in the child ---------------------------------------------

static void handler(void) {
    start(waits);
}

// Runs before all constructors, so its handlers are registered before the library's.
static void early(int count, char **arguments, char **environment) {
    (void)environment;
    if (count < 2) return;
    if (strcmp(arguments[1], "child-handler") == 0) CHECK(!pthread_atfork(NULL, NULL, handler));
    if (strcmp(arguments[1], "before-constructors") == 0) start(waits);
}
__attribute__((section(".preinit_array"), used)) static void (*begin)(int, char **, char **) = early;

static void child_handler(void) {
    start(nothing);
    pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS);
        start(waits);
        // This thread, two that wait, and one helper: two helpers would take the same pages.
        CHECK(threads() <= 4);
        _exit(0);
    }
    passes(child);
}

// ---- a child without fork handlers -----------------------------------------------------------

static void cloned(void) {
    // The helper now waits for another thread.
    start(nothing);
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0) {
        alarm(SECONDS);
        CHECK(unshare(0) == 0);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            start(nothing);
            _exit(0);
        }
        passes(grandchild);
        _exit(0);
    }
    passes(child);
}

// ---- a thread started before the library's constructor ---------------------------------------

static void before_constructors(void) {
    int usual = getenv("LD_PRELOAD") == NULL ? 2 : 3;
    CHECK(threads() == usual);
}

// ---- a helper ends, and the C library frees memory in its thread -----------------------------

static pthread_barrier_t all;

static void *meets(void *argument) {
    free(hide(malloc(100)));
    pthread_barrier_wait(&all);
    return argument;
}

static void helpers_end(void) {
    // These stacks fill the C library's stack cache of 40 MB: with the helper's stack it exceeds
    // the limit, and frees the stack of another thread.
    enum { THREADS = 40, STACK = (1 << 20) - 4096, TIMES = 40 };
    pthread_attr_t attributes;
    CHECK(!pthread_attr_init(&attributes));
    CHECK(!pthread_attr_setstacksize(&attributes, STACK));
    CHECK(!pthread_barrier_init(&all, NULL, THREADS));
    size_t before = 0;
    for (int i = 0; i < TIMES; i++) {
        pthread_t thread[THREADS];
        for (int j = 0; j < THREADS; j++)
            CHECK(!pthread_create(&thread[j], &attributes, meets, NULL));
        for (int j = 0; j < THREADS; j++) CHECK(!pthread_join(thread[j], NULL));
        // Ends the helper.
        CHECK(unshare(0) == 0);
        if (i == TIMES / 2) before = mallinfo2().arena;
    }
    // A heap occupies at least a chunk of 64 KiB.
    CHECK(mallinfo2().arena < before + (TIMES / 4 << 16));
}

static const struct named_case cases[] = {
    {"child-handler", child_handler},
    {"cloned", cloned},
    {"before-constructors", before_constructors},
    {"helpers-end", helpers_end},
};

int main(int count, char **arguments) {
    (void)count;
    return run_case(cases, sizeof cases / sizeof *cases, arguments);
}
