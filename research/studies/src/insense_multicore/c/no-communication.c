/* Threads that compute side by side, each on an array of its own. */
#include "common.h"

static void work(int number, void *with)
{
    (void)with;
    int(*array)[COLUMNS] = calloc(1, sizeof(grid));
    if (!array) fail("allocate");
    for (int pass = 0; pass < passes; pass++) {
        increment(array, rounds);
        __asm__ volatile("" : : "r"(array) : "memory");
        if (number == 1) progress("no-communication", pass + 1, passes);
    }
    if (number == 1) printf("no-communication: last element %d\n", array[ROWS - 1][COLUMNS - 1]);
    free(array);
}

int main(int count, char **words)
{
    read_arguments(count, words);
    for (int i = 1; i <= groups; i++) make(work, i, NULL);
    join_all();
}
