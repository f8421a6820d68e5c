/* Writes the time of each single malloc and free to a file, in ticks, a word each.
 *
 * Every thread has slots. Each of its operations takes a slot at random: an empty one gets a block,
 * of a full one the block is freed, or, in the given percentage of cases, handed to the next thread
 * to be freed there. So lifetimes are geometric, and which operation does what is a matter of the
 * seed alone: the same operation of several processes can be compared. A thread frees blocks of
 * another at times of its own, and they are reported separately.
 *
 * The file, words of 32 bits: version, threads, operations, whether touches are written, ticks for
 * a microsecond. Then for each thread: a word an operation, 0 to 1 << 30 for a malloc, 1 << 30 more
 * for a free, 2 << 30 for a block handed over, which has no time; if touches are written, a word an
 * operation with the time from before a malloc until the block's last page was written; how many
 * blocks were freed for others, and a word for each.
 */
#include "heap.h"

enum {
    VERSION = 1,
    TICKS_MAX = (1 << 30) - 1,
    FREED = 1 << 30,
    PAGE = 4096,
    /* Blocks under way between two threads. */
    RING = 1 << 12,
    /* Blocks of others that are freed before an operation of one's own. */
    FAVOURS_MAX = 4
};
#define HANDED_OVER (2u << 30)

/* One sender, one receiver. `sent` is released with the block before it, `taken` with its place. */
typedef struct {
    _Alignas(LINE) atomic_uint sent;
    _Alignas(LINE) atomic_uint taken;
    held blocks[RING];
} ring;

typedef struct {
    held *slots;
    uint32_t *words, *touches, *favours;
    uint64_t favour_count;
    /* Blocks that come from the thread before. */
    ring *inbox, *outbox;
} thread_state;

typedef enum { NOTHING, REAL_TIME, MIXED, BIG } kind;

typedef struct {
    kind kind;
    unsigned threads;
    uint64_t operations, slot_count, remote_percent, seed;
    thread_state of[THREADS_MAX];
    meeting done;
} session;

static size_t size_of(kind kind, choices *c)
{
    switch (kind) {
    case REAL_TIME:
        return real_time_size(c);
    case BIG:
        /* Crosses every border between blocks cut from larger memory and mapped ones. */
        return log_uniform(c, 4096, 4194304);
    default:
        return mixed_size(c);
    }
}

static uint32_t clipped(uint64_t ticks)
{
    return ticks < TICKS_MAX ? (uint32_t)ticks : TICKS_MAX;
}

/* The method itself: both clocks with nothing in between, and blocks that stay where they are. */
static void time_nothing(session *s, thread_state *mine)
{
    choices c = {s->seed};
    static char nothing[16];
    for (uint64_t i = 0; i < s->operations; i++) {
        held *slot = &mine->slots[below(&c, s->slot_count)];
        uint64_t begin = ticks_begin();
        uint64_t end = ticks_end();
        mine->words[i] = clipped(end - begin) | (slot->at != NULL ? FREED : 0);
        slot->at = slot->at != NULL ? NULL : nothing;
    }
}

static void free_for_others(thread_state *mine, unsigned most)
{
    if (mine->inbox == NULL)
        return;
    unsigned taken = atomic_load_explicit(&mine->inbox->taken, memory_order_relaxed);
    unsigned sent = atomic_load_explicit(&mine->inbox->sent, memory_order_acquire);
    for (; taken != sent && most > 0; most--, taken++) {
        held block = mine->inbox->blocks[taken % RING];
        examine_last(block.at, block.size);
        uint64_t begin = ticks_begin();
        free(block.at);
        uint64_t end = ticks_end();
        mine->favours[mine->favour_count++] = clipped(end - begin);
        atomic_store_explicit(&mine->inbox->taken, taken + 1, memory_order_release);
    }
}

static int hand_on(thread_state *mine, held block)
{
    unsigned sent = atomic_load_explicit(&mine->outbox->sent, memory_order_relaxed);
    unsigned looks = 0;
    /* A receiver that is behind is waited for: whether a block is handed on must not depend on it.
     * It may be waiting for us just so, thus we do what it would do. */
    while (sent - atomic_load_explicit(&mine->outbox->taken, memory_order_acquire) == RING) {
        free_for_others(mine, FAVOURS_MAX);
        relax(&looks);
    }
    mine->outbox->blocks[sent % RING] = block;
    atomic_store_explicit(&mine->outbox->sent, sent + 1, memory_order_release);
    return 1;
}

