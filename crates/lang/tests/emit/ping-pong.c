/* Made by Hearth from ping-pong.isf. Compile with -std=c11 -fwrapv. */
#include "hearth.h"

_Static_assert(HEARTH_ABI == 6, "this file and hearth.h are of different versions");

/* Insense integers wrap, and comparisons and divisions are as in the source. */
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Woverflow"
#pragma GCC diagnostic ignored "-Wdiv-by-zero"

static const hearth_type type_i = { .code = "i", .kind = HEARTH_KIND_INTEGER, .size = 4 };
static const hearth_type type_b = { .code = "b", .kind = HEARTH_KIND_BOOL, .size = 1 };

typedef struct {
    int32_t start;
} Ping_constructor_0_frame;

typedef struct {
    uint32_t state;
} Ping_behaviour_frame;

typedef struct {
    uint32_t state;
    int32_t v;
} Pong_behaviour_frame;

typedef struct {
    hearth_component base;
    hearth_channel *ball;
    hearth_channel *ack;
    int32_t n;
    union {
        Ping_constructor_0_frame constructor_0;
        Ping_behaviour_frame behaviour;
    } frame;
} Ping_component;
_Static_assert(sizeof(Ping_component) == 96, "Ping has a different size than was computed");

typedef struct {
    hearth_component base;
    hearth_channel *ball;
    hearth_channel *ack;
    union {
        Pong_behaviour_frame behaviour;
    } frame;
} Pong_component;
_Static_assert(sizeof(Pong_component) == 96, "Pong has a different size than was computed");

typedef struct {
    hearth_component base;
} main_component;
_Static_assert(sizeof(hearth_component) == 72, "the compiler and hearth.h disagree");

extern void hearth_print_int(hearth_component *base, int32_t);
static void Ping_members(Ping_component *self);
static void Ping_constructor_0(Ping_component *self, Ping_constructor_0_frame *frame);
static hearth_step Ping_behaviour(Ping_component *self, Ping_behaviour_frame *frame);
static void Pong_members(Pong_component *self);
static void Pong_constructor_0(Pong_component *self);
static hearth_step Pong_behaviour(Pong_component *self, Pong_behaviour_frame *frame);
static void main_sequence(main_component *self);
static const hearth_component_type Ping_type;
static const hearth_component_type Pong_type;
static const hearth_component_type main_type;

static const hearth_site site_0 = { "ping-pong.isf", 10, 9, "ball" };
static const hearth_site site_1 = { "ping-pong.isf", 11, 9, "ack" };
static const hearth_site site_2 = { "ping-pong.isf", 20, 9, "ball" };
static const hearth_site site_3 = { "ping-pong.isf", 22, 9, "ack" };
static const hearth_site site_4 = { "ping-pong.isf", 29, 1, "connect" };
static const hearth_site site_5 = { "ping-pong.isf", 30, 1, "connect" };

static void Ping_members(Ping_component *self)
{
#line 6 "ping-pong.isf"
    self->n = 0;
}

static void Ping_constructor_0(Ping_component *self, Ping_constructor_0_frame *frame)
{
#line 7 "ping-pong.isf"
    self->n = frame->start;
}

static hearth_step Ping_behaviour(Ping_component *self, Ping_behaviour_frame *frame)
{
    hearth_component *const base = &self->base;
    hearth_step step;
    int32_t square = 0;
    bool ok = false;
    switch (frame->state) {
    case 0:
        break;
    case 1:
        goto resume_1;
    case 2:
        goto resume_2;
    }
#line 9 "ping-pong.isf"
    square = self->n * self->n;
#line 10 "ping-pong.isf"
    step = hearth_send_scalar(base, self->ball, (hearth_value){ .integer = square }, &site_0);
    if (step == HEARTH_BLOCKED) {
        frame->state = 1;
        return HEARTH_BLOCKED;
resume_1:
        step = (hearth_step)base->outcome;
    }
    if (HEARTH_UNLIKELY(step == HEARTH_RAISED))
        goto leave;
#line 11 "ping-pong.isf"
    step = hearth_receive_here(base, self->ack, &site_1);
    if (step == HEARTH_BLOCKED) {
        frame->state = 2;
        return HEARTH_BLOCKED;
resume_2:
        step = (hearth_step)base->outcome;
    }
    if (HEARTH_UNLIKELY(step == HEARTH_RAISED))
        goto leave;
    ok = base->received.boolean;
#line 12 "ping-pong.isf"
    if (ok && (self->n >= 3)) {
        hearth_raise_stop(base);
        goto leave;
    }
#line 13 "ping-pong.isf"
    self->n = self->n + 1;
    return HEARTH_DONE;
leave:
    return base->raised ? HEARTH_RAISED : HEARTH_DONE;
}

