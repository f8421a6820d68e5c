/* Made by Hearth from references.isf. Compile with -std=c11 -fwrapv. */
#include "hearth.h"

_Static_assert(HEARTH_ABI == 6, "this file and hearth.h are of different versions");

/* Insense integers wrap, and comparisons and divisions are as in the source. */
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Woverflow"
#pragma GCC diagnostic ignored "-Wdiv-by-zero"

typedef struct Point_struct Point_struct;
struct Point_struct {
    hearth_object object;
    int32_t x;
    int32_t y;
};

static const hearth_type type_i = { .code = "i", .kind = HEARTH_KIND_INTEGER, .size = 4 };
static const hearth_type type_Ai = { .code = "Ai", .kind = HEARTH_KIND_ARRAY, .size = 8, .flat = true, .element = &type_i };
static const hearth_type type_AAi = { .code = "AAi", .kind = HEARTH_KIND_ARRAY, .size = 8, .flat = false, .element = &type_Ai };

typedef struct {
    uint32_t state;
} Maker_behaviour_frame;

typedef struct {
    uint32_t state;
    hearth_component *m;
    hearth_channel *i;
    hearth_integer_array *a;
} main_sequence_frame;

typedef struct {
    hearth_component base;
    hearth_channel *rows;
    hearth_pointer_array *kept;
    union {
        Maker_behaviour_frame behaviour;
    } frame;
} Maker_component;
_Static_assert(sizeof(Maker_component) == 96, "Maker has a different size than was computed");

typedef struct {
    hearth_component base;
    main_sequence_frame frame;
} main_component;
_Static_assert(sizeof(hearth_component) == 72, "the compiler and hearth.h disagree");

extern void hearth_print_int(hearth_component *base, int32_t);
static int32_t proc_norm(hearth_component *base, Point_struct *p);
static void Maker_members(Maker_component *self);
static void Maker_constructor_0(Maker_component *self);
static hearth_step Maker_behaviour(Maker_component *self, Maker_behaviour_frame *frame);
static hearth_step main_sequence(main_component *self, main_sequence_frame *frame);
static const hearth_component_type Maker_type;
static const hearth_component_type main_type;

static const hearth_site site_0 = { "references.isf", 14, 9, "index" };
static const hearth_site site_1 = { "references.isf", 15, 9, "index" };
static const hearth_site site_2 = { "references.isf", 16, 9, "rows" };
static const hearth_site site_3 = { "references.isf", 17, 9, "index" };
static const hearth_site site_4 = { "references.isf", 17, 9, "rows" };
static const hearth_site site_5 = { "references.isf", 24, 1, "connect" };
static const hearth_site site_6 = { "references.isf", 25, 1, "i" };
static const hearth_site site_7 = { "references.isf", 26, 1, "i" };
static const hearth_site site_8 = { "references.isf", 27, 1, "index" };

static int32_t proc_norm(hearth_component *base, Point_struct *p)
{
    (void)base;
    int32_t result = 0;
#line 6 "references.isf"
    result = (p->x * p->x) + (p->y * p->y);
    return result;
    return result;
}

static void Maker_members(Maker_component *self)
{
    hearth_component *const base = &self->base;
    hearth_pointer_array *t_1 = NULL;
#line 9 "references.isf"
    t_1 = hearth_array_new(base, &type_AAi, (const uint32_t[]){ 2, 4 }, 2, (hearth_value){ .integer = 7 });
    self->kept = t_1;
    t_1 = NULL;
}

static void Maker_constructor_0(Maker_component *self)
{
    (void)self;
}

