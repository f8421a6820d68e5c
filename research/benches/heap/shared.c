/* Programs of the suite in which threads free each other's blocks. */
#include "heap.h"

typedef struct {
    uint64_t operations, slots, rounds, size, seed;
    unsigned threads;
    held *blocks[THREADS_MAX];
} setting;

static unsigned thread_count(const char *text)
{
    uint64_t threads = number(text);
    if (threads == 0 || threads > THREADS_MAX)
        fail("%s threads; from 1 to %d can be had", text, THREADS_MAX);
    return (unsigned)threads;
}

static void put_all(held *blocks, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (blocks[i].at != NULL) {
            put(blocks[i].at, blocks[i].size);
            blocks[i].at = NULL;
        }
}

/* ---- larson: a server whose workers die and leave their blocks to others
   ---------------------- */

typedef struct {
    setting *all;
    uint64_t generation;
} generation;

static void larson_lane(void *argument, unsigned lane)
{
    generation *now = argument;
    setting *s = now->all;
    choices c = {s->seed + now->generation * THREADS_MAX + lane};
    /* The blocks another worker had in the generation before. */
    held *blocks = s->blocks[(lane + now->generation) % s->threads];
    for (uint64_t i = 0; i < s->operations; i++) {
        held *slot = &blocks[below(&c, s->slots)];
        put(slot->at, slot->size);
        slot->size = between(&c, 8, 1000);
        slot->at = get(slot->size);
    }
}

int larson(char **arguments)
{
    setting s = {.threads = thread_count(arguments[0]), .rounds = number(arguments[1])};
    s.operations = number(arguments[2]);
    s.slots = number(arguments[3]);
    s.seed = number(arguments[4]) * 1000003;
    choices c = {s.seed};
    double seconds = 0;
    for (unsigned lane = 0; lane < s.threads; lane++) {
        s.blocks[lane] = own_memory(s.slots * sizeof(held));
        for (uint64_t i = 0; i < s.slots; i++) {
            size_t size = between(&c, 8, 1000);
            s.blocks[lane][i] = (held){get(size), size};
        }
    }
    for (uint64_t round = 0; round < s.rounds; round++) {
        generation now = {&s, round};
        seconds += together(s.threads, larson_lane, &now);
    }
    for (unsigned lane = 0; lane < s.threads; lane++)
        put_all(s.blocks[lane], s.slots);
    tell("rate", (double)(s.operations * s.rounds * s.threads) / seconds / 1e6);
    return 0;
}

/* ---- hand-over: some threads only allocate, others only free
   ---------------------------------- */

enum { RING = 64, BATCH = 120 };

typedef struct {
    _Alignas(LINE) atomic_ulong sent;
    _Alignas(LINE) atomic_ulong taken;
    void **batches[RING];
} batch_ring;

typedef struct {
    batch_ring *rings;
    uint64_t batches;
    size_t size;
} hand_over_setting;

static void producer(batch_ring *ring, const hand_over_setting *s)
{
    for (uint64_t i = 0; i < s->batches; i++) {
        void **batch = malloc(BATCH * sizeof *batch);
        if (batch == NULL)
            fail("there is no batch of %d", BATCH);
        for (int k = 0; k < BATCH; k++)
            batch[k] = get(s->size);
        unsigned looks = 0;
        while (i - atomic_load_explicit(&ring->taken, memory_order_acquire) == RING)
            relax(&looks);
        ring->batches[i % RING] = batch;
        /* With all that was written to the blocks. */
        atomic_store_explicit(&ring->sent, i + 1, memory_order_release);
    }
}

static void consumer(batch_ring *ring, const hand_over_setting *s)
{
    for (uint64_t i = 0; i < s->batches; i++) {
        unsigned looks = 0;
        while (atomic_load_explicit(&ring->sent, memory_order_acquire) == i)
            relax(&looks);
        void **batch = ring->batches[i % RING];
        atomic_store_explicit(&ring->taken, i + 1, memory_order_release);
        for (int k = 0; k < BATCH; k++)
            put(batch[k], s->size);
        free(batch);
    }
}

static void hand_over_lane(void *argument, unsigned lane)
{
    const hand_over_setting *s = argument;
    if (lane % 2 == 0)
        producer(&s->rings[lane / 2], s);
    else
        consumer(&s->rings[lane / 2], s);
}

