/* Made by Hearth from loops.isf. Compile with -std=c11 -fwrapv. */
#include "hearth.h"

_Static_assert(HEARTH_ABI == 6, "this file and hearth.h are of different versions");

/* Insense integers wrap, and comparisons and divisions are as in the source. */
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Woverflow"
#pragma GCC diagnostic ignored "-Wdiv-by-zero"

static const hearth_type type_i = { .code = "i", .kind = HEARTH_KIND_INTEGER, .size = 4 };
static const hearth_type type_Ai = { .code = "Ai", .kind = HEARTH_KIND_ARRAY, .size = 8, .flat = true, .element = &type_i };
static const hearth_type type_AAi = { .code = "AAi", .kind = HEARTH_KIND_ARRAY, .size = 8, .flat = false, .element = &type_Ai };

typedef struct {
    hearth_component base;
    hearth_pointer_array *grid;
    int32_t by;
    int32_t total;
} Work_component;
_Static_assert(sizeof(Work_component) == 88, "Work has a different size than was computed");

typedef struct {
    hearth_component base;
} main_component;
_Static_assert(sizeof(hearth_component) == 72, "the compiler and hearth.h disagree");

extern void hearth_print_int(hearth_component *base, int32_t);
static void Work_bump(Work_component *self);
static int32_t Work_sum(hearth_component *base, hearth_integer_array *a, int32_t n);
static void Work_members(Work_component *self);
static void Work_constructor_0(Work_component *self);
static void Work_behaviour(Work_component *self);
static void main_sequence(main_component *self);
static const hearth_component_type Work_type;
static const hearth_component_type main_type;

static const hearth_site site_0 = { "loops.isf", 17, 33, "index" };
static const hearth_site site_1 = { "loops.isf", 24, 29, "index" };
static const hearth_site site_2 = { "loops.isf", 25, 9, "index" };

static void Work_bump(Work_component *self)
{
    int32_t by;
    by = self->by;
#line 10 "loops.isf"
    for (int64_t i = 0, i_end = (int64_t)(8 - 1) + 1; i < i_end; i++) {
        if ((size_t)(int32_t)i < 8) {
            for (int64_t j = 0, j_end = (int64_t)(16 - 1) + 1; j < j_end; j++) {
#line 11 "loops.isf"
                ((hearth_integer_array *)self->grid->data[i])->data[j] = ((hearth_integer_array *)self->grid->data[i])->data[j] + by;
            }
        } else {
            for (int64_t j = 0, j_end = (int64_t)(16 - 1) + 1; j < j_end; j++) {
                ((hearth_integer_array *)self->grid->data[i])->data[j] = ((hearth_integer_array *)self->grid->data[i])->data[j] + by;
            }
        }
    }
}

static int32_t Work_sum(hearth_component *base, hearth_integer_array *a, int32_t n)
{
    int32_t result = 0;
    int32_t s;
#line 16 "loops.isf"
    s = 0;
    if ((int64_t)((n - 1)) < (int64_t)a->length) {
        for (int64_t i = 0, i_end = (int64_t)(n - 1) + 1; i < i_end; i++) {
#line 17 "loops.isf"
            s = s + a->data[i];
        }
    } else {
        for (int64_t i = 0, i_end = (int64_t)(n - 1) + 1; i < i_end; i++) {
            if (HEARTH_UNLIKELY((size_t)(int32_t)i >= a->length)) {
                hearth_raise_index(base, (int32_t)i, a->length, &site_0);
                goto leave;
            }
            s = s + a->data[i];
        }
    }
#line 18 "loops.isf"
    result = s;
    return result;
    return result;
leave:
    return result;
}

static void Work_members(Work_component *self)
{
    hearth_component *const base = &self->base;
    hearth_pointer_array *t_1 = NULL;
#line 5 "loops.isf"
    t_1 = hearth_array_new(base, &type_AAi, (const uint32_t[]){ 8, 16 }, 2, (hearth_value){ .integer = 0 });
    self->grid = t_1;
    t_1 = NULL;
#line 6 "loops.isf"
    self->by = 3;
#line 7 "loops.isf"
    self->total = 0;
}

static void Work_constructor_0(Work_component *self)
{
    (void)self;
}