static hearth_step Maker_behaviour(Maker_component *self, Maker_behaviour_frame *frame)
{
    hearth_component *const base = &self->base;
    hearth_step step;
    Point_struct *p = NULL;
    int32_t t_1 = 0;
    hearth_integer_array *fresh = NULL;
    hearth_integer_array *row = NULL;
    Point_struct p_object;
    switch (frame->state) {
    case 0:
        break;
    case 1:
        goto resume_1;
    case 2:
        goto resume_2;
    }
#line 12 "references.isf"
    {
        Point_struct *made = &p_object;
        made->object = (hearth_object){ HEARTH_IMMORTAL, 0 };
        made->x = 3;
        made->y = 4;
        p = made;
    }
#line 13 "references.isf"
    t_1 = proc_norm(base, p);
    fresh = hearth_array_new(base, &type_Ai, (const uint32_t[]){ 300 }, 1, (hearth_value){ .integer = t_1 });
#line 14 "references.isf"
    if (HEARTH_UNLIKELY((size_t)1 >= 2)) {
        hearth_raise_index(base, 1, 2, &site_0);
        goto leave;
    }
    row = (hearth_integer_array *)self->kept->data[1];
#line 15 "references.isf"
    if (HEARTH_UNLIKELY((size_t)0 >= fresh->length)) {
        hearth_raise_index(base, 0, fresh->length, &site_1);
        goto leave;
    }
    if (HEARTH_UNLIKELY((size_t)0 >= row->length)) {
        hearth_raise_index(base, 0, row->length, &site_1);
        goto leave;
    }
    if (HEARTH_UNLIKELY((size_t)1 >= row->length)) {
        hearth_raise_index(base, 1, row->length, &site_1);
        goto leave;
    }
    fresh->data[0] = row->data[0] + row->data[1];
#line 16 "references.isf"
    step = hearth_send(base, self->rows, (hearth_value){ .pointer = fresh }, true, &site_2);
    fresh = NULL;
    if (step == HEARTH_BLOCKED) {
        frame->state = 1;
        return HEARTH_BLOCKED;
resume_1:
        step = (hearth_step)base->outcome;
    }
    if (HEARTH_UNLIKELY(step == HEARTH_RAISED))
        goto leave;
#line 17 "references.isf"
    if (HEARTH_UNLIKELY((size_t)0 >= 2)) {
        hearth_raise_index(base, 0, 2, &site_3);
        goto leave;
    }
    step = hearth_send(base, self->rows, (hearth_value){ .pointer = (hearth_integer_array *)self->kept->data[0] }, false, &site_4);
    if (step == HEARTH_BLOCKED) {
        frame->state = 2;
        return HEARTH_BLOCKED;
resume_2:
        step = (hearth_step)base->outcome;
    }
    if (HEARTH_UNLIKELY(step == HEARTH_RAISED))
        goto leave;
#line 18 "references.isf"
    hearth_raise_stop(base);
    goto leave;
    return HEARTH_DONE;
leave:
    hearth_release(base, &type_Ai, fresh);
    return base->raised ? HEARTH_RAISED : HEARTH_DONE;
}

