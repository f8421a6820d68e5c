// Nanoseconds of a call: `cost CALLS`.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

__attribute__((noinline)) static int step(int number) {
    __asm__ volatile("" : "+r"(number));
    return number + 1;
}

__attribute__((no_instrument_function)) static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

__attribute__((no_instrument_function)) int main(int count, char **arguments) {
    int calls = count > 1 ? atoi(arguments[1]) : 1000000;
    double best = 1e18;
    for (int run = 0; run < 11; run++) {
        double begin = now();
        for (int i = 0; i < calls; i++) step(i);
        double time = (now() - begin) / calls;
        if (time < best) best = time;
    }
    printf("%.2f\n", best);
    return 0;
}