int hand_over(char **arguments)
{
    uint64_t pairs = number(arguments[0]);
    hand_over_setting s = {.batches = number(arguments[1]) / BATCH, .size = number(arguments[2])};
    if (pairs == 0 || pairs > THREADS_MAX / 2)
        fail("%s pairs; from 1 to %d can be had", arguments[0], THREADS_MAX / 2);
    s.rings = own_memory(pairs * sizeof *s.rings);
    double seconds = together((unsigned)pairs * 2, hand_over_lane, &s);
    tell("rate", (double)(pairs * s.batches * BATCH) / seconds / 1e6);
    return 0;
}

/* ---- stress: blocks of all sizes travel through places that all threads know
   ------------------ */

enum { PLACES = 1000 };

typedef struct {
    setting all;
    /* A block whose first word is its size, or NULL. Exchanged with acquire and release, so that
     * who gets it sees what was written. */
    _Atomic(size_t *) places[PLACES];
} stress_setting;

/* Signed behind its size. */
static size_t *get_sized(size_t size)
{
    size_t *block = malloc(size + sizeof *block);
    if (block == NULL)
        fail("there is no block of %zu bytes", size);
    *block = size;
    sign(block + 1, size);
    return block;
}

static void put_sized(size_t *block)
{
    if (block == NULL)
        return;
    examine_last(block + 1, *block);
    free(block);
}

static void stress_lane(void *argument, unsigned lane)
{
    stress_setting *s = argument;
    choices c = {s->all.seed * THREADS_MAX + lane};
    uint64_t kept_count = s->all.operations / 4 + 1;
    size_t **kept = own_memory(kept_count * sizeof *kept);
    for (uint64_t round = 0; round < s->all.rounds; round++) {
        for (uint64_t i = 0; i < s->all.operations; i++) {
            /* Mostly small; one in a thousand is large. */
            size_t size = below(&c, 1000) == 0 ? log_uniform(&c, 32768, 524288)
                                               : (size_t)8 << __builtin_ctzll(draw(&c) | 1 << 8);
            size_t *block = get_sized(size);
            uint64_t what = below(&c, 4), place = below(&c, PLACES), own = below(&c, kept_count);
            if (what == 0) {
                put_sized(block);
            } else if (what == 1) {
                put_sized(atomic_exchange_explicit(&s->places[place], block, memory_order_acq_rel));
            } else {
                put_sized(kept[own]);
                kept[own] = block;
            }
        }
        /* Some of the kept blocks do not outlive the round. */
        for (uint64_t i = 0; i < kept_count; i++)
            if (below(&c, 3) == 0) {
                put_sized(kept[i]);
                kept[i] = NULL;
            }
    }
    for (uint64_t i = 0; i < kept_count; i++)
        put_sized(kept[i]);
}

int stress(char **arguments)
{
    static stress_setting s;
    s.all.threads = thread_count(arguments[0]);
    s.all.rounds = number(arguments[1]);
    s.all.operations = number(arguments[2]);
    s.all.seed = number(arguments[3]);
    double seconds = 0;
    /* Threads end, but the blocks they left in the places stay: half of the rounds each. */
    s.all.rounds = (s.all.rounds + 1) / 2;
    for (int life = 0; life < 2; life++) {
        seconds += together(s.all.threads, stress_lane, &s);
        s.all.seed++;
    }
    for (int i = 0; i < PLACES; i++)
        put_sized(atomic_load(&s.places[i]));
    tell("seconds", seconds);
    return 0;
}

/* ---- short-lives: threads that begin, allocate and end, one after the other
   ------------------- */

static void short_lives_lane(void *argument, unsigned lane)
{
    setting *s = argument;
    choices c = {s->seed + lane};
    held *blocks = s->blocks[lane];
    /* The blocks of the thread before, which has ended. */
    put_all(blocks, s->slots);
    for (int pass = 0; pass < 4; pass++) {
        put_all(blocks, s->slots);
        for (uint64_t i = 0; i < s->slots; i++) {
            size_t size = log_uniform(&c, 16, 2048);
            blocks[i] = (held){get(size), size};
        }
    }
    /* A tenth is left for the next. */
    put_all(blocks + s->slots / 10, s->slots - s->slots / 10);
}