static void Pong_members(Pong_component *self)
{
    (void)self;
}

static void Pong_constructor_0(Pong_component *self)
{
    (void)self;
}

static hearth_step Pong_behaviour(Pong_component *self, Pong_behaviour_frame *frame)
{
    hearth_component *const base = &self->base;
    hearth_step step;
    switch (frame->state) {
    case 0:
        break;
    case 1:
        goto resume_1;
    case 2:
        goto resume_2;
    }
#line 20 "ping-pong.isf"
    step = hearth_receive_here(base, self->ball, &site_2);
    if (step == HEARTH_BLOCKED) {
        frame->state = 1;
        return HEARTH_BLOCKED;
resume_1:
        step = (hearth_step)base->outcome;
    }
    if (HEARTH_UNLIKELY(step == HEARTH_RAISED))
        goto leave;
    frame->v = base->received.integer;
#line 21 "ping-pong.isf"
    hearth_print_int(base, frame->v);
#line 22 "ping-pong.isf"
    step = hearth_send_scalar(base, self->ack, (hearth_value){ .boolean = true }, &site_3);
    if (step == HEARTH_BLOCKED) {
        frame->state = 2;
        return HEARTH_BLOCKED;
resume_2:
        step = (hearth_step)base->outcome;
    }
    if (HEARTH_UNLIKELY(step == HEARTH_RAISED))
        goto leave;
#line 23 "ping-pong.isf"
    if (frame->v >= 9) {
        hearth_raise_stop(base);
        goto leave;
    }
    return HEARTH_DONE;
leave:
    return base->raised ? HEARTH_RAISED : HEARTH_DONE;
}

static void main_sequence(main_component *self)
{
    hearth_component *const base = &self->base;
    hearth_component *p = NULL;
    hearth_component *q = NULL;
    hearth_channel *t_3 = NULL;
    hearth_channel *t_4 = NULL;
    hearth_channel *t_5 = NULL;
    hearth_channel *t_6 = NULL;
#line 27 "ping-pong.isf"
    p = hearth_component_new(base, &Ping_type, -1);
    ((Ping_component *)p)->frame.constructor_0.start = 1;
    hearth_component_start(p);
#line 28 "ping-pong.isf"
    q = hearth_component_new(base, &Pong_type, -1);
    hearth_component_start(q);
#line 29 "ping-pong.isf"
    t_3 = hearth_port_of(p, "ball");
    t_4 = hearth_port_of(q, "ball");
    hearth_connect(base, t_3, t_4, &site_4);
    hearth_channel_release(t_4);
    t_4 = NULL;
    hearth_channel_release(t_3);
    t_3 = NULL;
#line 30 "ping-pong.isf"
    t_5 = hearth_port_of(p, "ack");
    t_6 = hearth_port_of(q, "ack");
    hearth_connect(base, t_5, t_6, &site_5);
    hearth_channel_release(t_6);
    t_6 = NULL;
    hearth_channel_release(t_5);
    t_5 = NULL;
    hearth_component_release(q);
    q = NULL;
    hearth_component_release(p);
    p = NULL;
}

/* Stages of Ping: below 1, about to begin by that constructor; below 2, in it; then the
   behaviour, again and again. */
