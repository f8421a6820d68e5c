// Checks malloc and its relatives against C, POSIX and the GNU library's manual. Every case also
// passes with the system's malloc.
#define _GNU_SOURCE
#include "check.h"

// mallinfo is deprecated but must exist.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <sys/mman.h>

static void alignment(void) {
    for (size_t size = 0; size < 5000; size++) {
        char *block = hide(malloc(size));
        CHECK(block != NULL && is_aligned(block, 16));
        CHECK(malloc_usable_size(block) >= size);
        memset(block, 1, malloc_usable_size(block));
        free(block);
    }
    for (size_t size = 1; size < (size_t)1 << 30; size += size / 3 + 1) {
        char *block = hide(malloc(size));
        CHECK(block != NULL && is_aligned(block, 16));
        CHECK(malloc_usable_size(block) >= size);
        block[0] = 1;
        block[size - 1] = 2;
        free(block);
    }
}

static void nothing(void) {
    // An allocation of 0 bytes returns a block, distinct from all others.
    enum { COUNT = 200 };
    void *blocks[COUNT];
    for (int i = 0; i < COUNT; i++) {
        switch (i % 4) {
        case 0: blocks[i] = malloc(hide_size(0)); break;
        case 1: blocks[i] = calloc(hide_size(0), 7); break;
        case 2: blocks[i] = realloc(NULL, hide_size(0)); break;
        default: CHECK(posix_memalign(&blocks[i], 64, hide_size(0)) == 0);
        }
        CHECK(blocks[i] != NULL);
        for (int j = 0; j < i; j++) CHECK(blocks[i] != blocks[j]);
    }
    for (int i = 0; i < COUNT; i++) free(blocks[i]);
    free(NULL);
    CHECK(malloc_usable_size(NULL) == 0);
    void *block = realloc(hide(malloc(10)), hide_size(0));
    CHECK(block == NULL);
}

static void zeroes(void) {
    // calloc must zero memory that was written to before.
    for (size_t size = 1; size < (size_t)40 << 20; size += size / 2 + 7) {
        for (int round = 0; round < 3; round++) {
            char *block = hide(malloc(size));
            CHECK(block != NULL);
            memset(block, 0xa5, size);
            free(hide(block));
            char *zero = hide(calloc(size / 2 + 1, 2));
            CHECK(zero != NULL && is_aligned(zero, 16));
            for (size_t i = 0; i < size; i++) CHECK(zero[i] == 0);
            memset(zero, 0x5a, size);
            free(zero);
        }
    }
}

static void overflow(void) {
    static const size_t pairs[][2] = {
        {SIZE_MAX, 2}, {2, SIZE_MAX}, {SIZE_MAX / 2 + 1, 2}, {(size_t)1 << 32, (size_t)1 << 32},
        {SIZE_MAX, SIZE_MAX}, {SIZE_MAX / 16 + 1, 16}, {SIZE_MAX, 1}, {1, (size_t)PTRDIFF_MAX + 1}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        size_t count = hide_size(pairs[i][0]), size = hide_size(pairs[i][1]);
        errno = 0;
        CHECK(hide(calloc(count, size)) == NULL && errno == ENOMEM);
        char *block = hide(malloc(10));
        strcpy(block, "remains");
        errno = 0;
        CHECK(hide(reallocarray(block, count, size)) == NULL && errno == ENOMEM);
        CHECK(strcmp(block, "remains") == 0);
        free(block);
    }
}

static void too_large(void) {
    static const size_t sizes[] = {
        SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 15, SIZE_MAX - 4095, SIZE_MAX - 65535,
        (size_t)PTRDIFF_MAX + 1, (size_t)PTRDIFF_MAX, PTRDIFF_MAX - 65536, (size_t)1 << 62};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t size = hide_size(sizes[i]);
        errno = 0;
        CHECK(hide(malloc(size)) == NULL && errno == ENOMEM);
        char *block = hide(malloc(100));
        memset(block, 7, 100);
        errno = 0;
        CHECK(hide(realloc(block, size)) == NULL && errno == ENOMEM);
        for (int j = 0; j < 100; j++) CHECK(block[j] == 7);
        free(block);
        errno = 0;
        CHECK(hide(aligned_alloc(64, size)) == NULL && errno == ENOMEM);
        void *untouched = &size;
        CHECK(posix_memalign(&untouched, 64, size) == ENOMEM && untouched == &size);
        errno = 0;
        CHECK(hide(valloc(size)) == NULL && errno == ENOMEM);
        errno = 0;
        CHECK(hide(pvalloc(size)) == NULL && errno == ENOMEM);
    }
}

