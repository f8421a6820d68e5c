/* Workloads for allocators: heap NAME ARGUMENT... The allocator is whatever malloc is, so that one
 * can be preloaded. Says lines of `name value`; ends with 1 if a block was not as it was left.
 */
#include "heap.h"

#include <stdio.h>

static const struct {
    const char *name;
    int (*run)(char **arguments);
    int least;
    const char *arguments;
} workloads[] = {
    {"fast", fast, 2, "PAIRS BATCHES"},
    {"latency", latency, 7, "null|rt|mix|big THREADS OPERATIONS SLOTS REMOTE-PERCENT SEED FILE"},
    {"burst", burst, 5, "BLOCKS null|one|many ROUNDS SEED FILE"},
    {"fragment", fragment, 3, "MEGABYTES SEED QUIET-MS"},
    {"thread-churn", thread_churn, 1, "THREADS"},
    {"fork-churn", fork_churn, 2, "CHILDREN SEED"},
    {"larson", larson, 5, "THREADS GENERATIONS OPERATIONS SLOTS SEED"},
    {"hand-over", hand_over, 3, "PAIRS BLOCKS SIZE"},
    {"stress", stress, 4, "THREADS ROUNDS OPERATIONS SEED"},
    {"short-lives", short_lives, 3, "THREADS BLOCKS SEED"},
    {"random-pool", random_pool, 4, "THREADS OPERATIONS BLOCKS SEED"},
    {"cache-scratch", cache_scratch, 4, "THREADS ITERATIONS SIZE WRITES"},
    {"cache-thrash", cache_thrash, 4, "THREADS ITERATIONS SIZE WRITES"},
    {"replace", replace, 4, "THREADS OPERATIONS SLOTS SEED"},
    {"batches", batches, 2, "THREADS ITERATIONS"},
    {"large", large, 2, "ITERATIONS SEED"},
    {"in-runs", in_runs, 3, "THREADS BLOCKS ROUNDS"},
    {"in-shifts", in_shifts, 4, "THREADS BLOCKS ROUNDS SEED"},
    {"launch", launch, 2, "LIBRARY|- PROGRAM [ARGUMENT...]"},
};

int main(int count, char **arguments)
{
    size_t workload_count = sizeof workloads / sizeof *workloads;
    for (size_t i = 0; count > 1 && i < workload_count; i++)
        if (strcmp(arguments[1], workloads[i].name) == 0 && count - 2 >= workloads[i].least)
            return workloads[i].run(arguments + 2);
    for (size_t i = 0; i < workload_count; i++)
        fprintf(stderr, "heap %s %s\n", workloads[i].name, workloads[i].arguments);
    return 2;
}
