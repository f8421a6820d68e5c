/* A few dispatchers hand out numbers of rounds; whichever of its workers is free takes the next
   one. */
#include "common.h"

static void dispatch(int number, void *with)
{
    (void)number;
    for (int i = 0; i < passes * AROUND; i++) give(with, rounds);
}

static void work(int number, void *with)
{
    int(*array)[COLUMNS] = calloc(1, sizeof(grid));
    if (!array) fail("allocate");
    for (int i = 0; i < passes; i++) {
        increment(array, take(with));
        if (number == 1) progress("dispatch-worker", i + 1, passes);
    }
    if (number == 1) printf("dispatch-worker: last element %d\n", array[ROWS - 1][COLUMNS - 1]);
    free(array);
}

int main(int count, char **words)
{
    read_arguments(count, words);
    struct slot *slots = calloc(groups, sizeof *slots);
    if (!slots) fail("allocate");
    for (int i = 0; i < groups; i++) {
        slot_init(&slots[i]);
        make(dispatch, i + 1, &slots[i]);
        for (int k = 1; k <= AROUND; k++) make(work, i * AROUND + k, &slots[i]);
    }
    join_all();
}
