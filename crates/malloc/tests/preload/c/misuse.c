// Misuse of malloc. Each case prints "passed" if nothing stops it.
#define _GNU_SOURCE
#include "check.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

enum { SMALL = 40, MEDIUM = 20000, LARGE = 1 << 20, MAPPED = 600 << 20 };

static void *volatile last;

static char *get(size_t size) {
    char *block = hide(malloc(size));
    CHECK(block != NULL);
    return block;
}

static void put(void *block) {
    free(hide(block));
}

// Allocates and frees other blocks of this size, so that the cache changes.
static void meanwhile(size_t size) {
    char *blocks[400];
    for (int i = 0; i < 400; i++) blocks[i] = get(size);
    for (int i = 0; i < 400; i++) put(blocks[i]);
}

static void *put_it(void *block) {
    put(block);
    return NULL;
}

static void *put_it_twice(void *block) {
    put(block);
    put(block);
    return NULL;
}

static void elsewhere(void *(*run)(void *), void *block) {
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, run, block));
    pthread_join(thread, NULL);
}

static void twice(size_t size) {
    char *before = get(size), *block = get(size), *behind = get(size);
    last = before, last = behind;
    put(block);
    put(block);
}

static void small_twice(void) { twice(SMALL); }
static void medium_twice(void) { twice(MEDIUM); }
static void large_twice(void) { twice(LARGE); }
static void mapped_twice(void) { twice(MAPPED); }

static void small_twice_later(void) {
    char *other = get(SMALL), *block = get(SMALL);
    last = other;
    put(block);
    char *blocks[400];
    for (int i = 0; i < 400; i++) blocks[i] = get(SMALL + 60);
    for (int i = 0; i < 400; i++) put(blocks[i]);
    for (int i = 0; i < 3; i++) meanwhile(SMALL);
    put(block);
    for (int i = 0; i < 3; i++) meanwhile(SMALL);
}

static void small_twice_elsewhere(void) {
    last = get(SMALL);
    elsewhere(put_it_twice, get(SMALL));
}

static void small_here_and_elsewhere(void) {
    char *block = get(SMALL);
    last = get(SMALL);
    put(block);
    elsewhere(put_it, block);
    for (int i = 0; i < 3; i++) meanwhile(SMALL);
    for (int i = 0; i < 3; i++) meanwhile(SMALL + 500);
}

static void small_middle(void) { put(get(SMALL) + 16); }
static void small_odd(void) { put(get(SMALL) + 4); }
static void small_middle_elsewhere(void) { elsewhere(put_it, get(SMALL) + 16); }
static void small_odd_elsewhere(void) { elsewhere(put_it, get(SMALL) + 4); }
static void medium_odd(void) { put(get(MEDIUM) + 100); }
static void large_middle(void) { put(get(LARGE) + 65536); }
static void large_odd(void) { put(get(LARGE) + 100); }
static void mapped_middle(void) { put(get(MAPPED) + 65536); }

static void stack(void) {
    char bytes[100];
    put(bytes + 16);
}

static void literal(void) {
    static char bytes[1000];
    put(bytes);
}

