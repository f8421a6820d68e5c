/* Adds one to every element of an array of 850 rows of 5, pass after pass. The number of passes
 * is the first line of input, in thousands. Rows are allocated one by one and reached through
 * pointers, as the language's are; see the notes on the flat variant. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 850, COLUMNS = 5 };

/* Not inlined, or the compiler would add the number of passes at once. */
__attribute__((noinline)) static void pass(int32_t **grid)
{
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            grid[i][j]++;
}

int main(void)
{
    int rounds;
    if (scanf("%d", &rounds) != 1)
        return 2;
    int32_t **grid = malloc(ROWS * sizeof *grid);
    if (!grid)
        return 3;
    for (int i = 0; i < ROWS; i++)
        if (!(grid[i] = calloc(COLUMNS, sizeof **grid)))
            return 3;
    for (int r = 0; r < rounds * 1000; r++)
        pass(grid);
    uint32_t sum = 0;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            sum = sum * 31 + (uint32_t)grid[i][j];
    printf("%d\n", (int32_t)sum);
    for (int i = 0; i < ROWS; i++)
        free(grid[i]);
    free(grid);
    return 0;
}
