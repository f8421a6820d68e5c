/* Adds one to every element of an array of 5000 integers, pass after pass. The number of passes
 * is the first line of input, in thousands. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 5000 };

/* Not inlined, or the compiler would add the number of passes at once. */
__attribute__((noinline)) static void pass(int32_t *cells)
{
    for (int i = 0; i < CELLS; i++)
        cells[i]++;
}

int main(void)
{
    int rounds;
    if (scanf("%d", &rounds) != 1)
        return 2;
    int32_t *cells = calloc(CELLS, sizeof *cells);
    if (!cells)
        return 3;
    for (int r = 0; r < rounds * 1000; r++)
        pass(cells);
    uint32_t sum = 0;
    for (int i = 0; i < CELLS; i++)
        sum = sum * 31 + (uint32_t)cells[i];
    printf("%d\n", (int32_t)sum);
    free(cells);
    return 0;
}
