/* Programs that print on how many threads their components ran; the first argument selects one. */
#define _GNU_SOURCE
#include "hand.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MANY 16
#define ROUNDS 40
#define MESSAGES 20000

/* ---- threads used ------------------------------------------------------------------------ */

static atomic_long threads[64];

static void note_thread(void)
{
    long id = syscall(SYS_gettid);
    for (int i = 0; i < 64; i++) {
        long none = 0;
        if (threads[i] == id) return;
        if (atomic_compare_exchange_strong(&threads[i], &none, id) || none == id) return;
    }
}

static void print_threads(hearth_component *self)
{
    int count = 0;
    while (count < 64 && threads[count] != 0) count++;
    print_int(self, count);
}

static void compute(double milliseconds)
{
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        note_thread();
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1e3 + (now.tv_nsec - start.tv_nsec) * 1e-6 < milliseconds);
}

/* ---- computing --------------------------------------------------------------------------- */

COMPONENT(Cruncher)
    for (self->a = 0; self->a < ROUNDS; self->a++) {
        compute(0.2);
        AWAIT(SEND(out, 1));
    }
END

COMPONENT(Pinned)
    hearth_set_core(base, 0);
    AWAIT(SEND(out, 1));
    for (self->a = 1; self->a < ROUNDS; self->a++) {
        compute(0.2);
        AWAIT(SEND(out, 1));
    }
END

COMPONENT(Collector)
    for (self->a = 0; self->a < MANY * ROUNDS; self->a++) {
        AWAIT(RECEIVE(in));
    }
    print_threads(base);
END

static void start_many(hearth_component *self, const hearth_component_type *type, int32_t core)
{
    hearth_component *collector = begin(self, &Collector);
    for (int i = 0; i < MANY; i++) {
        hearth_component *one = hearth_component_new(self, type, core);
        join(self, one, "out", collector, "in");
        hearth_component_start(one);
        hearth_component_release(one);
    }
    hearth_component_release(collector);
}

static void computing(hearth_component *self) { start_many(self, &Cruncher, -1); }
static void pinned(hearth_component *self) { start_many(self, &Pinned, -1); }
static void placed(hearth_component *self) { start_many(self, &Cruncher, 0); }

/* ---- dealt ------------------------------------------------------------------------------- */

/* The dealer waits for the one to which it deals, and is all that waits while that one computes. */
COMPONENT(Dealer)
    for (self->a = 0; self->a < MANY * ROUNDS; self->a++) {
        AWAIT(RECEIVE(in));
        AWAIT(SEND(out, 1));
    }
    print_threads(base);
END

COMPONENT(Asker)
    for (self->a = 0; self->a < ROUNDS; self->a++) {
        AWAIT(SEND(out, 1));
        AWAIT(RECEIVE(in));
        compute(0.2);
    }
END

static void dealt(hearth_component *self)
{
    hearth_component *dealer = begin(self, &Dealer);
    for (int i = 0; i < MANY; i++) {
        hearth_component *asker = hearth_component_new(self, &Asker, -1);
        join(self, asker, "out", dealer, "in");
        join(self, dealer, "out", asker, "in");
        hearth_component_start(asker);
        hearth_component_release(asker);
    }
    hearth_component_release(dealer);
}

/* ---- once and no more -------------------------------------------------------------------- */

static atomic_int ended;

COMPONENT(Once)
    compute(2);
    if (++ended == MANY) print_threads(base);
END

static void once(hearth_component *self)
{
    for (int i = 0; i < MANY; i++) hearth_component_release(begin(self, &Once));
}

/* ---- talking ----------------------------------------------------------------------------- */

COMPONENT(Talker)
    for (self->a = 0; self->a < MESSAGES; self->a++) {
        AWAIT(SEND(out, self->a));
        note_thread();
    }
END

COMPONENT(Hearer)
    for (self->a = 0; self->a < MESSAGES; self->a++) {
        AWAIT(RECEIVE(in));
        note_thread();
    }
    print_threads(base);
END

static void talking(hearth_component *self)
{
    hearth_component *talker = begin(self, &Talker), *hearer = begin(self, &Hearer);
    join(self, talker, "out", hearer, "in");
    hearth_component_release(talker);
    hearth_component_release(hearer);
}

/* ---- many to one ------------------------------------------------------------------------- */

static int senders;

COMPONENT(Sender)
    AWAIT(SEND(out, 1));
END

/* The acknowledge moves all waiting senders into queues. */
COMPONENT(Sink)
    AWAIT(hearth_acknowledge(base, self->in, SITE("in")));
    hearth_held held = base->held;
    base->held = (hearth_held){NULL, 0};
    hearth_release_sender(base, &held, true);
    for (self->a = 1; self->a < senders; self->a++) {
        AWAIT(RECEIVE(in));
    }
    print_int(base, self->a);
END

static void many_to_one(hearth_component *self)
{
    hearth_string *count = hearth_argument(self, 1);
    senders = atoi(count->text);
    hearth_release(self, &string, count);
    hearth_component *sink = hearth_component_new(self, &Sink, -1);
    for (int i = 0; i < senders; i++) {
        hearth_component *sender = begin(self, &Sender);
        join(self, sender, "out", sink, "in");
        hearth_component_release(sender);
    }
    hearth_component_start(sink);
    hearth_component_release(sink);
}

/* ------------------------------------------------------------------------------------------ */

static const struct { const char *name; void (*run)(hearth_component *); } cases[] = {
    {"computing", computing}, {"dealt", dealt}, {"pinned", pinned}, {"placed", placed}, {"once", once},
    {"talking", talking}, {"many to one", many_to_one}};

MAIN
