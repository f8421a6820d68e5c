/* Macros for components written by hand. */
#ifndef HAND_H
#define HAND_H

#include "hearth.h"

extern void hearth_print_string(hearth_component *self, const hearth_string *text);
extern void hearth_print_int(hearth_component *self, int32_t number);
extern hearth_step hearth_get_string(hearth_component *self, const hearth_site *site);
extern void hearth_set_timer(hearth_component *self, hearth_channel *, float seconds, bool repeat);
extern void hearth_unset_timer(hearth_component *self, hearth_channel *);
extern void hearth_set_rtimer(hearth_component *self, hearth_channel *, float milliseconds);
extern void hearth_set_core(hearth_component *self, uint32_t core);
extern int32_t hearth_argument_count(hearth_component *self);
extern hearth_string *hearth_argument(hearth_component *self, int32_t index);

static const hearth_type integer = {"i", HEARTH_KIND_INTEGER, 4, true, NULL, 0, NULL, 0};
static const hearth_type boolean = {"b", HEARTH_KIND_BOOL, 1, true, NULL, 0, NULL, 0};
static const hearth_type string = {"s", HEARTH_KIND_STRING, 8, false, NULL, 0, NULL, 0};
static const hearth_type any = {"a", HEARTH_KIND_ANY, 8, false, NULL, 0, NULL, 0};

/* A place in the test file, named after a channel. */
#define SITE(what)                                                                                 \
    ({                                                                                             \
        static const hearth_site site = {"hand.isf", __LINE__, 1, what};                           \
        &site;                                                                                     \
    })

/* An operation that may block. */
#define AWAIT(operation)                                                                           \
    step = (operation);                                                                            \
    if (step == HEARTH_BLOCKED) {                                                                  \
        base->stage = __LINE__;                                                                    \
        return HEARTH_BLOCKED;                                                                     \
        case __LINE__: step = base->outcome;                                                       \
    }                                                                                              \
    if (step != HEARTH_DONE) return step
#define PASS if (!hearth_next_pass(base)) return HEARTH_RAISED

#define SEND(channel, number)                                                                      \
    hearth_send(base, self->channel, (hearth_value){.integer = number}, false, SITE(#channel))
#define RECEIVE(channel) hearth_receive(base, self->channel, SITE(#channel))

static inline void print(hearth_component *self, const char *text)
{
    struct { hearth_object object; size_t length; char text[200]; } copy =
        {{HEARTH_IMMORTAL, 0}, strlen(text), ""};
    memcpy(copy.text, text, copy.length);
    hearth_print_string(self, (hearth_string *)&copy);
}
static inline void print_int(hearth_component *self, int32_t number)
{
    hearth_print_int(self, number);
    print(self, "\n");
}
static inline void join(hearth_component *self, hearth_component *a, const char *port_a,
                        hearth_component *b, const char *port_b)
{
    hearth_channel *from = hearth_port_of(a, port_a), *to = hearth_port_of(b, port_b);
    hearth_connect(self, from, to, NULL);
    hearth_channel_release(from);
    hearth_channel_release(to);
}
static inline hearth_component *begin(hearth_component *self, const hearth_component_type *type)
{
    hearth_component *component = hearth_component_new(self, type, -1);
    hearth_component_start(component);
    return component;
}

/* One struct serves all: ports of every kind, and variables. */
typedef struct {
    hearth_component base;
    hearth_channel *out, *in, *out2, *in2, *tick, *text_out, *text_in, *any_out, *any_in;
    int32_t a, b, c;
    void *reference;
    hearth_held held;
    hearth_component *other;
} Hand;
static const hearth_port hand_ports[] = {
    {"out", 1, &integer, offsetof(Hand, out)},      {"in", 0, &integer, offsetof(Hand, in)},
    {"out2", 1, &integer, offsetof(Hand, out2)},    {"in2", 0, &integer, offsetof(Hand, in2)},
    {"tick", 0, &boolean, offsetof(Hand, tick)},    {"text_out", 1, &string, offsetof(Hand, text_out)},
    {"text_in", 0, &string, offsetof(Hand, text_in)}, {"any_out", 1, &any, offsetof(Hand, any_out)},
    {"any_in", 0, &any, offsetof(Hand, any_in)}};

/* COMPONENT(Ping) { ... END; } defines Ping's code. */
#define COMPONENT(name)                                                                            \
    static hearth_step name##_resume(hearth_component *);                                          \
    static const hearth_component_type name = {                                                    \
        #name, sizeof(Hand), name##_resume, NULL, NULL, sizeof hand_ports / sizeof *hand_ports,    \
        hand_ports, false, {"hand.isf", __LINE__, 1, #name}, 0, 0};                                \
    static hearth_step name##_resume(hearth_component *base)                                       \
    {                                                                                              \
        Hand *self = (Hand *)base;                                                                 \
        (void)self;                                                                                \
        hearth_step step = HEARTH_DONE;                                                            \
        (void)step;                                                                                \
        switch (base->stage) {                                                                     \
        case 0:
#define END                                                                                        \
    }                                                                                              \
    return HEARTH_DONE;                                                                            \
    }

/* A main program that runs one of `cases`, named by its first argument. */
#define MAIN                                                                                       \
    static hearth_step main_resume(hearth_component *self)                                         \
    {                                                                                              \
        hearth_string *wanted = hearth_argument(self, 0);                                          \
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)                                  \
            if (strcmp(cases[i].name, wanted->text) == 0) {                                        \
                hearth_release(self, &string, wanted);                                             \
                cases[i].run(self);                                                                \
                return HEARTH_DONE;                                                                \
            }                                                                                      \
        hearth_raise(self, HEARTH_OPERATION_FAILED, SITE(""), "there is no such case");            \
        return HEARTH_RAISED;                                                                      \
    }                                                                                              \
    static const hearth_component_type main_type = {                                               \
        "main", sizeof(hearth_component), main_resume, NULL, NULL, 0, NULL, false,                 \
        {"hand.isf", 1, 1, "main"}, 0, 0};                                                         \
    static const hearth_program program = {"hand.isf", HEARTH_ABI, &main_type, false};             \
    int main(int argc, char **argv) { return hearth_main(&program, argc, argv); }

#endif