int short_lives(char **arguments)
{
    setting s = {.threads = 2, .rounds = (number(arguments[0]) + 1) / 2};
    s.slots = number(arguments[1]);
    s.seed = number(arguments[2]) * 1000003;
    double seconds = 0;
    for (unsigned lane = 0; lane < s.threads; lane++)
        s.blocks[lane] = own_memory(s.slots * sizeof(held));
    for (uint64_t round = 0; round < s.rounds; round++) {
        seconds += together(s.threads, short_lives_lane, &s);
        s.seed += s.threads;
    }
    for (unsigned lane = 0; lane < s.threads; lane++)
        put_all(s.blocks[lane], s.slots);
    tell("seconds", seconds);
    return 0;
}

/* ---- random-pool: random sizes, thinned out in strides; what is left goes round the threads
   --- */

typedef struct {
    setting all;
    meeting turn;
} pool_setting;

static void pool_lane(void *argument, unsigned lane)
{
    enum { PASSES = 8 };
    pool_setting *s = argument;
    choices c = {s->all.seed * THREADS_MAX + lane};
    uint64_t each = s->all.operations / PASSES;
    for (unsigned pass = 0; pass < PASSES; pass++) {
        held *blocks = s->all.blocks[(lane + pass) % s->all.threads];
        uint64_t at = 0;
        for (uint64_t done = 0; done < each; done++) {
            held *slot = &blocks[at];
            at = (at + 1 + below(&c, 7)) % s->all.slots;
            if (slot->at != NULL)
                put(slot->at, slot->size);
            /* The smaller the likelier, in proportion, to 16,000. */
            uint64_t one = below(&c, 16000), two = below(&c, 16000);
            slot->size = 16 + (one < two ? one : two);
            slot->at = get(slot->size);
        }
        /* The next pass has what another thread left. */
        meet(&s->turn);
    }
}

int random_pool(char **arguments)
{
    static pool_setting s;
    s.all.threads = s.turn.count = thread_count(arguments[0]);
    s.all.operations = number(arguments[1]);
    s.all.slots = number(arguments[2]);
    s.all.seed = number(arguments[3]);
    for (unsigned lane = 0; lane < s.all.threads; lane++)
        s.all.blocks[lane] = own_memory(s.all.slots * sizeof(held));
    double seconds = together(s.all.threads, pool_lane, &s);
    for (unsigned lane = 0; lane < s.all.threads; lane++)
        put_all(s.all.blocks[lane], s.all.slots);
    tell("rate", (double)(s.all.operations * s.all.threads) / seconds / 1e6);
    return 0;
}

/* ---- in-shifts: a window of sizes that shifts; one block in ten is freed by the neighbour
   ------ */

static void in_shifts_lane(void *argument, unsigned lane)
{
    stress_setting *s = argument;
    choices c = {s->all.seed * THREADS_MAX + lane};
    held *blocks = own_memory(s->all.slots * sizeof *blocks);
    for (uint64_t round = 0; round < s->all.rounds; round++) {
        size_t least = 8 + round % 12 * 64;
        for (uint64_t i = 0; i < s->all.slots; i++) {
            held *slot = &blocks[i];
            /* Two of three are replaced in a round, the rest lives on. */
            if (slot->at != NULL && below(&c, 3) == 0)
                continue;
            if (slot->at != NULL)
                put(slot->at, slot->size);
            slot->size = between(&c, least, least + 128);
            slot->at = get(slot->size);
            if (below(&c, 10) == 0) {
                size_t *mine = get_sized(slot->size), place = below(&c, PLACES);
                put_sized(atomic_exchange_explicit(&s->places[place], mine, memory_order_acq_rel));
            }
        }
    }
    put_all(blocks, s->all.slots);
}

int in_shifts(char **arguments)
{
    static stress_setting s;
    s.all.slots = number(arguments[1]);
    s.all.rounds = number(arguments[2]);
    s.all.seed = number(arguments[3]);
    double seconds = together(thread_count(arguments[0]), in_shifts_lane, &s);
    for (int i = 0; i < PLACES; i++)
        put_sized(atomic_load(&s.places[i]));
    tell("seconds", seconds);
    return 0;
}