static void Work_behaviour(Work_component *self)
{
    hearth_component *const base = &self->base;
    int32_t t_1;
    int32_t t_2;
    int32_t total;
#line 23 "loops.isf"
    Work_bump(self);
    if (HEARTH_UNLIKELY(base->raised))
        goto leave;
    total = self->total;
    if ((int64_t)(4) < (int64_t)8 &&
        (int64_t)((int64_t)4 + 1) < (int64_t)16) {
        for (int64_t i = 1, i_end = (int64_t)4 + 1; i < i_end; i++) {
#line 24 "loops.isf"
            total = total + ((hearth_integer_array *)self->grid->data[i])->data[i + 1];
        }
    } else {
        for (int64_t i = 1, i_end = (int64_t)4 + 1; i < i_end; i++) {
            if (HEARTH_UNLIKELY((size_t)(int32_t)i >= 8)) {
                hearth_raise_index(base, (int32_t)i, 8, &site_1);
                goto raised_1;
            }
            if (HEARTH_UNLIKELY((size_t)((int32_t)i + 1) >= 16)) {
                hearth_raise_index(base, ((int32_t)i + 1), 16, &site_1);
                goto raised_1;
            }
            total = total + ((hearth_integer_array *)self->grid->data[i])->data[(int32_t)i + 1];
        }
    }
    self->total = total;
    goto done_2;
raised_1:
    self->total = total;
    goto leave;
done_2:;
#line 25 "loops.isf"
    t_2 = self->total;
    if (HEARTH_UNLIKELY((size_t)2 >= 8)) {
        hearth_raise_index(base, 2, 8, &site_2);
        goto leave;
    }
    t_1 = Work_sum(base, (hearth_integer_array *)self->grid->data[2], 16);
    if (HEARTH_UNLIKELY(base->raised))
        goto leave;
    self->total = t_2 + t_1;
#line 26 "loops.isf"
    hearth_print_int(base, self->total);
#line 27 "loops.isf"
    hearth_raise_stop(base);
    goto leave;
leave:
    return;
}

static void main_sequence(main_component *self)
{
    hearth_component *const base = &self->base;
    hearth_component *w = NULL;
#line 31 "loops.isf"
    w = hearth_component_new(base, &Work_type, -1);
    hearth_component_start(w);
    hearth_component_release(w);
    w = NULL;
}

/* Stages of Work: below 1, about to begin by that constructor; below 2, in it; then the
   behaviour, again and again. */
static hearth_step Work_resume(hearth_component *base)
{
    Work_component *self = (Work_component *)base;
    hearth_step step = HEARTH_DONE;
    if (base->stage < 1) {
        step = (Work_members(self), HEARTH_DONE);
        if (step != HEARTH_DONE)
            return step;
        base->stage += 1;
    }
    if (base->stage < 2) {
        switch (base->stage - 1) {
        case 0:
            step = (Work_constructor_0(self), HEARTH_DONE);
            break;
        }
        if (step != HEARTH_DONE)
            return step;
        base->stage = 2;
    }
    for (;;) {
        step = (Work_behaviour(self), base->raised ? HEARTH_RAISED : HEARTH_DONE);
        if (step != HEARTH_DONE)
            return step;
        if (!hearth_next_pass(base))
            return HEARTH_RAISED;
    }
}

static void Work_destroy(hearth_component *base)
{
    Work_component *self = (Work_component *)base;
    hearth_release(base, &type_AAi, self->grid);
    self->grid = NULL;
}

static void Work_trace(hearth_component *base, hearth_tracer *tracer)
{
    (void)base;
    (void)tracer;
}

static const hearth_component_type Work_type = {
    .name = "Work", .size = sizeof(Work_component), .resume = Work_resume, .destroy = Work_destroy,
    .trace = Work_trace,
    .port_count = 0, .ports = NULL, .service = false, .declared = { "loops.isf", 4, 11, "Work" },
    .heap_bytes = 720, .heap_largest = 80,
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
    .declared = { "loops.isf", 1, 1, "main" },
};

static const hearth_program program = { "loops.isf", HEARTH_ABI, &main_type, false };

int main(int argc, char **argv)
{
    return hearth_main(&program, argc, argv);
}
