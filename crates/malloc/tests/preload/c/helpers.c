// The thread that gives idle memory back, where processes and threads are made in unusual ways.
#define _GNU_SOURCE
#include "check.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

// A child that waits for ever is ended after so long.
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

// ---- a handler of a fork starts a thread in the child ----------------------------------------------

static void handler(void) {
    start(waits);
}

// Where it is asked for before the library asks for its own: before all constructors.
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
        // This one, two that wait, and one helper: two would take the same pages.
        CHECK(threads() <= 4);
        _exit(0);
    }
    passes(child);
}

// ---- a child without handlers ----------------------------------------------------------------------

static void cloned(void) {
    // The helper waits for another thread now.
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

// ---- a thread before the library has begun ---------------------------------------------------------

static void before_constructors(void) {
    int usual = getenv("LD_PRELOAD") == NULL ? 2 : 3;
    CHECK(threads() == usual);
}

static const struct named_case cases[] = {
    {"child-handler", child_handler},
    {"cloned", cloned},
    {"before-constructors", before_constructors},
};

int main(int count, char **arguments) {
    (void)count;
    return run_case(cases, sizeof cases / sizeof *cases, arguments);
}
