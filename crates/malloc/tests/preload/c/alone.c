// A single-threaded program stays single-threaded as far as the kernel can tell, whatever it
// allocates and frees.
//
// The program prints a table of calls whose results depend on the number of threads, or on what a
// thread shares with others. Each row runs in a child process, which first allocates and frees some
// megabytes, and then prints the result of the call. The table must not depend on malloc: the test
// compares it with the table printed under the system's malloc.
#define _GNU_SOURCE
#include "check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

// ---- helpers for rows ------------------------------------------------------------------------

// Number of this process's threads in /proc.
static int threads(void) {
    DIR *folder = opendir("/proc/self/task");
    CHECK(folder != NULL);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

// Allocates and frees blocks of all sizes, until any allocator has memory to tidy up: large blocks,
// holes among many live blocks, and finally everything. Returns the largest number of threads seen
// after a stage.
static int allocate_and_free(void) {
    int most = 1;
    enum { COUNT = 8000 };
    char **blocks = calloc(COUNT, sizeof *blocks);
    CHECK(blocks != NULL);
#define STAGE()                                                                      \
    do {                                                                             \
        int now = threads();                                                         \
        if (now > most) most = now;                                                  \
    } while (0)
    for (int i = 0; i < 8; i++) {
        char *block = hide(malloc(600 << 10));
        CHECK(block != NULL);
        memset(block, 1, 600 << 10);
        free(block);
    }
    STAGE();
    for (int i = 0; i < 60; i++) CHECK((blocks[i] = hide(malloc(300 << 10))) != NULL);
    for (int i = 0; i < 60; i++) memset(blocks[i], 2, 300 << 10);
    for (int i = 0; i < 60; i++) free(blocks[i]);
    STAGE();
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++) {
            size_t size = 16 + (size_t)(i * 7919u % 2000);
            CHECK((blocks[i] = hide(malloc(size))) != NULL);
            memset(blocks[i], 3, size);
        }
        STAGE();
        for (int i = 0; i < COUNT; i++)
            if (i % 9) free(blocks[i]);
        STAGE();
        for (int i = 0; i < COUNT; i += 9) free(blocks[i]);
        STAGE();
    }
    char *large = hide(malloc(40 << 20));
    CHECK(large != NULL);
    large[30 << 20] = 1;
    large = realloc(large, 5 << 20);
    free(large);
    free(blocks);
    STAGE();
    return most;
}

// Formats a call's result: the number, or the name of the error.
static const char *outcome(long result) {
    static char text[40];
    if (result >= 0) snprintf(text, sizeof text, "%ld", result);
    else snprintf(text, sizeof text, "%s", strerrorname_np(errno));
    return text;
}

// Whether this line of /proc/self/task/N/status is the same for all threads.
static bool same_everywhere(const char *name) {
    DIR *folder = opendir("/proc/self/task");
    CHECK(folder != NULL);
    char first[200] = "";
    bool same = true;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        char path[300], line[200];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *file = fopen(path, "r");
        CHECK(file != NULL);
        while (fgets(line, sizeof line, file)) {
            if (strncmp(line, name, strlen(name)) != 0) continue;
            if (*first == 0) strcpy(first, line);
            same = same && strcmp(first, line) == 0;
        }
        fclose(file);
    }
    closedir(folder);
    CHECK(*first != 0);
    return same;
}

// Whether this link in /proc/self/task/N, such as a namespace, is the same for all threads.
static bool same_link(const char *name) {
    DIR *folder = opendir("/proc/self/task");
    CHECK(folder != NULL);
    char first[200] = "";
    bool same = true;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        char path[300], target[200] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/%s", entry->d_name, name);
        CHECK(readlink(path, target, sizeof target - 1) > 0);
        if (*first == 0) strcpy(first, target);
        same = same && strcmp(first, target) == 0;
    }
    closedir(folder);
    return same;
}

