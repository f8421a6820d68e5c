/* An array of arrays is made and dropped in each pass: a block for the outer one and one for each
   row. */
#include "common.h"

static void allocate(int number, void *with)
{
    (void)with;
    long sum = 0;
    for (int pass = 0; pass < passes; pass++) {
        int **rows = malloc(ROWS * sizeof *rows);
        if (!rows) fail("allocate");
        for (int i = 0; i < ROWS; i++) {
            rows[i] = malloc(COLUMNS * sizeof **rows);
            if (!rows[i]) fail("allocate");
            for (int j = 0; j < COLUMNS; j++) rows[i][j] = 1;
        }
        rows[pass % ROWS][4] = 2;
        sum += rows[0][0] + rows[pass % ROWS][4];
        for (int i = 0; i < ROWS; i++) free(rows[i]);
        free(rows);
        if (number == 1) progress("alloc", pass + 1, passes);
    }
    if (number == 1) printf("alloc: sum %ld\n", sum);
}

int main(int count, char **words)
{
    read_arguments(count, words);
    for (int i = 1; i <= groups; i++) make(allocate, i, NULL);
    join_all();
}
