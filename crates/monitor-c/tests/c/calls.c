// Calls of known number in two threads beside the main one: `calls ROUNDS`.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int rounds;

__attribute__((noinline)) static int inner(int number) { return number + 1; }

__attribute__((noinline)) int outer(int number) { return inner(number) + inner(number + 1); }

__attribute__((noinline)) static int deep(int depth) { return depth ? deep(depth - 1) + 1 : 0; }

static void *work(void *sum) {
    for (int i = 0; i < rounds; i++) *(int *)sum += outer(i);
    return NULL;
}

int main(int count, char **arguments) {
    rounds = count > 1 ? atoi(arguments[1]) : 1000;
    pthread_t threads[2];
    int sums[3] = {0};
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, &sums[i]);
    work(&sums[2]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", sums[0] + sums[1] + sums[2] + deep(100));
    return 0;
}