static void allocate(session *s, thread_state *mine, held *slot, size_t size, uint64_t i)
{
    uint64_t begin = ticks_begin();
    void *block = malloc(size);
    uint64_t end = ticks_end();
    if (block == NULL)
        fail("there is no block of %zu bytes", size);
    mine->words[i] = clipped(end - begin);
    if (s->kind == MIXED) {
        for (size_t at = 0; at < size; at += PAGE)
            ((volatile char *)block)[at] = 1;
        ((volatile char *)block)[size - 1] = 1;
        mine->touches[i] = clipped(ticks_end() - begin);
    }
    sign(block, size);
    *slot = (held){block, size};
}

static void work(void *argument, unsigned lane)
{
    session *s = argument;
    thread_state *mine = &s->of[lane];
    if (s->kind == NOTHING) {
        time_nothing(s, mine);
        return;
    }
    choices c = {s->seed + lane};
    for (uint64_t i = 0; i < s->operations; i++) {
        free_for_others(mine, FAVOURS_MAX);
        held *slot = &mine->slots[below(&c, s->slot_count)];
        /* Drawn whether needed or not: the sequence is the same whatever happens. */
        size_t size = size_of(s->kind, &c);
        int is_handed_over = below(&c, 100) < s->remote_percent;
        if (slot->at == NULL) {
            allocate(s, mine, slot, size, i);
        } else if (is_handed_over && mine->outbox != NULL && hand_on(mine, *slot)) {
            mine->words[i] = HANDED_OVER;
            slot->at = NULL;
        } else {
            examine_last(slot->at, slot->size);
            uint64_t begin = ticks_begin();
            free(slot->at);
            uint64_t end = ticks_end();
            mine->words[i] = FREED | clipped(end - begin);
            slot->at = NULL;
        }
    }
    if (mine->inbox != NULL) {
        /* Until no thread can still hand over a block. */
        unsigned looks = 0;
        atomic_fetch_add(&s->done.here, 1);
        while (atomic_load(&s->done.here) < s->threads) {
            free_for_others(mine, RING);
            relax(&looks);
        }
        free_for_others(mine, RING);
    }
    for (uint64_t i = 0; i < s->slot_count; i++)
        if (mine->slots[i].at != NULL)
            put(mine->slots[i].at, mine->slots[i].size);
}

static void write_down(session *s, const char *path, uint32_t ticks_per_us)
{
    int file = file_begin(path);
    uint32_t head[] = {VERSION, s->threads, (uint32_t)s->operations, s->kind == MIXED, ticks_per_us};
    file_words(file, head, sizeof head / sizeof *head);
    for (unsigned lane = 0; lane < s->threads; lane++) {
        thread_state *of = &s->of[lane];
        uint32_t favours = (uint32_t)of->favour_count;
        file_words(file, of->words, s->operations);
        if (s->kind == MIXED)
            file_words(file, of->touches, s->operations);
        file_words(file, &favours, 1);
        file_words(file, of->favours, favours);
    }
}

static kind kind_of(const char *name)
{
    static const char *names[] = {"null", "rt", "mix", "big"};
    for (kind kind = NOTHING; kind <= BIG; kind++)
        if (strcmp(name, names[kind]) == 0)
            return kind;
    fail("there are no sizes '%s'", name);
}

int latency(char **arguments)
{
    static session s;
    s.kind = kind_of(arguments[0]);
    s.threads = (unsigned)number(arguments[1]);
    s.operations = number(arguments[2]);
    s.slot_count = number(arguments[3]);
    s.remote_percent = number(arguments[4]);
    s.seed = number(arguments[5]) * THREADS_MAX;
    if (s.threads == 0 || s.threads > THREADS_MAX || s.operations > UINT32_MAX)
        fail("%u threads, %s operations: too many", s.threads, arguments[2]);
    for (unsigned lane = 0; lane < s.threads; lane++) {
        thread_state *of = &s.of[lane];
        of->slots = own_memory(s.slot_count * sizeof *of->slots);
        of->words = own_memory(s.operations * sizeof *of->words);
        of->touches = own_memory(s.operations * sizeof *of->touches);
        /* No thread hands on more blocks than it does operations. */
        of->favours = own_memory(s.operations * sizeof *of->favours);
        if (s.threads > 1 && s.remote_percent > 0)
            of->inbox = own_memory(sizeof(ring));
    }
    for (unsigned lane = 0; lane < s.threads; lane++)
        s.of[lane].outbox = s.of[(lane + 1) % s.threads].inbox;
    double start_s = now_s();
    uint64_t start = ticks_begin();
    if (s.threads == 1)
        /* On the main thread, as most programs allocate. */
        work(&s, 0);
    else
        together(s.threads, work, &s);
    double per_us = (double)(ticks_end() - start) / ((now_s() - start_s) * 1e6);
    write_down(&s, arguments[6], (uint32_t)(per_us + 0.5));
    tell("ticks-per-us", per_us);
    return 0;
}