static void sparse(void) {
    size_t size = (size_t)5 << 30;
    char *block = hide(malloc(size));
    CHECK(block != NULL && malloc_usable_size(block) >= size);
    long before = resident();
    for (size_t i = 0; i < size; i += (size_t)256 << 20) block[i] = (char)(i >> 28);
    for (size_t i = 0; i < size; i += (size_t)256 << 20) CHECK(block[i] == (char)(i >> 28));
    CHECK(resident() - before < 64 << 20);
    // Shrinks it to half, then grows it beyond its first size.
    block = hide(realloc(block, size / 4));
    CHECK(block != NULL && block[(size_t)256 << 20] == 1);
    block = hide(realloc(block, size / 4 + ((size_t)300 << 20)));
    CHECK(block != NULL && block[(size_t)256 << 20] == 1);
    free(block);
    char *zero = hide(calloc(size, 1));
    CHECK(zero != NULL && zero[size - 1] == 0 && zero[size / 2] == 0);
    free(zero);
}

// ---- realloc ---------------------------------------------------------------------------------

static void fill(unsigned char *block, size_t size, unsigned seed) {
    for (size_t i = 0; i < size; i++) block[i] = (unsigned char)(i * 7 + seed);
}

static int is_filled(const unsigned char *block, size_t size, unsigned seed) {
    for (size_t i = 0; i < size; i++)
        if (block[i] != (unsigned char)(i * 7 + seed)) return 0;
    return 1;
}

static void resize(void) {
    static const size_t sizes[] = {1,      15,     16,      17,      100,     256,       257,
                                   1000,   1024,   1025,    4096,    5000,    16384,     16385,
                                   65536,  65537,  200000,  262144,  262145,  300000,    1000000,
                                   4 << 20, (4 << 20) + 1, 9 << 20, 70 << 20, 300 << 20};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    for (int from = 0; from < COUNT; from++) {
        for (int to = 0; to < COUNT; to++) {
            // Among large sizes, a few pairs suffice.
            if (sizes[from] > 4 << 20 && sizes[to] > 4 << 20 && (from + to) % 2) continue;
            if ((sizes[from] > 60 << 20 || sizes[to] > 60 << 20) && (from * to) % 5) continue;
            size_t looked = sizes[from] < 1 << 20 ? sizes[from] : 1 << 20;
            size_t kept = looked < sizes[to] ? looked : sizes[to];
            unsigned char *block = hide(malloc(sizes[from]));
            CHECK(block != NULL);
            fill(block, looked, from);
            block = hide(realloc(block, sizes[to]));
            CHECK(block != NULL && is_aligned(block, 16));
            CHECK(malloc_usable_size(block) >= sizes[to]);
            CHECK(is_filled(block, kept, from));
            block[sizes[to] - 1] = 1;
            free(block);
        }
    }
}

static void grow(void) {
    // Grows a buffer in steps, next to another that grows, too.
    unsigned char *one = NULL, *two = NULL;
    for (size_t size = 1; size < 3 << 20; size += size / 9 + 1) {
        one = hide(realloc(one, size));
        two = hide(reallocarray(two, size, 2));
        CHECK(one != NULL && two != NULL);
        CHECK(is_filled(one, size - size / 10 - 1 > size ? 0 : (size - 1) * 9 / 10, 3));
        fill(one, size, 3);
        memset(two, 9, 2 * size);
        CHECK(is_filled(one, size, 3));
    }
    for (size_t size = 3 << 20; size > 0; size /= 3) {
        one = hide(realloc(one, size));
        CHECK(one != NULL && is_filled(one, size < 1000 ? size : 1000, 3));
    }
    free(one);
    free(two);
}

