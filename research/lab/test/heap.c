/* Reports where a preloaded allocator puts blocks, by asking the kernel block by block.
 *
 *   heap places        five ways in which memory gets to the wrong node, and how much does not
 *   heap fill NODE     from a CPU of that node, allocates until every node has served, and
 *                      prints the nodes in the order in which they began to
 *
 * Built without any library but the C library's, so that the allocator is the only thing that
 * differs. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nodes.h"

enum { NODES_MAX = 64, BLOCKS = 1200, PAGE = 4096 };

static int nodes, cpu_of[NODES_MAX];

static void find_nodes(void)
{
    for (nodes = 0; nodes < NODES_MAX; nodes++) {
        cpu_of[nodes] = first_number("/sys/devices/system/node/node%d/cpulist", nodes);
        if (cpu_of[nodes] < 0)
            return;
    }
}

static void go_to(int node)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu_of[node], &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        perror("heap: cannot pin a thread");
        exit(1);
    }
}

static int node_of(void *block)
{
    void *page = (void *)((uintptr_t)block & ~(uintptr_t)(PAGE - 1));
    int status = -1;
    if (syscall(SYS_move_pages, 0, 1, &page, NULL, &status, 0) != 0)
        return -1;
    return status;
}

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* 16 bytes to 98 KiB, small ones more often. */
static size_t random_size(uint64_t *state)
{
    size_t size = 16u << random_next(state) % 13;
    size += random_next(state) % size;
    return size > 98304 ? 98304 : size;
}

/* Allocates and touches. How many of the blocks begin on the node. */
static int allocate(void **blocks, int count, int node, uint64_t seed)
{
    int right = 0;
    for (int i = 0; i < count; i++) {
        size_t size = random_size(&seed);
        blocks[i] = malloc(size);
        if (!blocks[i]) {
            fputs("heap: out of memory\n", stderr);
            exit(1);
        }
        memset(blocks[i], 1, size);
        right += node_of(blocks[i]) == node;
    }
    return right;
}

static void release(void **blocks, int count)
{
    for (int i = 0; i < count; i++)
        free(blocks[i]);
}

/* One thread of a scenario, at its node. */
struct task {
    int node, right;
    uint64_t seed;
    void *blocks[BLOCKS];
    void (*run)(struct task *);
};

static void *run_task(void *argument)
{
    struct task *task = argument;
    go_to(task->node);
    task->run(task);
    return NULL;
}

static void start(struct task *task, pthread_t *thread, int node, void (*run)(struct task *))
{
    task->node = node;
    task->run = run;
    task->seed = 88172645463325252u + (uint64_t)node;
    task->right = 0;
    if (pthread_create(thread, NULL, run_task, task) != 0) {
        fputs("heap: cannot start a thread\n", stderr);
        exit(1);
    }
}

static void only(struct task *task, int node, void (*run)(struct task *))
{
    pthread_t thread;
    start(task, &thread, node, run);
    pthread_join(thread, NULL);
}

static void keep(struct task *task)
{
    task->right = allocate(task->blocks, BLOCKS, task->node, task->seed);
}

static void keep_and_free(struct task *task)
{
    keep(task);
    release(task->blocks, BLOCKS);
}

static void free_then_keep(struct task *task)
{
    release(task->blocks, BLOCKS);
    keep(task);
}

/* Allocates and frees here, then goes to the last node. */
static void migrate(struct task *task)
{
    keep_and_free(task);
    task->node = nodes - 1;
    go_to(task->node);
    keep_and_free(task);
}

static struct task tasks[NODES_MAX];

static void tell(const char *what, int right, int of)
{
    printf("%s %.1f\n", what, 100.0 * right / of);
}

static void places(void)
{
    pthread_t threads[NODES_MAX];
    int right = 0;
    for (int node = 0; node < nodes; node++)
        start(&tasks[node], &threads[node], node, keep_and_free);
    for (int node = 0; node < nodes; node++) {
        pthread_join(threads[node], NULL);
        right += tasks[node].right;
    }
    tell("own", right, nodes * BLOCKS);
    only(&tasks[0], 0, keep_and_free);
    only(&tasks[0], nodes - 1, keep_and_free);
    tell("recycled", tasks[0].right, BLOCKS);
    only(&tasks[0], 0, migrate);
    tell("migrated", tasks[0].right, BLOCKS);
    /* What node 0 has allocated is freed on the last node, which then allocates. */
    only(&tasks[0], 0, keep);
    only(&tasks[0], nodes - 1, free_then_keep);
    tell("consumer", tasks[0].right, BLOCKS);
    /* And node 0 after it. */
    release(tasks[0].blocks, BLOCKS);
    only(&tasks[0], 0, keep);
    tell("producer", tasks[0].right, BLOCKS);
}

static void fill(int node)
{
    int served[NODES_MAX] = {0}, begun = 0;
    go_to(node);
    for (long i = 0; i < 1000000 && begun < nodes; i++) {
        size_t size = 60000;
        char *block = malloc(size);
        if (!block)
            break;
        memset(block, 1, size);
        int at = node_of(block + size / 2);
        if (at >= 0 && at < nodes && ++served[at] == 64)
            printf("%s%d", begun++ ? " " : "", at);
    }
    puts("");
}

int main(int count, char **arguments)
{
    find_nodes();
    if (count == 2 && strcmp(arguments[1], "places") == 0) {
        places();
        return 0;
    }
    if (count == 3 && strcmp(arguments[1], "fill") == 0) {
        fill(atoi(arguments[2]));
        return 0;
    }
    fputs("usage: heap places | heap fill NODE\n", stderr);
    return 2;
}
