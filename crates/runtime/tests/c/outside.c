/* Programs that wait for outside events; the first argument selects one. */
#include "hand.h"
#include <stdatomic.h>
#include <time.h>

extern hearth_step hearth_device_press(hearth_component *self, const hearth_site *site);
extern hearth_step hearth_device_serial_line(hearth_component *self, const hearth_site *site);

static double seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

/* ---- nothing happens --------------------------------------------------------------------- */

COMPONENT(Idler)
    AWAIT(RECEIVE(tick));
END

COMPONENT(Patient)
    hearth_set_timer(base, self->tick, 3600.0f, true);
    AWAIT(RECEIVE(tick));
END

static void idlers(hearth_component *self, int count)
{
    for (int i = 0; i < count; i++) hearth_component_release(begin(self, &Idler));
    hearth_component_release(begin(self, &Patient));
    print(self, "idle\n");
}
static void idle(hearth_component *self) { idlers(self, 100000); }
static void idle_threads(hearth_component *self) { idlers(self, 1000); }

/* ---- ticks while all compute ------------------------------------------------------------- */

#define TICKS 10
#define LIMIT 60.0
static atomic_int ticks;
static atomic_bool late;

COMPONENT(Ticker)
    hearth_set_timer(base, self->tick, 0.01f, true);
    while (ticks < TICKS) {
        AWAIT(RECEIVE(tick));
        ticks++;
    }
END

/* Computes without a pause. */
COMPONENT(Spinner)
    for (double start = seconds(); ticks < TICKS && !late;)
        if (seconds() > start + LIMIT) late = true;
END

/* Runs again and again, but never for long. */
COMPONENT(Sender)
    while (ticks < TICKS) {
        AWAIT(SEND(out, 1));
    }
    AWAIT(SEND(out, 0));
END

static double started;

COMPONENT(Receiver)
    started = seconds();
    for (self->a = 1; self->a != 0;) {
        AWAIT(RECEIVE(in));
        self->a = base->received.integer;
        if (seconds() > started + LIMIT) {
            late = true;
            ticks = TICKS;
        }
    }
END

COMPONENT(Judge)
    hearth_set_timer(base, self->tick, 0.01f, true);
    while (ticks < TICKS) {
        AWAIT(RECEIVE(tick));
    }
    print(base, late ? "late\n" : "in time\n");
END

static void computing(hearth_component *self)
{
    hearth_component_release(begin(self, &Ticker));
    hearth_component_release(begin(self, &Judge));
    for (int i = 0; i < 3; i++) hearth_component_release(begin(self, &Spinner));
}

static void chatting(hearth_component *self)
{
    hearth_component_release(begin(self, &Ticker));
    hearth_component_release(begin(self, &Judge));
    hearth_component *sender = begin(self, &Sender), *receiver = begin(self, &Receiver);
    join(self, sender, "out", receiver, "in");
    hearth_component_release(sender);
    hearth_component_release(receiver);
}

/* ---- many timers ------------------------------------------------------------------------- */

#define CROWD 500
static atomic_int made, served;

COMPONENT(Setter)
    self->a = made++;
    /* Set, then reset to sooner, later and sooner again: the last one counts. */
    hearth_set_timer(base, self->tick, 1000.0f, false);
    hearth_set_rtimer(base, self->tick, 0.0f + self->a % 7);
    hearth_set_timer(base, self->tick, 1000.0f, true);
    hearth_set_rtimer(base, self->tick, 0.0f + self->a % 50);
    AWAIT(RECEIVE(tick));
    hearth_set_timer(base, self->tick, 0.001f, true);
    AWAIT(RECEIVE(tick));
    AWAIT(RECEIVE(tick));
    hearth_unset_timer(base, self->tick);
    hearth_unset_timer(base, self->tick);
    served++;
    if (served == CROWD) print_int(base, served);
END

static void crowd(hearth_component *self)
{
    for (int i = 0; i < CROWD; i++) hearth_component_release(begin(self, &Setter));
}

/* ---- devices ----------------------------------------------------------------------------- */

COMPONENT(Presser)
    for (self->a = 1; self->a <= 3; self->a++) {
        AWAIT(hearth_device_press(base, SITE("press")));
        print(base, "pressed\n");
    }
END

static void pressing(hearth_component *self)
{
    print(self, "ready\n");
    hearth_component_release(begin(self, &Presser));
}

COMPONENT(Listener)
    for (;;) {
        AWAIT(hearth_device_serial_line(base, SITE("serial")));
        hearth_print_string(base, base->received.pointer);
        print(base, ".\n");
        bool is_last = strcmp(((hearth_string *)base->received.pointer)->text, "end") == 0;
        hearth_release(base, &string, base->received.pointer);
        if (is_last) return HEARTH_DONE;
    }
END

static void listening(hearth_component *self)
{
    print(self, "ready\n");
    hearth_component_release(begin(self, &Listener));
}

/* ------------------------------------------------------------------------------------------ */

static const struct { const char *name; void (*run)(hearth_component *); } cases[] = {
    {"idle", idle}, {"idle threads", idle_threads}, {"computing", computing}, {"chatting", chatting}, {"crowd", crowd},
    {"pressing", pressing}, {"listening", listening}};

MAIN