static void shrink(void) {
    // A block that shrinks must return most of its memory.
    enum { COUNT = 40 };
    char *blocks[COUNT];
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = hide(malloc(8 << 20));
        memset(blocks[i], i, 8 << 20);
    }
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = hide(realloc(blocks[i], 1000));
        CHECK(blocks[i] != NULL && malloc_usable_size(blocks[i]) < 1 << 20);
        for (int j = 0; j < 1000; j++) CHECK(blocks[i][j] == i);
    }
    malloc_trim(0);
    CHECK(resident() < 60 << 20);
    for (int i = 0; i < COUNT; i++) free(blocks[i]);
}

// ---- alignment -------------------------------------------------------------------------------

static void aligned(void) {
    for (size_t align = 1; align <= (size_t)64 << 20; align *= 2) {
        static const size_t sizes[] = {0, 1, 8, 24, 100, 1000, 5000, 70000, 300000, 5 << 20};
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            char *blocks[6];
            for (int j = 0; j < 6; j++) {
                blocks[j] = hide(j % 2 ? memalign(align, sizes[i]) : aligned_alloc(align, sizes[i]));
                CHECK(blocks[j] != NULL && is_aligned(blocks[j], align));
                CHECK(is_aligned(blocks[j], 16));
                CHECK(malloc_usable_size(blocks[j]) >= sizes[i]);
                if (sizes[i]) blocks[j][0] = (char)j, blocks[j][sizes[i] - 1] = (char)j;
            }
            // Aligned blocks can be resized, which need not preserve the alignment, and freed.
            blocks[5] = hide(realloc(blocks[5], sizes[i] + 300));
            CHECK(blocks[5] != NULL && (sizes[i] == 0 || blocks[5][0] == 5));
            for (int j = 0; j < 6; j++) {
                CHECK(sizes[i] < 2 || blocks[j][0] == (char)j);
                free(blocks[j]);
            }
            void *block = NULL;
            int result = posix_memalign(&block, align, sizes[i]);
            if (align < sizeof(void *)) {
                CHECK(result == EINVAL && block == NULL);
            } else {
                CHECK(result == 0 && is_aligned(block, align));
                free(block);
            }
        }
    }
}

static void bad_alignments(void) {
    static const size_t bad[] = {0, 3, 12, 24, 48, 100, 4097};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        void *untouched = &untouched;
        int result = posix_memalign(&untouched, hide_size(bad[i]), 10);
        CHECK(result == EINVAL && untouched == &untouched);
        // The GNU library's memalign rounds up to the next power of two.
        char *block = hide(memalign(hide_size(bad[i]), 10));
        size_t next = 16;
        while (next < bad[i]) next *= 2;
        CHECK(block != NULL && is_aligned(block, next));
        free(block);
    }
    errno = 0;
    CHECK(hide(memalign(hide_size(SIZE_MAX), 10)) == NULL && errno == EINVAL);
    errno = 0;
    CHECK(hide(memalign((size_t)1 << 62, 10)) == NULL && errno == ENOMEM);
}

static void pages(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t size = 0; size < 200000; size += 611) {
        char *block = hide(valloc(size));
        CHECK(block != NULL && is_aligned(block, page));
        memset(block, 1, size);
        free(block);
        block = hide(pvalloc(size));
        CHECK(block != NULL && is_aligned(block, page));
        CHECK(malloc_usable_size(block) >= (size + page - 1) / page * page);
        memset(block, 1, size);
        free(block);
    }
}

// ---- the rest --------------------------------------------------------------------------------

static void error_number(void) {
    // free preserves errno in all cases; so does every successful call.
    static const size_t sizes[] = {1, 100, 5000, 100000, 1 << 20, 100 << 20, 600 << 20};
    for (int round = 0; round < 300; round++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            errno = 4321;
            char *block = hide(malloc(sizes[i]));
            CHECK(block != NULL && errno == 4321);
            if (round < 10) block[sizes[i] / 2] = 1;
            free(hide(block));
            CHECK(errno == 4321);
        }
    }
}

static int errno_at_main;

