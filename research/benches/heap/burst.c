/* The owner's cost after another thread has freed its blocks.
 *
 * The owner allocates the given number of blocks; the other thread frees them all, while the owner
 * waits; then the owner allocates as many again, each timed. That is a round. Work that an
 * allocator leaves to the owner's next operations, such as walking through all blocks that came
 * home, is in the slowest of these. The first round meets an empty heap and is not reported. With
 * `null` there is no block and nothing is called: the figures then show the effect of interrupts on
 * as many operations.
 *
 * The file: version, rounds, blocks, ticks for a microsecond; then a word for each malloc.
 */
#include "heap.h"

enum { VERSION = 1, TICKS_MAX = (1 << 30) - 1 };

typedef enum { NOTHING, ONE, MANY } sizes;

typedef struct {
    uint64_t blocks, rounds, remote_ticks, owner_ticks;
    sizes sizes;
    choices c;
    held *held;
    uint32_t *words;
    meeting handed, freed;
} session;

static void owner(session *s)
{
    for (uint64_t round = 0; round <= s->rounds; round++) {
        for (uint64_t i = 0; i < s->blocks; i++) {
            /* From small sizes to those cut from larger memory in most allocators. */
            size_t size = s->sizes == MANY ? log_uniform(&s->c, 16, 8192) : 64;
            uint64_t begin = ticks_begin();
            void *block = s->sizes == NOTHING ? NULL : malloc(size);
            uint64_t ticks = ticks_end() - begin;
            if (block != NULL)
                sign(block, size);
            else if (s->sizes != NOTHING)
                fail("there is no block of %zu bytes", size);
            s->held[i] = (held){block, size};
            if (round > 0) {
                s->words[(round - 1) * s->blocks + i] =
                    ticks < TICKS_MAX ? (uint32_t)ticks : TICKS_MAX;
                s->owner_ticks += ticks;
            }
        }
        meet(&s->handed);
        meet(&s->freed);
    }
}

static void other(session *s)
{
    for (uint64_t round = 0; round <= s->rounds; round++) {
        meet(&s->handed);
        for (uint64_t i = 0; i < s->blocks && s->sizes != NOTHING; i++) {
            examine_last(s->held[i].at, s->held[i].size);
            uint64_t begin = ticks_begin();
            free(s->held[i].at);
            uint64_t ticks = ticks_end() - begin;
            if (round > 0)
                s->remote_ticks += ticks;
        }
        meet(&s->freed);
    }
}

static void work(void *argument, unsigned lane)
{
    if (lane == 0)
        owner(argument);
    else
        other(argument);
}

int burst(char **arguments)
{
    static session s;
    s.blocks = number(arguments[0]);
    s.sizes = strcmp(arguments[1], "many") == 0 ? MANY
              : strcmp(arguments[1], "one") == 0 ? ONE
                                                 : NOTHING;
    s.rounds = number(arguments[2]);
    s.c.state = number(arguments[3]);
    s.handed.count = s.freed.count = 2;
    if (s.blocks == 0 || s.rounds == 0 || s.blocks * s.rounds > UINT32_MAX)
        fail("%s blocks in %s rounds: too many or none", arguments[0], arguments[2]);
    /* The mean request; with the allocator's overhead, half as much again and more. */
    uint64_t bytes = s.blocks * (s.sizes == MANY ? 1311 : 64) * 2;
    if (bytes > available())
        fail("%s blocks need %llu MB, and the system has less", arguments[0],
             (unsigned long long)(bytes >> 20));
    s.held = own_memory(s.blocks * sizeof *s.held);
    s.words = own_memory(s.blocks * s.rounds * sizeof *s.words);
    double start_s = now_s();
    uint64_t start = ticks_begin();
    together(2, work, &s);
    double per_us = (double)(ticks_end() - start) / ((now_s() - start_s) * 1e6);
    int file = file_begin(arguments[4]);
    uint32_t head[] = {VERSION, (uint32_t)s.rounds, (uint32_t)s.blocks, (uint32_t)(per_us + 0.5)};
    file_words(file, head, sizeof head / sizeof *head);
    file_words(file, s.words, s.blocks * s.rounds);
    double operations = (double)(s.blocks * s.rounds);
    tell("owner-mean", (double)s.owner_ticks / operations);
    tell("remote-mean", (double)s.remote_ticks / operations);
    return 0;
}
