/* Reports where this kernel puts pages, by asking the kernel itself page by page.
 *
 *   placement bind   binds memory to each node in turn and prints where its pages lie
 *   placement fill   from a CPU of each node, fills memory until every node has served, and
 *                    prints the nodes in the order in which they began to
 *
 * Static and without libnuma, so that it runs in a guest that has nothing else. The numbers are
 * those of linux/mempolicy.h, which is not everywhere installed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nodes.h"

enum { MPOL_BIND = 2, NODES_MAX = 64, PAGES_BOUND = 256, PAGES_ASKED = 64 };

static long page_bytes;

static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("placement: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

/* Whether the node has any memory: the kernel's list is like "0-2,5". */
static int has_memory(int node)
{
    FILE *file = fopen("/sys/devices/system/node/has_memory", "r");
    int first, last, found = 0;
    char separator;
    if (!file)
        fail("this kernel shows no nodes: %s", strerror(errno));
    while (!found && fscanf(file, "%d", &first) == 1) {
        last = first;
        if (fscanf(file, "%c", &separator) == 1 && separator == '-' &&
            fscanf(file, "%d%c", &last, &separator) < 1)
            fail("has_memory makes no sense");
        found = first <= node && node <= last;
    }
    fclose(file);
    return found;
}

static char *reserve(size_t bytes)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap of %zu bytes: %s", bytes, strerror(errno));
    /* A huge page would hide where its 512 small ones would have gone. */
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    return memory;
}

/* Writes `count` pages from `memory` on and asks for the node of each. */
static void touch(char *memory, int count, int *nodes)
{
    void *pages[PAGES_ASKED];
    for (int i = 0; i < count; i++) {
        pages[i] = memory + i * page_bytes;
        *(volatile char *)pages[i] = 1;
    }
    if (syscall(SYS_move_pages, 0, (unsigned long)count, pages, NULL, nodes, 0))
        fail("move_pages: %s", strerror(errno));
    for (int i = 0; i < count; i++)
        if (nodes[i] < 0 || nodes[i] >= NODES_MAX)
            fail("page %d has no node: %d", i, nodes[i]);
}

static void bind_to(int node)
{
    char *memory = reserve(PAGES_BOUND * page_bytes);
    unsigned long mask = 1UL << node;
    int counts[NODES_MAX] = {0}, nodes[PAGES_ASKED];
    if (syscall(SYS_mbind, memory, PAGES_BOUND * page_bytes, MPOL_BIND, &mask, NODES_MAX + 1, 0))
        fail("mbind to node %d: %s", node, strerror(errno));
    for (int from = 0; from < PAGES_BOUND; from += PAGES_ASKED) {
        touch(memory + from * page_bytes, PAGES_ASKED, nodes);
        for (int i = 0; i < PAGES_ASKED; i++)
            counts[nodes[i]]++;
    }
    printf("bound to %d:", node);
    for (int other = 0; other < NODES_MAX; other++)
        if (counts[other])
            printf(" %d pages on %d", counts[other], other);
    putchar('\n');
    munmap(memory, PAGES_BOUND * page_bytes);
}

static void fill_from(int node, int wanted)
{
    cpu_set_t one;
    int cpu = first_number("/sys/devices/system/node/node%d/cpulist", node);
    size_t bytes = (size_t)sysconf(_SC_PHYS_PAGES) * page_bytes;
    int seen[NODES_MAX] = {0}, nodes[PAGES_ASKED];
    if (cpu < 0)
        return;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one))
        fail("CPU %d: %s", cpu, strerror(errno));
    char *memory = reserve(bytes);
    printf("filled from %d:", node);
    for (size_t at = 0; wanted > 0 && at + PAGES_ASKED * page_bytes <= bytes;
         at += PAGES_ASKED * page_bytes) {
        touch(memory + at, PAGES_ASKED, nodes);
        for (int i = 0; i < PAGES_ASKED; i++)
            if (!seen[nodes[i]]++) {
                printf(" %d", nodes[i]);
                wanted--;
            }
    }
    putchar('\n');
}

int main(int count, char **words)
{
    const char *what = count == 2 ? words[1] : "";
    int nodes = 0;
    page_bytes = sysconf(_SC_PAGESIZE);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int node = 0; node < NODES_MAX; node++)
        nodes += has_memory(node);
    for (int node = 0; node < NODES_MAX; node++) {
        if (!has_memory(node))
            continue;
        if (!strcmp(what, "bind")) {
            bind_to(node);
        } else if (!strcmp(what, "fill")) {
            /* In a process of its own, whose end gives everything back. */
            int status;
            pid_t child = fork();
            if (child < 0)
                fail("fork: %s", strerror(errno));
            if (child == 0) {
                fill_from(node, nodes);
                exit(0);
            }
            if (waitpid(child, &status, 0) < 0 || status)
                fail("filling from node %d ended with status %d", node, status);
        } else {
            fputs("usage: placement bind|fill\n", stderr);
            return 2;
        }
    }
    return 0;
}