static void kept_error_number(void) {
    // errno must be preserved even if the kernel refuses a call that the program did not request:
    // see refused.c.
    CHECK(errno_at_main == 0);
    static const size_t sizes[] = {16,      1000,    5000,    100000,    300000,
                                   3 << 20, 5 << 20, 9 << 20, 100 << 20, 600 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *block = hide(malloc(sizes[i]));
        CHECK(block != NULL);
        memset(block, 1, sizes[i] < 1 << 20 ? sizes[i] : 1 << 20);
        errno = 4321;
        CHECK(malloc_usable_size(block) >= sizes[i] && errno == 4321);
        free(block);
        CHECK(errno == 4321);
        block = hide(malloc(sizes[i]));
        CHECK(block != NULL);
        char *larger = hide(realloc(block, 2 * sizes[i]));
        // realloc may move the block another way; errno must not show it.
        CHECK(larger != NULL);
        errno = 4321;
        free(larger);
        malloc_trim(0);
        CHECK(errno == 4321);
    }
}

static void many_mappings(void) {
    // Allocates as many mappings as memory allows, by any method.
    enum { COUNT = 20000 };
    static char *blocks[COUNT];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++) {
            CHECK(posix_memalign((void **)&blocks[i], 8 << 20, 64 << 10) == 0);
            CHECK(is_aligned(blocks[i], 8 << 20) && malloc_usable_size(blocks[i]) >= 64 << 10);
            if (i % 16 == 0) *(int *)blocks[i] = i;
        }
        for (int i = 0; i < COUNT; i++) {
            // The remaining blocks must be found after others were freed.
            int nth = (int)((long)i * 7919 % COUNT);
            if (nth % 16 == 0) CHECK(*(int *)blocks[nth] == nth);
            free(blocks[nth]);
        }
    }
}

static void huge_alignments(void) {
    for (size_t align = 16; align <= (size_t)8 << 30; align <<= 1) {
        const size_t sizes[] = {1, align, align * 3 / 2 + 5};
        for (int i = 0; i < 3; i++) {
            size_t size = sizes[i];
            char *block = NULL;
            CHECK(posix_memalign((void **)&block, align, size) == 0);
            CHECK(is_aligned(block, align) && malloc_usable_size(block) >= size);
            block[0] = 1;
            block[size - 1] = 2;
            char *larger = hide(realloc(block, size + size / 2 + 100));
            CHECK(larger != NULL && larger[0] == (size == 1 ? 2 : 1) && larger[size - 1] == 2);
            free(larger);
        }
    }
    // A refusal leaves the pointer unchanged.
    static const size_t bad[] = {0, 3, 4, 24, (size_t)1 << 62};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        void *before = &errno_at_main, *block = before;
        int error = posix_memalign(&block, hide_size(bad[i]), 10);
        CHECK(error == (i == 4 ? ENOMEM : EINVAL) && block == before);
    }
}

static void locked_error_number(void) {
    // Locked memory cannot be returned to the system; the program must not notice.
    CHECK(mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0 || errno == EPERM || errno == ENOMEM);
    char *blocks[100];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 100; i++) {
            errno = 4321;
            size_t size = 10000 + 7000 * (size_t)i * (round % 3 + 1);
            blocks[i] = hide(malloc(size));
            CHECK(blocks[i] != NULL && errno == 4321);
            memset(blocks[i], 1, size);
        }
        for (int i = 0; i < 100; i++) {
            free(hide(blocks[i]));
            CHECK(errno == 4321);
        }
    }
}

static void trim(void) {
    for (int round = 0; round < 5; round++) {
        enum { COUNT = 100 };
        char *blocks[COUNT];
        for (int i = 0; i < COUNT; i++) {
            blocks[i] = hide(malloc(1 << 20));
            memset(blocks[i], 1, 1 << 20);
        }
        for (int i = 0; i < COUNT; i++) free(blocks[i]);
        malloc_trim(0);
        CHECK(resident() < 60 << 20);
        CHECK(malloc_trim(SIZE_MAX) == 0 || malloc_trim(SIZE_MAX) == 1);
    }
}