// Waits up to `seconds` for a child and returns how it ended. A child that takes longer never ends:
// it is killed.
enum { PATIENCE = 10, PATIENCE_WITH_ROW = 60 };
static const char *end_within(pid_t child, int seconds) {
    static char text[40];
    for (int i = 0; i < seconds * 500; i++) {
        int status;
        pid_t ended = waitpid(child, &status, WNOHANG);
        CHECK(ended >= 0);
        if (ended == child) {
            if (WIFEXITED(status)) snprintf(text, sizeof text, "exit %d", WEXITSTATUS(status));
            else snprintf(text, sizeof text, "signal %d", WTERMSIG(status));
            return text;
        }
        poll(NULL, 0, 2);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return "never ends";
}
static const char *end_of(pid_t child) { return end_within(child, PATIENCE); }

static void say(const char *text) {
    // Not through stdio, whose buffers a row may leave unflushed.
    if (write(1, text, strlen(text)) < 0) _exit(9);
}

// ---- rows: kernel ----------------------------------------------------------------------------

// unshare(2) returns EINVAL if there is a second thread; CLONE_NEWUSER implies CLONE_THREAD.
static void unshare_user(void) { say(outcome(unshare(CLONE_NEWUSER))); }
static void unshare_thread(void) { say(outcome(unshare(CLONE_THREAD))); }
static void unshare_sighand(void) { say(outcome(unshare(CLONE_SIGHAND))); }
static void unshare_vm(void) { say(outcome(unshare(CLONE_VM))); }

// An allocator's helper thread would stay in the old namespace.
static void unshare_mounts(void) {
    say(outcome(unshare(CLONE_NEWNS)));
    say(same_link("ns/mnt") ? ", all threads" : ", not all threads");
}
static void unshare_net(void) {
    say(outcome(unshare(CLONE_NEWNET)));
    say(same_link("ns/net") ? ", all threads" : ", not all threads");
}
static void unshare_fs(void) { say(outcome(unshare(CLONE_FS | CLONE_FILES | CLONE_SYSVSEM))); }

// After this call the process cannot start a thread, and its first child is the init process of the
// new namespace: malloc must not start a thread either.
static void unshare_pid(void) {
    long result = unshare(CLONE_NEWPID);
    say(outcome(result));
    if (result != 0) return;
    allocate_and_free();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) _exit(getpid() == 1 ? 41 : 42);
    say(", child: ");
    say(end_of(child));
}
static void unshare_time(void) {
    long result = unshare(CLONE_NEWTIME);
    say(outcome(result));
    if (result != 0) return;
    allocate_and_free();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) _exit(43);
    say(", child: ");
    say(end_of(child));
}

// setns(2) returns EINVAL for a user namespace; EINVAL for mounts if the process shares its file
// system root with another; and EUSERS for a time namespace. A child that has unshared the
// namespace waits in it.
static void set_namespace(int kind, const char *name) {
    int ready[2], done[2];
    CHECK(pipe(ready) == 0 && pipe(done) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    char byte;
    if (child == 0) {
        close(done[1]);
        bool left = unshare(kind) == 0;
        byte = (char)left;
        CHECK(write(ready[1], &byte, 1) == 1);
        CHECK(read(done[0], &byte, 1) >= 0);
        _exit(0);
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    if (byte) {
        char path[80];
        snprintf(path, sizeof path, "/proc/%d/ns/%s", child, name);
        int file = open(path, O_RDONLY);
        CHECK(file >= 0);
        say(outcome(setns(file, kind)));
    } else {
        say("no such namespace can be made");
    }
    close(done[1]);
    waitpid(child, NULL, 0);
}
static void setns_user(void) { set_namespace(CLONE_NEWUSER, "user"); }
static void setns_mounts(void) { set_namespace(CLONE_NEWNS, "mnt"); }
static void setns_time(void) { set_namespace(CLONE_NEWTIME, "time_for_children"); }
static void setns_net(void) { set_namespace(CLONE_NEWNET, "net"); }

// keyctl(2), KEYCTL_SESSION_TO_PARENT, returns EPERM if the *parent* has a second thread.
static void session_to_parent(void) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0) _exit(errno & 127);
        if (syscall(SYS_keyctl, KEYCTL_SESSION_TO_PARENT) < 0) _exit(errno & 127);
        _exit(0);
    }
    say("child: ");
    say(end_of(child));
}

// exit(2), as opposed to exit_group, ends a single-threaded process.
static void exit_one(void) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        allocate_and_free();
        syscall(SYS_exit, 44);
    }
    say("child: ");
    say(end_of(child));
}

// RLIMIT_NPROC counts threads. Root may exceed the limit, so the child becomes a user who has no
// other process.
static void process_limit(void) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        struct rlimit two = {2, 2};
        CHECK(setrlimit(RLIMIT_NPROC, &two) == 0);
        if (setresuid(2147000111, 2147000111, 2147000111) != 0) _exit(45);
        allocate_and_free();
        pid_t grandchild = fork();
        if (grandchild < 0) _exit(errno & 127);
        if (grandchild == 0) _exit(0);
        CHECK(waitpid(grandchild, NULL, 0) == grandchild);
        _exit(0);
    }
    say("child: ");
    say(end_of(child));
}

