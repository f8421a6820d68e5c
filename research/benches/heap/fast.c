/* Cost of a malloc and its free in the plain case: ns, the best of five. */
#include "heap.h"

#include <stdio.h>

enum { TRIES = 5, BATCH = 10000, BATCH_SIZE = 64 };

/* One block, again and again. */
static double pair_ns(size_t size, uint64_t pairs)
{
    double start = now_s();
    for (uint64_t i = 0; i < pairs; i++) {
        volatile char *block = malloc(size);
        *block = 1;
        free((void *)block);
    }
    return (now_s() - start) / (double)pairs * 1e9;
}

typedef enum { LIFO, FIFO, RANDOM } order;

/* Ten thousand blocks, then all of them freed in this order. */
static double batch_ns(const uint32_t *places, uint64_t batches)
{
    static void *blocks[BATCH];
    double start = now_s();
    for (uint64_t i = 0; i < batches; i++) {
        for (int k = 0; k < BATCH; k++) {
            blocks[k] = malloc(BATCH_SIZE);
            *(uint32_t *)blocks[k] = (uint32_t)k;
        }
        for (int k = 0; k < BATCH; k++) {
            uint32_t place = places[k];
            if (*(uint32_t *)blocks[place] != place)
                forged(blocks[place], BATCH_SIZE);
            free(blocks[place]);
        }
    }
    return (now_s() - start) / (double)(batches * BATCH) * 1e9;
}

static void arrange(uint32_t *places, order how)
{
    choices c = {11};
    for (uint32_t k = 0; k < BATCH; k++)
        places[k] = how == LIFO ? BATCH - 1 - k : k;
    for (uint32_t k = BATCH - 1; how == RANDOM && k > 0; k--) {
        uint32_t other = (uint32_t)below(&c, k + 1), place = places[k];
        places[k] = places[other];
        places[other] = place;
    }
}

int fast(char **arguments)
{
    static const size_t sizes[] = {16, 64, 256, 1000, 4000, 20000, 100000};
    static const char *orders[] = {"batch-lifo", "batch-fifo", "batch-random"};
    static uint32_t places[BATCH];
    uint64_t pairs = number(arguments[0]), batches_wanted = number(arguments[1]);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char name[32];
        snprintf(name, sizeof name, "pair-%zu", sizes[i]);
        double best = 1e300;
        for (int try = 0; try < TRIES; try++) {
            double took = pair_ns(sizes[i], pairs);
            best = took < best ? took : best;
        }
        tell(name, best);
    }
    for (order how = LIFO; how <= RANDOM; how++) {
        arrange(places, how);
        double best = 1e300;
        for (int try = 0; try < TRIES; try++) {
            double took = batch_ns(places, batches_wanted);
            best = took < best ? took : best;
        }
        tell(orders[how], best);
    }
    return 0;
}