static void c23(void) {
    void (*sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    void (*aligned_sized)(void *, size_t, size_t) =
        (void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
    // Older C libraries lack them.
    if (getenv("LD_PRELOAD") == NULL && (sized == NULL || aligned_sized == NULL)) return;
    CHECK(sized != NULL && aligned_sized != NULL);
    for (size_t size = 0; size < 100000; size = size * 2 + 1) {
        sized(hide(malloc(size)), size);
        aligned_sized(hide(aligned_alloc(64, size)), 64, size);
    }
    sized(NULL, 0);
    aligned_sized(NULL, 64, 0);
}

static void old_names(void) {
    // Blocks from the C library's internal names can be passed to free.
    void *(*inner)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "__libc_malloc");
    if (inner == NULL) return;
    void *(*zero)(size_t, size_t) = (void *(*)(size_t, size_t))dlsym(RTLD_DEFAULT, "__libc_calloc");
    void *(*again)(void *, size_t) = (void *(*)(void *, size_t))dlsym(RTLD_DEFAULT, "__libc_realloc");
    void *(*align)(size_t, size_t) = (void *(*)(size_t, size_t))dlsym(RTLD_DEFAULT, "__libc_memalign");
    void *(*page)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "__libc_valloc");
    void *(*whole)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "__libc_pvalloc");
    void (*away)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "__libc_free");
    CHECK(zero && again && align && page && whole && away);
    free(inner(100));
    free(zero(10, 10));
    free(again(hide(malloc(10)), 1000));
    free(align(64, 100));
    free(page(100));
    free(whole(100));
    away(hide(malloc(10)));
}

static void statistics(void) {
    // The statistics must be plausible.
    char *block = hide(malloc(3 << 20));
    memset(block, 1, 3 << 20);
    struct mallinfo2 found = mallinfo2();
    CHECK(found.uordblks + found.hblkhd >= 3 << 20);
    CHECK(found.uordblks <= found.arena && found.arena < (size_t)1 << 30);
    CHECK(found.fordblks <= found.arena);
    struct mallinfo old = mallinfo();
    CHECK(old.uordblks + old.hblkhd >= 3 << 20);
    free(block);
    CHECK(mallopt(M_MMAP_THRESHOLD, 1 << 20) == 1);
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    CHECK(malloc_info(0, stream) == 0 && fclose(stream) == 0);
    CHECK(strstr(text, "<malloc version") == text && strstr(text, "</malloc>") != NULL);
    free(text);
    CHECK(malloc_info(1, stdout) == EINVAL);
    malloc_stats();
}

static void random_life(void) {
    enum { COUNT = 4000 };
    static struct { unsigned char *block; size_t size; unsigned char mark; } all[COUNT];
    uint64_t state = 88172645463325252;
    for (int i = 0; i < 400000; i++) {
        int at = (int)(next_random(&state) % COUNT);
        uint64_t word = next_random(&state);
        size_t size = (word >> 8) % ((size_t)1 << (word % 100 < 90 ? word % 11 + 1 : word % 20 + 1));
        if (all[at].block) {
            size_t last = all[at].size;
            CHECK(last == 0 || (all[at].block[0] == all[at].mark && all[at].block[last - 1] == all[at].mark));
            CHECK(last == 0 || all[at].block[last / 2] == all[at].mark);
        }
        if (word >> 60 == 0 && all[at].block) {
            unsigned char *block = hide(realloc(all[at].block, size + 1));
            CHECK(block != NULL && (all[at].size == 0 || block[0] == all[at].mark));
            all[at].block = block;
            size += 1;
        } else {
            free(all[at].block);
            all[at].block = NULL;
            if (word >> 59 & 1) continue;
            all[at].block = hide(word >> 58 & 1 ? malloc(size) : aligned_alloc(128, size));
            CHECK(all[at].block != NULL);
        }
        all[at].size = size;
        all[at].mark = (unsigned char)i;
        memset(all[at].block, all[at].mark, size);
    }
}

int main(int count, char **arguments) {
    errno_at_main = errno;
    (void)count;
    static const struct named_case cases[] = {
        {"alignment", alignment}, {"nothing", nothing}, {"zeroes", zeroes}, {"overflow", overflow},
        {"too-large", too_large}, {"sparse", sparse}, {"resize", resize}, {"grow", grow},
        {"shrink", shrink}, {"aligned", aligned}, {"bad-alignments", bad_alignments},
        {"pages", pages}, {"error-number", error_number}, {"kept-error-number", kept_error_number},
        {"many-mappings", many_mappings}, {"huge-alignments", huge_alignments},
        {"locked-error-number", locked_error_number}, {"trim", trim}, {"c23", c23},
        {"old-names", old_names}, {"statistics", statistics}, {"random-life", random_life}};
    return run_case(cases, sizeof cases / sizeof *cases, arguments);
}
