// Threads that end or are cancelled, signals that only the main thread waits for, and the error
// number, which no call may change.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

__attribute__((noinline)) static int step(int number) { return number + 1; }

static void *work(void *unused) {
    for (int i = 0; i < 100; i++) step(i);
    return unused;
}

static void *wait_for_ever(void *unused) {
    for (;;) pause();
    return unused;
}

static int changed;

static void *keep_errno(void *unused) {
    for (int i = 0; i < 100000; i++) {
        errno = i;
        step(i);
        changed += errno != i;
    }
    return unused;
}

int main(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_t thread;
    for (int i = 0; i < 300; i++) {
        pthread_create(&thread, NULL, work, NULL);
        pthread_join(thread, NULL);
        // The default action ends the process if any other thread takes it.
        kill(getpid(), SIGUSR1);
        int signal;
        sigwait(&set, &signal);
        pthread_create(&thread, NULL, wait_for_ever, NULL);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
    }
    pthread_create(&thread, NULL, keep_errno, NULL);
    pthread_join(thread, NULL);
    return changed ? 1 : 0;
}
