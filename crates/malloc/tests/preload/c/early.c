// A library whose constructor allocates, in two threads, before any other code of the program runs.
#define _GNU_SOURCE
#include "check.h"

#include <pthread.h>

static char *blocks[100];

static void *other(void *none) {
    for (int i = 50; i < 100; i++) {
        blocks[i] = hide(calloc(1, (size_t)i * 100));
        CHECK(blocks[i] != NULL && blocks[i][i * 99] == 0);
    }
    return none;
}

__attribute__((constructor)) static void early(void) {
    for (int i = 0; i < 50; i++) blocks[i] = hide(malloc((size_t)i * 1000));
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, other, NULL));
    pthread_join(thread, NULL);
    CHECK(setenv("EARLY", "has been here", 1) == 0);
}

__attribute__((destructor)) static void late(void) {
    for (int i = 0; i < 100; i++) free(blocks[i]);
    char *block = hide(malloc(3000));
    CHECK(block != NULL);
    free(block);
}
