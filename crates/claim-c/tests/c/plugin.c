/* A region whose threads share a loop by the runtime that the plugin was linked with. */
#include <omp.h>

void add_up(long *sum, int *team) {
    long all = 0;
    int threads = 0;
#pragma omp parallel reduction(+ : all)
    {
#pragma omp single
        threads = omp_get_num_threads();
#pragma omp for schedule(static)
        for (int i = 0; i < 1000; i++)
            all += i;
    }
    *sum = all;
    *team = threads;
}
