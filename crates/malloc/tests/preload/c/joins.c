// Destructors free these threads' buffers, and another thread than their creator joins them. The C
// library then frees its own data about them while it holds the stack-cache lock, which
// pthread_create and pthread_join take as well. An allocator that started a thread there would wait
// forever, with all signals blocked.
#define _GNU_SOURCE
#include "check.h"

#include <pthread.h>
#include <sys/mman.h>

enum { THREADS = 12, BUFFERS = 4, BUFFER = 600 << 10, STACK = 1 << 20 };

static pthread_key_t key;
static pthread_t threads[THREADS];
static pthread_barrier_t together;
static int count;
static int have_own_stacks;

static void free_buffers(void *all) {
    void **buffers = all;
    for (int i = 0; i < BUFFERS; i++) free(buffers[i]);
    free(buffers);
}

static void *work(void *nothing) {
    void **buffers = calloc(BUFFERS, sizeof *buffers);
    CHECK(buffers != NULL);
    for (int i = 0; i < BUFFERS; i++) {
        CHECK((buffers[i] = hide(malloc(BUFFER))) != NULL);
        memset(buffers[i], 1, BUFFER);
    }
    CHECK(pthread_setspecific(key, buffers) == 0);
    pthread_barrier_wait(&together);
    return nothing;
}

static void *make_all(void *nothing) {
    for (int i = 0; i < count; i++) {
        pthread_attr_t attributes;
        CHECK(pthread_attr_init(&attributes) == 0);
        if (have_own_stacks) {
            void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            CHECK(stack != MAP_FAILED);
            CHECK(pthread_attr_setstack(&attributes, stack, STACK) == 0);
        }
        CHECK(pthread_create(&threads[i], &attributes, work, NULL) == 0);
        CHECK(pthread_attr_destroy(&attributes) == 0);
    }
    return nothing;
}

static void join_all(int how_many, int own_stacks) {
    count = how_many;
    have_own_stacks = own_stacks;
    CHECK(pthread_key_create(&key, free_buffers) == 0);
    CHECK(pthread_barrier_init(&together, NULL, (unsigned)count) == 0);
    pthread_t maker;
    CHECK(pthread_create(&maker, NULL, make_all, NULL) == 0);
    CHECK(pthread_join(maker, NULL) == 0);
    // Each join waits for its thread to end, including its destructors.
    for (int i = 0; i < count; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

// A thread on a user-supplied stack: the join frees its descriptor.
static void own_stack(void) { join_all(1, 1); }
static void own_stacks(void) { join_all(THREADS, 1); }
// Enough threads to overflow the C library's stack cache, which a join then trims.
static void many_stacks(void) { join_all(THREADS, 0); }

static const struct named_case CASES[] = {
    {"own-stack", own_stack},
    {"own-stacks", own_stacks},
    {"many-stacks", many_stacks},
};

int main(int arguments_count, char **arguments) {
    (void)arguments_count;
    return run_case(CASES, sizeof CASES / sizeof *CASES, arguments);
}
