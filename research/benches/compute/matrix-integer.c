/* Multiplies two 384 x 384 matrices of integers by the textbook, as often as the first line of
   input says. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 384 };
typedef int32_t matrix[N][N];

static void fill(matrix a, matrix b)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = (i * 7 + j * 3) % 10;
            b[i][j] = (i * 5 + j * 9) % 10;
        }
}

/* Not inlined, so that the rounds stay rounds. */
__attribute__((noinline)) static void multiply(matrix a, matrix b, matrix c)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            int32_t sum = 0;
            for (int k = 0; k < N; k++)
                sum += a[i][k] * b[k][j];
            c[i][j] = sum;
        }
}

static int32_t check(matrix c)
{
    uint32_t sum = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            sum = sum * 31 + (uint32_t)c[i][j];
    return (int32_t)sum;
}

int main(void)
{
    int rounds;
    if (scanf("%d", &rounds) != 1)
        return 2;
    int32_t (*a)[N] = malloc(sizeof(matrix));
    int32_t (*b)[N] = malloc(sizeof(matrix));
    int32_t (*c)[N] = malloc(sizeof(matrix));
    if (!a || !b || !c)
        return 3;
    fill(a, b);
    for (int r = 0; r < rounds; r++)
        multiply(a, b, c);
    printf("%d\n", check(c));
    free(a);
    free(b);
    free(c);
    return 0;
}