// A thread made by clone(2) without CLONE_THREAD is a child process.
static void wait_for_any(void) { say(outcome(waitpid(-1, NULL, WNOHANG | __WALL))); }

// A tracer is notified of each new thread.
static void traced(void) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) _exit(46);
        raise(SIGSTOP);
        allocate_and_free();
        _exit(0);
    }
    int status, clones = 0;
    CHECK(waitpid(child, &status, 0) == child);
    if (!WIFSTOPPED(status)) {
        say("may not trace");
        return;
    }
    long options = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_EXITKILL;
    CHECK(ptrace(PTRACE_SETOPTIONS, child, 0, options) == 0);
    ptrace(PTRACE_CONT, child, 0, 0);
    for (pid_t other; (other = waitpid(-1, &status, __WALL)) > 0;) {
        if (!WIFSTOPPED(status)) {
            if (other == child) break;
            continue;
        }
        clones += status >> 16 != 0;
        ptrace(PTRACE_CONT, other, 0, 0);
    }
    char text[40];
    snprintf(text, sizeof text, "%d made", clones);
    say(text);
}

// Linear address masking can be enabled only while there is one thread (EBUSY afterwards; ENODEV on
// processors without it).
static void address_masking(void) {
#if defined(__x86_64__)
    say(outcome(syscall(SYS_arch_prctl, 0x4002, 6)));
#else
    say("of x86-64");
#endif
}

// A signal that this thread blocks stays pending: no other thread may take it.
static void blocked_signal(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    allocate_and_free();
    CHECK(kill(getpid(), SIGUSR1) == 0);
    struct timespec none = {0, 0};
    say(outcome(sigtimedwait(&set, NULL, &none)));
}

// ---- rows: per-thread attributes that all threads must change --------------------------------

static void capabilities(void) {
    struct { uint32_t version; int pid; } head = {0x20080522, 0};
    struct { uint32_t effective, permitted, inheritable; } data[2] = {{0}};
    say(outcome(syscall(SYS_capset, &head, data)));
    say(same_everywhere("CapEff:") && same_everywhere("CapPrm:") ? ", all threads" : ", not all threads");
}
static void bounding_set(void) {
    say(outcome(prctl(PR_CAPBSET_DROP, 21, 0, 0, 0)));
    say(same_everywhere("CapBnd:") ? ", all threads" : ", not all threads");
}
static void no_new_privileges(void) {
    say(outcome(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)));
    say(same_everywhere("NoNewPrivs:") ? ", all threads" : ", not all threads");
}
static void users(void) {
    say(outcome(setgid(65534)));
    say(outcome(setresuid(65534, 65534, 65534)));
    say(same_everywhere("Uid:") && same_everywhere("Gid:") ? ", all threads" : ", not all threads");
}
static void raw_users(void) {
    say(outcome(syscall(SYS_setresuid, 65534, 65534, 65534)));
    say(same_everywhere("Uid:") ? ", all threads" : ", not all threads");
}
static void cores(void) {
    cpu_set_t one;
    CHECK(sched_getaffinity(0, sizeof one, &one) == 0);
    for (int i = 0, found = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &one) && found++) CPU_CLR(i, &one);
    say(outcome(sched_setaffinity(0, sizeof one, &one)));
    say(same_everywhere("Cpus_allowed:") ? ", all threads" : ", not all threads");
}

// A seccomp filter for one thread, and one for all threads.
static const struct sock_filter ALLOW[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
static void filter_one(void) {
    struct sock_fprog program = {1, (struct sock_filter *)ALLOW};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    say(outcome(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)));
    say(same_everywhere("Seccomp:") ? ", all threads" : ", not all threads");
}
static void filter_all(void) {
    struct sock_fprog program = {1, (struct sock_filter *)ALLOW};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
    say(outcome(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program)));
    say(same_everywhere("Seccomp:") ? ", all threads" : ", not all threads");
}

// ---- rows: the C library ---------------------------------------------------------------------

static void single_threaded(void) { say(__libc_single_threaded ? "single" : "not single"); }

// When the last thread calls pthread_exit, the process ends with status 0.
static void exit_last(void) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        allocate_and_free();
        pthread_exit(NULL);
    }
    say("child: ");
    say(end_of(child));
}

