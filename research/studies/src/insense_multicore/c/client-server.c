/* Many clients hand their server the number of rounds that it is to compute. */
#include "common.h"

static void ask(int number, void *with)
{
    (void)number;
    for (int i = 0; i < passes; i++) give(with, rounds);
}

static void serve(int number, void *with)
{
    int(*array)[COLUMNS] = calloc(1, sizeof(grid));
    if (!array) fail("allocate");
    for (int i = 0; i < passes * AROUND; i++) {
        increment(array, take(with));
        if (number == 1) progress("client-server", i + 1, passes * AROUND);
    }
    if (number == 1) printf("client-server: last element %d\n", array[ROWS - 1][COLUMNS - 1]);
    free(array);
}

int main(int count, char **words)
{
    read_arguments(count, words);
    struct slot *slots = calloc(groups, sizeof *slots);
    if (!slots) fail("allocate");
    for (int i = 0; i < groups; i++) {
        slot_init(&slots[i]);
        make(serve, i + 1, &slots[i]);
        for (int k = 0; k < AROUND; k++) make(ask, k, &slots[i]);
    }
    join_all();
}
