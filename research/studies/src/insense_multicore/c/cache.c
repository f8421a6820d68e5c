/* Each thread goes over an array of its own again and again. */
#include "common.h"

static void walk(int number, void *with)
{
    (void)with;
    int(*array)[COLUMNS] = calloc(1, sizeof(grid));
    if (!array) fail("allocate");
    for (int pass = 0; pass < passes; pass++) {
        increment(array, 1);
        /* Each pass is made: what it counts is seen from outside. */
        __asm__ volatile("" : : "r"(array) : "memory");
        if (number == 1) progress("cache", pass + 1, passes);
    }
    long sum = 0;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) sum += array[i][j];
    if (number == 1) printf("cache: sum %ld\n", sum);
    free(array);
}

int main(int count, char **words)
{
    read_arguments(count, words);
    for (int i = 1; i <= groups; i++) make(walk, i, NULL);
    join_all();
}
