// Threads allocate and free blocks of a few classes, while other threads measure, grow, shrink and
// free blocks between them. A block's contents name its allocating thread and its number, and every
// thread checks all of it before it frees or moves it.
//
// stress TURNS   for each of four threads; two turns are some seven calls
//
// Each thread draws the same number of random words per turn, whatever it finds. Its actions, and
// the printed text, therefore depend on the seed (SEED) alone, and are the same with any malloc.
// The machine decides which threads meet, and timers interrupt them: on two cores, another thread
// runs between two given instructions only after an interruption.
//
// With ORACLE=1, a shadow bitmap has a bit for every 16 bytes in use: no block may overlap another
// when it is handed out.
#define _GNU_SOURCE
#include "check.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

enum { THREADS = 4 };

// ---- the shadow ------------------------------------------------------------------------------

enum { GRANULE = 16 };
// User addresses end here on machines with four-level page tables.
#define ADDRESSES ((uint64_t)1 << 47)
static _Atomic uint64_t *shadow;

static void make_shadow(void) {
    void *made = mmap(NULL, ADDRESSES / GRANULE / 8, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(made != MAP_FAILED);
    // Huge pages would use a thousand times the memory that is needed.
    madvise(made, ADDRESSES / GRANULE / 8, MADV_NOHUGEPAGE);
    shadow = made;
}

// Runs the body for each word of the range, with the bits that belong to the range.
#define EACH_WORD(start, end, word, bits)                                                              \
    for (uint64_t at_ = (uintptr_t)(start) / GRANULE, end_ = (uintptr_t)(end) / GRANULE, word, bits, stop_; \
         at_ < end_ && (word = at_ / 64, stop_ = (word + 1) * 64 < end_ ? (word + 1) * 64 : end_,      \
                        bits = (stop_ - at_ == 64 ? ~(uint64_t)0 : (((uint64_t)1 << (stop_ - at_)) - 1) << at_ % 64), \
                        true);                                                                         \
         at_ = stop_)

// A size that is not a multiple of 16, as sanitizers may report, is rounded down.
static void claim(const char *block, size_t usable) {
    if (shadow == NULL) return;
    CHECK((uintptr_t)block + usable < ADDRESSES);
    EACH_WORD(block, block + usable, word, bits) {
        // The previous owner has cleared its bits, in `release`.
        uint64_t before = atomic_fetch_or_explicit(&shadow[word], bits, memory_order_relaxed);
        if (before & bits) {
            fprintf(stderr, "%p, %zu bytes, overlaps with another block, from %p on\n", (const void *)block, usable,
                    (void *)((word * 64 + (uint64_t)__builtin_ctzll(before & bits)) * GRANULE));
            abort();
        }
    }
}

static void release(const char *block, size_t usable) {
    if (shadow == NULL) return;
    EACH_WORD(block, block + usable, word, bits) {
        uint64_t before = atomic_fetch_and_explicit(&shadow[word], ~bits, memory_order_relaxed);
        CHECK((before & bits) == bits);
    }
}

// ---- blocks ----------------------------------------------------------------------------------

struct piece {
    char *block; // NULL if there is none
    size_t size;
    size_t usable; // as reported when it was allocated
    uint64_t name; // its thread, and its number in that thread
};

static uint64_t pattern(uint64_t name, size_t word) { return name + word * 0x9e3779b97f4a7c15u; }

// In large blocks, checks both ends, and a word in every 256 bytes between.
enum { ENDS = 32, STRIDE = 32 };
static size_t next_word(size_t word, size_t words) {
    if (word + 1 < ENDS || word + ENDS + STRIDE >= words) return word + 1;
    return word + STRIDE;
}

static void fill(const struct piece *piece) {
    size_t words = piece->size / 8;
    for (size_t i = 0; i < words; i = next_word(i, words)) {
        uint64_t word = pattern(piece->name, i);
        memcpy(piece->block + 8 * i, &word, 8);
    }
    for (size_t i = 8 * words; i < piece->size; i++) piece->block[i] = (char)(piece->name + i);
}

static void verify(const struct piece *piece, size_t up_to, const char *when) {
    size_t words = piece->size / 8;
    for (size_t i = 0; i < words && 8 * i + 8 <= up_to; i = next_word(i, words)) {
        uint64_t word;
        memcpy(&word, piece->block + 8 * i, 8);
        if (word == pattern(piece->name, i)) continue;
        fprintf(stderr, "%s: %p of %zu bytes, made by thread %d as number %llu: word %zu is %#llx, not %#llx\n", when,
                (void *)piece->block, piece->size, (int)(piece->name >> 56),
                (unsigned long long)(piece->name >> 16 & 0xffffffffff), i, (unsigned long long)word,
                (unsigned long long)pattern(piece->name, i));
        abort();
    }
    for (size_t i = 8 * words; i < piece->size && i < up_to; i++)
        CHECK(piece->block[i] == (char)(piece->name + i));
}

struct life {
    uint64_t random;
    uint64_t digest; // of all words drawn
    uint64_t made;
    int number;
    unsigned long refused, calls;
};

// Memory is limited in real-time mode. In other modes no allocation may be refused.
static bool may_refuse;

static void refused(struct life *life) {
    CHECK(may_refuse);
    life->refused++;
}

static void make(struct life *life, struct piece *piece, size_t size, unsigned way) {
    char *block = NULL;
    life->calls++;
    if (way % 16 == 0) {
        size_t align = (size_t)16 << way / 16 % 9;
        if (posix_memalign((void **)&block, align, size) != 0) block = NULL;
        CHECK(is_aligned(block, align));
    } else if (way % 16 == 1) {
        block = hide(calloc(1, size));
        for (size_t i = 0; block && i < size; i += i < 256 ? 1 : 61) CHECK(block[i] == 0);
    } else {
        block = hide(malloc(size));
    }
    piece->block = block;
    life->made++;
    if (block == NULL) return refused(life);
    CHECK(is_aligned(block, 16));
    piece->size = size;
    piece->usable = malloc_usable_size(block);
    CHECK(piece->usable >= size);
    piece->name = (uint64_t)life->number << 56 | life->made << 16;
    claim(block, piece->usable);
    fill(piece);
}

static void ask(struct life *life, const struct piece *piece) {
    life->calls++;
    size_t usable = malloc_usable_size(piece->block);
    if (usable == piece->usable) return;
    fprintf(stderr, "%p was told to have %zu bytes, and now %zu\n", (void *)piece->block, piece->usable, usable);
    abort();
}

static void end(struct life *life, struct piece *piece) {
    verify(piece, piece->size, "freed");
    ask(life, piece);
    life->calls++;
    release(piece->block, piece->usable);
    free(piece->block);
    piece->block = NULL;
}

static void resize(struct life *life, struct piece *piece, size_t size) {
    verify(piece, piece->size, "before it is moved");
    ask(life, piece);
    life->calls++;
    release(piece->block, piece->usable);
    char *block = realloc(piece->block, size);
    if (block == NULL) {
        refused(life);
        claim(piece->block, piece->usable);
        return;
    }
    struct piece moved = {block, piece->size, malloc_usable_size(block), piece->name};
    CHECK(moved.usable >= size);
    claim(block, moved.usable);
    verify(&moved, size, "moved");
    moved.size = size;
    fill(&moved);
    *piece = moved;
}

// ---- sizes -----------------------------------------------------------------------------------

// Alternates between blocks of one level and of all, and between few sizes and many: classes of one
// level share a KiB when some of several sizes are allocated and freed.
enum { LEVELS = 6, PHASE = 1 << 14 };

static size_t size_of_level(unsigned level, uint64_t word) {
    size_t granule = (size_t)16 << 2 * level;
    // More than a quarter of the largest size: smaller blocks belong to the level below.
    size_t granules = level ? 5 + word % 12 : 1 + word % 16;
    return granule * granules - (word >> 8) % 16;
}

static unsigned level_of(uint64_t seed, uint64_t turn, uint64_t word) {
    uint64_t phase = (turn / PHASE + seed) % (LEVELS + 2);
    return phase < LEVELS ? (unsigned)phase : (unsigned)(word % (phase == LEVELS ? 3 : LEVELS));
}

static size_t draw_size(uint64_t seed, uint64_t turn, uint64_t word) {
    unsigned level = level_of(seed, turn, word >> 40);
    // Two sizes in three turns out of four, any size in the fourth.
    if (turn / (PHASE / 8) % 4) word = word % 2 ? 0x3300 : 0x4c05;
    else if (word % 4096 == 0 && level == LEVELS - 1) return 300000 + word % 5000000;
    return size_of_level(level, word);
}

// ---- threads ---------------------------------------------------------------------------------

// Boxes through which blocks change hands. A thread that finds one busy continues.
enum { BOXES = 512 };
static struct box {
    atomic_flag busy;
    struct piece piece;
} boxes[BOXES];

// Of large blocks only few are kept.
static struct box *box_of(uint64_t seed, uint64_t turn, uint64_t word) {
    unsigned level = level_of(seed, turn, word >> 40);
    return &boxes[word % (BOXES >> level)];
}

// A thread's own blocks, freed in reverse order.
enum { OWN_MAX = 24 };

static uint64_t seed;
static uint64_t turns;

static void one_turn(struct life *life, struct piece *own, int *owns, uint64_t turn) {
    uint64_t choice = next_random(&life->random), first = next_random(&life->random);
    uint64_t second = next_random(&life->random);
    life->digest = (life->digest ^ choice ^ first << 1 ^ second << 2) * 0x100000001b3u;
    size_t size = draw_size(seed, turn, first);
    unsigned way = (unsigned)(second % 256);
    switch (choice % 16) {
    case 0 ... 8: {
        // Allocates or frees blocks next to other threads' blocks.
        int count = (int)(choice >> 8) % 6 + 1;
        if (choice >> 16 & 1) {
            for (int i = 0; i < count && *owns < OWN_MAX; i++) {
                make(life, &own[*owns], size, way + 2);
                if (own[*owns].block) ++*owns;
            }
        } else {
            for (int i = 0; i < count && *owns > 0; i++) end(life, &own[--*owns]);
        }
        return;
    }
    default: {
        struct box *box = box_of(seed, turn, second);
        if (atomic_flag_test_and_set_explicit(&box->busy, memory_order_acquire)) return;
        struct piece *piece = &box->piece;
        switch (choice % 16) {
        case 9 ... 10:
            if (piece->block) end(life, piece);
            make(life, piece, size, way);
            break;
        case 11 ... 12:
            for (int i = 0; piece->block && i < 20; i++) ask(life, piece);
            break;
        case 13: {
            size_t more = piece->size + piece->size / 2 + 1 + (first >> 20) % (piece->size + 1);
            if (piece->block && more <= 6 << 20) resize(life, piece, more);
            break;
        }
        case 14:
            if (piece->block) resize(life, piece, 1 + (first >> 20) % piece->size);
            break;
        default:
            if (piece->block) end(life, piece);
        }
        // Releases the piece to the next thread.
        atomic_flag_clear_explicit(&box->busy, memory_order_release);
    }
    }
}

static void interrupt(int signal) {
    (void)signal;
    static _Thread_local unsigned count;
    if (++count % 4 == 0) sched_yield();
}

static timer_t start_timer(int number) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    timer_t timer;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    // One thread every 41 microseconds, the others less often; otherwise signals would take all the
    // time.
    long interval_ns = number == 1 ? 41000 : 300000 + 53000 * number;
    struct itimerspec often = {{0, interval_ns}, {0, interval_ns}};
    CHECK(timer_settime(timer, 0, &often, NULL) == 0);
    return timer;
}

