// A program that has already allocated and freed installs a seccomp filter that refuses membarrier.
// An allocator whose threads rely on membarrier must notice, and stop relying on it.
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

enum { BLOCKS = 400, THREADS = 2 };

static atomic_bool is_over;

// Grows to some megabytes, shrinks, and pauses for about as long as a helper takes to visit; the
// remaining blocks must keep their contents.
static void *live(void *number) {
    uint64_t state = (uintptr_t)number;
    static _Thread_local unsigned char *kept[BLOCKS];
    static _Thread_local size_t sizes[BLOCKS];
    while (!is_over) {
        for (int i = 0; i < BLOCKS; i++) {
            uint64_t word = next_random(&state);
            if (kept[i] && word % 4 == 0) continue;
            for (size_t j = 0; kept[i] && j < sizes[i]; j += 61) CHECK(kept[i][j] == (unsigned char)i);
            free(kept[i]);
            sizes[i] = (word >> 8) % (64 << 10) + 1;
            CHECK((kept[i] = hide(malloc(sizes[i]))) != NULL);
            memset(kept[i], i, sizes[i]);
        }
        for (int i = 0; i < BLOCKS; i++) {
            if (i % 8 == 0) continue;
            for (size_t j = 0; j < sizes[i]; j += 61) CHECK(kept[i][j] == (unsigned char)i);
            free(kept[i]);
            kept[i] = NULL;
        }
        struct timespec quiet = {0, (long)(100 + next_random(&state) % 100) * 1000000};
        nanosleep(&quiet, NULL);
    }
    for (int i = 0; i < BLOCKS; i++) free(kept[i]);
    return NULL;
}

// Refuses every call that the filter reports, until the program ends; returns their number.
static void *refuse(void *listener) {
    struct pollfd asked = {(int)(intptr_t)listener, POLLIN, 0};
    uintptr_t count = 0;
    while (!is_over) {
        if (poll(&asked, 1, 20) != 1) continue;
        struct seccomp_notif question = {0};
        if (ioctl(asked.fd, SECCOMP_IOCTL_NOTIF_RECV, &question) != 0) continue;
        count++;
        struct seccomp_notif_resp answer = {.id = question.id, .error = -EPERM};
        ioctl(asked.fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
    return (void *)count;
}

// Refuses membarrier to all threads from now on; returns the filter's descriptor.
static int install(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    unsigned flags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH | SECCOMP_FILTER_FLAG_NEW_LISTENER;
    int listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    CHECK(listener >= 0);
    return listener;
}

// A thread may have made a second call before the first was answered; a thread that keeps calling
// ignores refusals.
enum { ASKED_MAX = 4 };

static void run(int threads_before, int threads_after) {
    pthread_t threads[2 * THREADS], refuser;
    uintptr_t count = 0;
    for (int i = 0; i < threads_before; i++, count++)
        CHECK(!pthread_create(&threads[count], NULL, live, (void *)(count + 1)));
    struct timespec a_while = {0, 300000000};
    // By then the helper has had work: it searches every 50 ms.
    nanosleep(&a_while, NULL);
    int listener = install();
    CHECK(!pthread_create(&refuser, NULL, refuse, (void *)(intptr_t)listener));
    for (int i = 0; i < threads_after; i++, count++)
        CHECK(!pthread_create(&threads[count], NULL, live, (void *)(count + 1)));
    for (int i = 0; i < 4; i++) nanosleep(&a_while, NULL);
    is_over = 1;
    for (uintptr_t i = 0; i < count; i++) pthread_join(threads[i], NULL);
    void *asked;
    pthread_join(refuser, &asked);
    if ((uintptr_t)asked > ASKED_MAX) fprintf(stderr, "membarrier was refused %zu times\n", (size_t)asked);
    CHECK((uintptr_t)asked <= ASKED_MAX);
    // From now on the kernel refuses the calls itself.
    close(listener);
}

static void refused_later(void) { run(THREADS, THREADS); }
static void refused_before_threads(void) { run(0, THREADS); }

static const struct named_case CASES[] = {
    {"refused-later", refused_later},
    {"refused-before-threads", refused_before_threads},
};

int main(int count, char **arguments) {
    (void)count;
    return run_case(CASES, sizeof CASES / sizeof *CASES, arguments);
}