static hearth_step main_sequence(main_component *self, main_sequence_frame *frame)
{
    hearth_component *const base = &self->base;
    hearth_step step;
    hearth_channel *t_3 = NULL;
    hearth_integer_array *b = NULL;
    switch (frame->state) {
    case 0:
        frame->m = NULL;
        frame->i = NULL;
        frame->a = NULL;
        break;
    case 1:
        goto resume_1;
    case 2:
        goto resume_2;
    }
#line 22 "references.isf"
    frame->m = hearth_component_new(base, &Maker_type, -1);
    hearth_component_start(frame->m);
#line 23 "references.isf"
    frame->i = hearth_channel_new(base, &type_Ai, 0);
#line 24 "references.isf"
    t_3 = hearth_port_of(frame->m, "rows");
    hearth_connect(base, t_3, frame->i, &site_5);
    hearth_channel_release(t_3);
    t_3 = NULL;
#line 25 "references.isf"
    step = hearth_receive_here(base, frame->i, &site_6);
    if (step == HEARTH_BLOCKED) {
        frame->state = 1;
        return HEARTH_BLOCKED;
resume_1:
        step = (hearth_step)base->outcome;
    }
    if (HEARTH_UNLIKELY(step == HEARTH_RAISED))
        goto leave;
    frame->a = (hearth_integer_array *)base->received.pointer;
#line 26 "references.isf"
    step = hearth_receive_here(base, frame->i, &site_7);
    if (step == HEARTH_BLOCKED) {
        frame->state = 2;
        return HEARTH_BLOCKED;
resume_2:
        step = (hearth_step)base->outcome;
    }
    if (HEARTH_UNLIKELY(step == HEARTH_RAISED))
        goto leave;
    b = (hearth_integer_array *)base->received.pointer;
#line 27 "references.isf"
    if (HEARTH_UNLIKELY((size_t)0 >= frame->a->length)) {
        hearth_raise_index(base, 0, frame->a->length, &site_8);
        goto leave;
    }
    if (HEARTH_UNLIKELY((size_t)1 >= frame->a->length)) {
        hearth_raise_index(base, 1, frame->a->length, &site_8);
        goto leave;
    }
    if (HEARTH_UNLIKELY((size_t)3 >= b->length)) {
        hearth_raise_index(base, 3, b->length, &site_8);
        goto leave;
    }
    hearth_print_int(base, (frame->a->data[0] + frame->a->data[1]) + b->data[3]);
    hearth_release(base, &type_Ai, b);
    b = NULL;
    hearth_release(base, &type_Ai, frame->a);
    frame->a = NULL;
    hearth_channel_release(frame->i);
    frame->i = NULL;
    hearth_component_release(frame->m);
    frame->m = NULL;
    return HEARTH_DONE;
leave:
    hearth_component_release(frame->m);
    frame->m = NULL;
    hearth_channel_release(frame->i);
    frame->i = NULL;
    hearth_channel_release(t_3);
    hearth_release(base, &type_Ai, frame->a);
    frame->a = NULL;
    hearth_release(base, &type_Ai, b);
    return base->raised ? HEARTH_RAISED : HEARTH_DONE;
}

/* Stages of Maker: below 1, about to begin by that constructor; below 2, in it; then the
   behaviour, again and again. */
static hearth_step Maker_resume(hearth_component *base)
{
    Maker_component *self = (Maker_component *)base;
    hearth_step step = HEARTH_DONE;
    if (base->stage < 1) {
        step = (Maker_members(self), HEARTH_DONE);
        if (step != HEARTH_DONE)
            return step;
        base->stage += 1;
    }
    if (base->stage < 2) {
        switch (base->stage - 1) {
        case 0:
            step = (Maker_constructor_0(self), HEARTH_DONE);
            break;
        }
        if (step != HEARTH_DONE)
            return step;
        base->stage = 2;
        self->frame.behaviour.state = 0;
    }
    for (;;) {
        step = Maker_behaviour(self, &self->frame.behaviour);
        if (step != HEARTH_DONE)
            return step;
        self->frame.behaviour.state = 0;
        if (!hearth_next_pass(base))
            return HEARTH_RAISED;
    }
}

static void Maker_destroy(hearth_component *base)
{
    Maker_component *self = (Maker_component *)base;
    hearth_release(base, &type_AAi, self->kept);
    self->kept = NULL;
}

static void Maker_trace(hearth_component *base, hearth_tracer *tracer)
{
    (void)base;
    (void)tracer;
}

static const hearth_port Maker_ports[] = {
    { "rows", 1, &type_Ai, offsetof(Maker_component, rows) },
};

static const hearth_component_type Maker_type = {
    .name = "Maker", .size = sizeof(Maker_component), .resume = Maker_resume, .destroy = Maker_destroy,
    .trace = Maker_trace,
    .port_count = 1, .ports = Maker_ports, .service = false, .declared = { "references.isf", 8, 11, "Maker" },
    .heap_bytes = 6432, .heap_largest = 1280,
};

static hearth_step main_resume(hearth_component *base)
{
    main_component *self = (main_component *)base;
    return main_sequence(self, &self->frame);
}

static void main_destroy(hearth_component *base)
{
    (void)base;
}

static const hearth_component_type main_type = {
    .name = "main", .size = sizeof(main_component), .resume = main_resume, .destroy = main_destroy,
    .declared = { "references.isf", 1, 1, "main" },
    .heap_bytes = 2560, .heap_largest = 1280,
};

static const hearth_program program = { "references.isf", HEARTH_ABI, &main_type, false };

int main(int argc, char **argv)
{
    return hearth_main(&program, argc, argv);
}
