/* Parallel regions: sizes of their teams, with the most that the program may know of. */
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

static void narrow(int cpus) {
    cpu_set_t all, some;
    sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(&some);
    for (int cpu = 0, taken = 0; cpu < CPU_SETSIZE && taken < cpus; cpu++)
        if (CPU_ISSET(cpu, &all)) {
            CPU_SET(cpu, &some);
            taken++;
        }
    sched_setaffinity(0, sizeof some, &some);
}

static int plain(void) {
    int team = 0;
#pragma omp parallel
#pragma omp single
    team = omp_get_num_threads();
    return team;
}

static int loop(void) {
    int team = 0;
    long sum = 0;
#pragma omp parallel for schedule(dynamic, 7) reduction(+ : sum)
    for (int i = 0; i < 1000; i++) {
        sum += i;
        if (i == 0)
            team = omp_get_num_threads();
    }
    return sum == 499500 ? team : -1;
}

static int still(void) {
    int team = 0;
    double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (int i = 0; i < 1000; i++) {
        sum += i * 0.5;
        if (i == 0)
            team = omp_get_num_threads();
    }
    return sum == 249750.0 ? team : -1;
}

static int named(void) {
    int team = 0;
#pragma omp parallel num_threads(3)
#pragma omp single
    team = omp_get_num_threads();
    return team;
}

static int parts(void) {
    int team = 0;
#pragma omp parallel sections
    {
#pragma omp section
        team = omp_get_num_threads();
#pragma omp section
        sched_yield();
    }
    return team;
}

int main(void) {
    printf("most %d, teams %d %d %d %d, named %d\n", omp_get_max_threads(), plain(), loop(), still(),
           parts(), named());
    narrow(1);
    printf("most %d, teams %d %d %d %d, named %d\n", omp_get_max_threads(), plain(), loop(), still(),
           parts(), named());
    printf("online %ld, configured %ld, page %d\n", sysconf(_SC_NPROCESSORS_ONLN),
           sysconf(_SC_NPROCESSORS_CONF), sysconf(_SC_PAGESIZE) >= 4096);
    return 0;
}
