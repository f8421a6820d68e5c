// Shared by the C programs of these tests: a check that ends the process, and helpers that inspect
// memory.
#ifndef CHECK_H
#define CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                             \
    do {                                                                             \
        if (!(condition)) {                                                          \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);     \
            exit(1);                                                                 \
        }                                                                            \
    } while (0)


// Hides a pointer from the optimizer, which has built-in knowledge of malloc.
static inline void *hide(void *block) {
    __asm__ volatile("" : "+r"(block) : : "memory");
    return block;
}

static inline size_t hide_size(size_t size) {
    __asm__ volatile("" : "+r"(size));
    return size;
}

static inline int is_aligned(const void *block, size_t align) {
    return ((uintptr_t)block & (align - 1)) == 0;
}

// Size of the resident memory in bytes.
static inline long resident(void) {
    long pages = 0, ignored;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL);
    CHECK(fscanf(file, "%ld %ld", &ignored, &pages) == 2);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

// Random numbers, with a state that malloc cannot disturb.
static inline uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

struct named_case {
    const char *name;
    void (*run)(void);
};

static inline int run_case(const struct named_case *cases, int count, char **arguments) {
    for (int i = 0; i < count; i++) {
        if (arguments[1] && strcmp(cases[i].name, arguments[1]) == 0) {
            cases[i].run();
            puts("passed");
            return 0;
        }
    }
    fprintf(stderr, "no such case\n");
    return 2;
}

#endif
