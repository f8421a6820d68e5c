/* Fills 8 MiB from a CPU of each node that it may use, and waits until it is killed. */
#define _GNU_SOURCE
#include "nodes.h"
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 8 << 20, NODES = 2 };

int main(void)
{
    cpu_set_t all;
    sched_getaffinity(0, sizeof all, &all);
    char *memory = mmap(NULL, NODES * BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return 1;
    madvise(memory, NODES * BYTES, MADV_NOHUGEPAGE);
    for (int node = 0; node < NODES; node++) {
        int first = first_number("/sys/devices/system/node/node%d/cpulist", node);
        cpu_set_t one;
        CPU_ZERO(&one);
        /* Four CPUs a node. */
        for (int cpu = first; cpu < first + 4; cpu++)
            if (CPU_ISSET(cpu, &all))
                CPU_SET(cpu, &one);
        if (sched_setaffinity(0, sizeof one, &one) != 0)
            return 2;
        memset(memory + node * (size_t)BYTES, 1, BYTES);
    }
    sched_setaffinity(0, sizeof all, &all);
    printf("filled\n");
    fflush(stdout);
    for (;;)
        pause();
}