static hearth_step Ping_resume(hearth_component *base)
{
    Ping_component *self = (Ping_component *)base;
    hearth_step step = HEARTH_DONE;
    if (base->stage < 1) {
        step = (Ping_members(self), HEARTH_DONE);
        if (step != HEARTH_DONE)
            return step;
        base->stage += 1;
    }
    if (base->stage < 2) {
        switch (base->stage - 1) {
        case 0:
            step = (Ping_constructor_0(self, &self->frame.constructor_0), HEARTH_DONE);
            break;
        }
        if (step != HEARTH_DONE)
            return step;
        base->stage = 2;
        self->frame.behaviour.state = 0;
    }
    for (;;) {
        step = Ping_behaviour(self, &self->frame.behaviour);
        if (step != HEARTH_DONE)
            return step;
        self->frame.behaviour.state = 0;
        if (!hearth_next_pass(base))
            return HEARTH_RAISED;
    }
}

static void Ping_destroy(hearth_component *base)
{
    (void)base;
}

static void Ping_trace(hearth_component *base, hearth_tracer *tracer)
{
    (void)base;
    (void)tracer;
}

static const hearth_port Ping_ports[] = {
    { "ball", 1, &type_i, offsetof(Ping_component, ball) },
    { "ack", 0, &type_b, offsetof(Ping_component, ack) },
};

static const hearth_component_type Ping_type = {
    .name = "Ping", .size = sizeof(Ping_component), .resume = Ping_resume, .destroy = Ping_destroy,
    .trace = Ping_trace,
    .port_count = 2, .ports = Ping_ports, .service = false, .declared = { "ping-pong.isf", 5, 11, "Ping" },
};

/* Stages of Pong: below 1, about to begin by that constructor; below 2, in it; then the
   behaviour, again and again. */
static hearth_step Pong_resume(hearth_component *base)
{
    Pong_component *self = (Pong_component *)base;
    hearth_step step = HEARTH_DONE;
    if (base->stage < 1) {
        step = (Pong_members(self), HEARTH_DONE);
        if (step != HEARTH_DONE)
            return step;
        base->stage += 1;
    }
    if (base->stage < 2) {
        switch (base->stage - 1) {
        case 0:
            step = (Pong_constructor_0(self), HEARTH_DONE);
            break;
        }
        if (step != HEARTH_DONE)
            return step;
        base->stage = 2;
        self->frame.behaviour.state = 0;
    }
    for (;;) {
        step = Pong_behaviour(self, &self->frame.behaviour);
        if (step != HEARTH_DONE)
            return step;
        self->frame.behaviour.state = 0;
        if (!hearth_next_pass(base))
            return HEARTH_RAISED;
    }
}

static void Pong_destroy(hearth_component *base)
{
    (void)base;
}

static void Pong_trace(hearth_component *base, hearth_tracer *tracer)
{
    (void)base;
    (void)tracer;
}

static const hearth_port Pong_ports[] = {
    { "ball", 0, &type_i, offsetof(Pong_component, ball) },
    { "ack", 1, &type_b, offsetof(Pong_component, ack) },
};

static const hearth_component_type Pong_type = {
    .name = "Pong", .size = sizeof(Pong_component), .resume = Pong_resume, .destroy = Pong_destroy,
    .trace = Pong_trace,
    .port_count = 2, .ports = Pong_ports, .service = false, .declared = { "ping-pong.isf", 17, 11, "Pong" },
};

static hearth_step main_resume(hearth_component *base)
{
    main_component *self = (main_component *)base;
    return (main_sequence(self), HEARTH_DONE);
}

static void main_destroy(hearth_component *base)
{
    (void)base;
}

static const hearth_component_type main_type = {
    .name = "main", .size = sizeof(main_component), .resume = main_resume, .destroy = main_destroy,
    .declared = { "ping-pong.isf", 1, 1, "main" },
};

static const hearth_program program = { "ping-pong.isf", HEARTH_ABI, &main_type, false };

int main(int argc, char **argv)
{
    return hearth_main(&program, argc, argv);
}
