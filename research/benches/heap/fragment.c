/* Resident memory over live memory while the sizes of blocks shift.
 *
 * Each phase fills up to the wanted live bytes with blocks of its sizes, all written; 85 of 100
 * blocks, at random, are freed before the next. At last all are freed, and memory is looked at at
 * once and after a while without a call.
 */
#include "heap.h"

#include <stdio.h>
#include <time.h>

enum { KEPT_PERCENT = 15, PHASES = 6 };

static const struct {
    size_t low, high;
} phases[PHASES] = {{16, 128}, {100, 700}, {24, 2000}, {2048, 61440}, {16, 64}, {65536, 204800}};

typedef struct {
    held *blocks;
    uint64_t count, room, live, live_most, base, resident_most;
} session;

static uint64_t grown(const session *s)
{
    uint64_t now = resident();
    return now > s->base ? now - s->base : 0;
}

static void look(session *s)
{
    uint64_t now = grown(s);
    s->resident_most = now > s->resident_most ? now : s->resident_most;
    s->live_most = s->live > s->live_most ? s->live : s->live_most;
}

static void fill(session *s, choices *c, int phase, uint64_t wanted)
{
    /* Often enough that no peak is missed by much. */
    uint64_t step = wanted / 64, next = s->live + step;
    while (s->live < wanted) {
        size_t size = between(c, phases[phase].low, phases[phase].high);
        if (s->count == s->room)
            fail("more than %llu blocks", (unsigned long long)s->room);
        void *block = malloc(size);
        if (block == NULL)
            fail("there is no block of %zu bytes", size);
        memset(block, (int)size, size);
        sign(block, size);
        s->blocks[s->count++] = (held){block, size};
        s->live += size;
        if (s->live >= next) {
            look(s);
            next = s->live + step;
        }
    }
    look(s);
}

static void thin_out(session *s, choices *c, uint64_t kept_percent)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < s->count; i++) {
        held block = s->blocks[i];
        if (below(c, 100) < kept_percent) {
            s->blocks[kept++] = block;
        } else {
            s->live -= block.size;
            put(block.at, block.size);
        }
    }
    s->count = kept;
}

int fragment(char **arguments)
{
    static session s;
    uint64_t wanted = number(arguments[0]) << 20;
    choices c = {number(arguments[1])};
    uint64_t quiet_ms = number(arguments[2]);
    double worst = 0;
    /* Blocks of at least 16 bytes, and those that are left of the phase before. */
    s.room = wanted / 16 + 1024;
    s.blocks = own_memory(s.room * sizeof *s.blocks);
    s.base = resident();
    double start = now_s();
    for (int phase = 0; phase < PHASES; phase++) {
        char name[16];
        fill(&s, &c, phase, wanted);
        double ratio = (double)grown(&s) / (double)s.live;
        snprintf(name, sizeof name, "phase-%d", phase);
        tell(name, ratio);
        worst = ratio > worst ? ratio : worst;
        thin_out(&s, &c, phase + 1 < PHASES ? KEPT_PERCENT : 0);
    }
    tell("seconds", now_s() - start);
    tell("worst", worst);
    tell("peak", (double)s.resident_most / (double)s.live_most);
    tell("after-mb", (double)grown(&s) / 1048576);
    struct timespec quiet = {(time_t)(quiet_ms / 1000), (long)(quiet_ms % 1000) * 1000000};
    nanosleep(&quiet, NULL);
    tell("later-mb", (double)grown(&s) / 1048576);
    return 0;
}