static void *live(void *with) {
    struct life *life = with;
    struct piece own[OWN_MAX];
    int owns = 0;
    timer_t timer = start_timer(life->number);
    for (uint64_t turn = 0; turn < turns; turn++) one_turn(life, own, &owns, turn);
    timer_delete(timer);
    while (owns > 0) end(life, &own[--owns]);
    return NULL;
}

int main(int count, char **arguments) {
    const char *given = getenv("SEED");
    seed = given ? strtoull(given, NULL, 0) : 1;
    turns = count > 1 ? strtoull(arguments[1], NULL, 0) : 100000;
    may_refuse = getenv("HEARTH_REAL_TIME") != NULL;
    if (getenv("ORACLE")) make_shadow();
    CHECK(signal(SIGUSR1, interrupt) != SIG_ERR);
    pthread_t threads[THREADS];
    static struct life lives[THREADS];
    for (int i = 0; i < THREADS; i++) {
        lives[i] = (struct life){.random = (seed * 1000003 + (uint64_t)i) * 0x9e3779b97f4a7c15u | 1, .number = i + 1};
        CHECK(!pthread_create(&threads[i], NULL, live, &lives[i]));
    }
    unsigned long refused = 0, calls = 0;
    for (int i = 0; i < THREADS; i++) {
        CHECK(!pthread_join(threads[i], NULL));
        printf("thread %d: %llu turns of seed %llu, digest %016llx\n", i, (unsigned long long)turns,
               (unsigned long long)seed, (unsigned long long)lives[i].digest);
        refused += lives[i].refused;
        calls += lives[i].calls;
    }
    for (int i = 0; i < BOXES; i++)
        if (boxes[i].piece.block) end(&lives[0], &boxes[i].piece);
    fprintf(stderr, "%lu calls, %lu of which were refused\n", calls, refused);
    puts("passed");
    return 0;
}
