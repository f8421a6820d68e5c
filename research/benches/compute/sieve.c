/* Counts the primes up to a million by the sieve of Eratosthenes, as often as the first line of
 * input says. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAST = 1000000 };

/* Not inlined, so that the rounds stay rounds. */
__attribute__((noinline)) static int32_t sieve(bool *composite)
{
    memset(composite, 0, LAST + 1);
    int32_t count = 0;
    for (int32_t i = 2; i <= LAST; i++)
        if (!composite[i]) {
            count++;
            if (i <= LAST / i)
                for (int32_t j = i * i; j <= LAST; j += i)
                    composite[j] = true;
        }
    return count;
}

int main(void)
{
    int rounds;
    if (scanf("%d", &rounds) != 1)
        return 2;
    bool *composite = malloc(LAST + 1);
    if (!composite)
        return 3;
    int32_t total = 0;
    for (int r = 0; r < rounds; r++)
        total += sieve(composite);
    printf("%d\n", total);
    free(composite);
    return 0;
}