static void mapping(void) {
    put(mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static void number(void) { put((void *)(uintptr_t)0x12345678); }

static void never_given_out(void) {
    // An address of the allocator's that never was a block.
    put((char *)((uintptr_t)get(LARGE) + ((size_t)1 << 30)));
}

static void small_realloc_after_free(void) {
    char *block = get(SMALL);
    last = get(SMALL);
    put(block);
    last = realloc(hide(block), 3000);
}

static void medium_realloc_after_free(void) {
    char *block = get(MEDIUM);
    for (int i = 0; i < 20; i++) last = get(MEDIUM);
    put(block);
    last = realloc(hide(block), 300000);
}

static void large_realloc_after_free(void) {
    char *block = get(LARGE);
    put(block);
    last = realloc(hide(block), 3 * LARGE);
}

static void large_size_after_free(void) {
    char *block = get(LARGE);
    put(block);
    last = (void *)malloc_usable_size(hide(block));
}

static void write_after_free(void) {
    char *block = get(SMALL);
    last = get(SMALL);
    put(block);
    memset(hide(block), 0xff, SMALL);
    meanwhile(SMALL);
}

static void overflow(void) {
    // Overflows into the next block. The allocator's metadata of both lies elsewhere and stays
    // intact.
    char *one = get(SMALL), *two = get(SMALL);
    memset(hide(one), 0xff, 3 * SMALL);
    put(one);
    put(two);
    meanwhile(SMALL);
}

// Reads and writes outside of blocks, in ways that hardening detects.

static void over_large(void) { get(LARGE)[LARGE] = 1; }
static void over_odd(void) {
    // Up to 16 bytes are padding.
    get(LARGE + 7)[LARGE + 16] = 1;
}
static void under_large(void) {
    // A size of 1 MiB and a page leaves room before the block.
    char *block = get(LARGE + 4096);
    last = block;
    *(char *)hide(block - 1) = 1;
}
static void over_mapped(void) { get(MAPPED)[MAPPED] = 1; }
static void under_mapped(void) { *(char *)hide(get(MAPPED) - 1) = 1; }

static void large_after_free(void) {
    char *block = get(LARGE);
    put(block);
    *(char *)hide(block + 1000) = 1;
}

static void over_small(void) {
    // The allocator guards one of several thousand, if the mode says so.
    for (int i = 0; i < 3000; i++) get(48)[48] = 1;
}

static void small_after_free(void) {
    for (int i = 0; i < 3000; i++) {
        char *block = get(SMALL);
        put(block);
        *(volatile char *)hide(block + 8);
    }
}

static void reused(size_t size) {
    char *block = get(size);
    last = get(size);
    put(block);
    ((char *)hide(block))[size / 2] ^= 4;
    // The lowest free block of a region is allocated next.
    for (int i = 0; i < 400; i++) last = get(size);
}

static void small_reused(void) { reused(SMALL); }
static void medium_reused(void) { reused(MEDIUM); }

static void left_behind(void) {
    // A block's contents must be gone when the block is allocated again.
    char *block = get(SMALL);
    strcpy(block, "secret");
    put(block);
    for (int i = 0; i < 400; i++) {
        char *other = get(SMALL);
        CHECK(other != block || strcmp(other, "secret") != 0);
    }
}

static void signal_sent(void) {
    // A signal that is not a fault.
    last = get(LARGE);
    raise(SIGSEGV);
}

static void handler_of_own(int signal) {
    (void)signal;
    puts("passed");
    _exit(0);
}

static void handled(void) {
    signal(SIGSEGV, handler_of_own);
    over_large();
}

int main(int count, char **arguments) {
    (void)count;
    setvbuf(stdout, NULL, _IONBF, 0);
    // A class's first freed block is checked thoroughly.
    meanwhile(SMALL);
    meanwhile(MEDIUM);
    static const struct named_case cases[] = {
        {"small-twice", small_twice},
        {"small-twice-later", small_twice_later},
        {"small-twice-elsewhere", small_twice_elsewhere},
        {"small-here-and-elsewhere", small_here_and_elsewhere},
        {"medium-twice", medium_twice},
        {"large-twice", large_twice},
        {"mapped-twice", mapped_twice},
        {"small-middle", small_middle},
        {"small-odd", small_odd},
        {"small-middle-elsewhere", small_middle_elsewhere},
        {"small-odd-elsewhere", small_odd_elsewhere},
        {"medium-odd", medium_odd},
        {"large-middle", large_middle},
        {"large-odd", large_odd},
        {"mapped-middle", mapped_middle},
        {"stack", stack},
        {"static", literal},
        {"mapping", mapping},
        {"number", number},
        {"never-given-out", never_given_out},
        {"small-realloc-after-free", small_realloc_after_free},
        {"medium-realloc-after-free", medium_realloc_after_free},
        {"large-realloc-after-free", large_realloc_after_free},
        {"large-size-after-free", large_size_after_free},
        {"write-after-free", write_after_free},
        {"overflow", overflow},
        {"over-large", over_large},
        {"over-odd", over_odd},
        {"under-large", under_large},
        {"over-mapped", over_mapped},
        {"under-mapped", under_mapped},
        {"large-after-free", large_after_free},
        {"over-small", over_small},
        {"small-after-free", small_after_free},
        {"small-reused", small_reused},
        {"medium-reused", medium_reused},
        {"left-behind", left_behind},
        {"signal-sent", signal_sent},
        {"handled", handled}};
    return run_case(cases, sizeof cases / sizeof *cases, arguments);
}