static void replace(void) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char before[20];
        allocate_and_free();
        snprintf(before, sizeof before, "%d", getpid());
        execl("/bin/sh", "sh", "-c", "test $$ = $0 && test $(ls /proc/$$/task | wc -l) = 1", before, (char *)NULL);
        _exit(47);
    }
    say("child: ");
    say(end_of(child));
}

// ---- rows: after a thread has ended ----------------------------------------------------------

static void *thread_life(void *nothing) {
    allocate_and_free();
    return nothing;
}

// Once the program has had a thread, the allocator may keep one of its own. The process still ends
// with its last thread.
static void exit_last_of_two(void) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, thread_life, NULL));
        allocate_and_free();
        CHECK(!pthread_join(thread, NULL));
        pthread_exit(NULL);
    }
    say("child: ");
    say(end_of(child));
}

// The C library changes the user of all threads, including those of the allocator.
static void users_of_two(void) {
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, thread_life, NULL));
    allocate_and_free();
    CHECK(!pthread_join(thread, NULL));
    say(outcome(setresgid(65534, 65534, 65534)));
    say(outcome(setresuid(65534, 65534, 65534)));
    say(same_everywhere("Uid:") && same_everywhere("Gid:") ? ", all threads" : ", not all threads");
}

// A seccomp filter for all threads: the allocator's threads must not prevent it.
static void filter_of_two(void) {
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, thread_life, NULL));
    allocate_and_free();
    CHECK(!pthread_join(thread, NULL));
    struct sock_fprog program = {1, (struct sock_filter *)ALLOW};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    say(outcome(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program)));
    say(same_everywhere("Seccomp:") ? ", all threads" : ", not all threads");
}

struct row {
    const char *name;
    void (*run)(void);
    bool had_threads; // the allocator may keep one more
};

static const struct row ROWS[] = {
    {"unshare: user namespace", unshare_user, false},
    {"unshare: thread", unshare_thread, false},
    {"unshare: signal handlers", unshare_sighand, false},
    {"unshare: memory", unshare_vm, false},
    {"unshare: mounts", unshare_mounts, false},
    {"unshare: network", unshare_net, false},
    {"unshare: file system, files, semaphores", unshare_fs, false},
    {"unshare: process numbers", unshare_pid, false},
    {"unshare: time", unshare_time, false},
    {"setns: user", setns_user, false},
    {"setns: mounts", setns_mounts, false},
    {"setns: time", setns_time, false},
    {"setns: network", setns_net, false},
    {"keyctl: session to parent", session_to_parent, false},
    {"exit of one thread", exit_one, false},
    {"limit of processes", process_limit, false},
    {"wait for any child", wait_for_any, false},
    {"traced", traced, false},
    {"address masking", address_masking, false},
    {"blocked signal", blocked_signal, false},
    {"capabilities", capabilities, false},
    {"bounding set", bounding_set, false},
    {"no new privileges", no_new_privileges, false},
    {"users", users, false},
    {"users, by the system call", raw_users, false},
    {"cores", cores, false},
    {"filter for one thread", filter_one, false},
    {"filter for all threads", filter_all, false},
    {"__libc_single_threaded", single_threaded, false},
    {"pthread_exit of the last thread", exit_last, false},
    {"execve", replace, false},
    {"pthread_exit of the last thread, of two", exit_last_of_two, true},
    {"users, after a thread", users_of_two, true},
    {"filter for all threads, after a thread", filter_of_two, true},
};

static void table(void) {
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const struct row *row = &ROWS[i];
        say(row->name);
        say(": ");
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            int most = allocate_and_free();
            row->run();
            if (!row->had_threads) {
                // Includes threads created during the row.
                int now = threads();
                char text[40];
                snprintf(text, sizeof text, "; threads: %d", now > most ? now : most);
                say(text);
            }
            _exit(0);
        }
        const char *end = end_within(child, PATIENCE_WITH_ROW);
        if (strcmp(end, "exit 0") != 0) {
            say("; ");
            say(end);
        }
        say("\n");
    }
}

// Counts the threads at each stage of a program: alone, in a child, and after its own threads have
// ended.
static void count(void) {
    CHECK(threads() == 1);
    CHECK(allocate_and_free() == 1);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(threads() == 1);
        CHECK(allocate_and_free() == 1);
        _exit(0);
    }
    CHECK(strcmp(end_of(child), "exit 0") == 0);
    CHECK(threads() == 1);
}

static const struct named_case CASES[] = {{"table", table}, {"count", count}};

int main(int count_of_arguments, char **arguments) {
    (void)count_of_arguments;
    return run_case(CASES, sizeof CASES / sizeof *CASES, arguments);
}
