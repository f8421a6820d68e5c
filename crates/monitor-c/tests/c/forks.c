// A child that calls functions while its parent does, and a thread of the parent, too. The child's
// child ends without leave.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int is_over;

__attribute__((noinline)) static int in_parent(int number) { return number + 1; }
__attribute__((noinline)) static int in_thread(int number) { return number + 1; }
__attribute__((noinline)) static int in_child(int number) { return number + 1; }
__attribute__((noinline)) static int in_grandchild(int number) { return number + 1; }

static void *work(void *unused) {
    while (!is_over) in_thread(1);
    return unused;
}

static int child(void) {
    for (int i = 0; i < 2000; i++) in_child(i);
    int grandchild = fork();
    if (grandchild == 0) {
        for (int i = 0; i < 10; i++) in_grandchild(i);
        _exit(3);
    }
    int status;
    waitpid(grandchild, &status, 0);
    return WEXITSTATUS(status) + 1;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    int right = 0;
    for (int i = 0; i < 20; i++) {
        int forked = fork();
        if (forked == 0) exit(child());
        for (int j = 0; j < 1000; j++) in_parent(j);
        int status;
        waitpid(forked, &status, 0);
        right += WIFEXITED(status) && WEXITSTATUS(status) == 4;
    }
    is_over = 1;
    pthread_join(thread, NULL);
    return right == 20 ? 0 : 1;
}
