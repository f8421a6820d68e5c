/* Two components play until each has had enough: compiled code, written by hand. */
#include "hearth.h"
#include <stdio.h>

static const hearth_type integer = {"i", HEARTH_KIND_INTEGER, 4, true, NULL, 0, NULL, 0};
static const hearth_type boolean = {"b", HEARTH_KIND_BOOL, 1, true, NULL, 0, NULL, 0};

enum { ROUNDS = 1000 };

typedef struct {
    hearth_component base;
    hearth_channel *ball, *ack;
    int32_t n;
} Ping;
static const hearth_site ping_send = {"ping_pong.isf", 3, 9, "ball"};
static const hearth_site ping_receive = {"ping_pong.isf", 4, 9, "ack"};

static hearth_step ping_resume(hearth_component *base)
{
    Ping *self = (Ping *)base;
    hearth_step step;
    switch (base->stage) {
    case 1: goto sent;
    case 2: goto received;
    }
    for (;;) {
        step = hearth_send(base, self->ball, (hearth_value){.integer = self->n}, false, &ping_send);
        if (step == HEARTH_BLOCKED) {
            base->stage = 1;
            return HEARTH_BLOCKED;
        sent:
            step = base->outcome;
        }
        if (step != HEARTH_DONE) return step;
        step = hearth_receive(base, self->ack, &ping_receive);
        if (step == HEARTH_BLOCKED) {
            base->stage = 2;
            return HEARTH_BLOCKED;
        received:
            step = base->outcome;
        }
        if (step != HEARTH_DONE) return step;
        if (!base->received.boolean) return HEARTH_DONE;
        self->n++;
        if (!hearth_next_pass(base)) return HEARTH_RAISED;
    }
}
static const hearth_port ping_ports[] = {
    {"ball", 1, &integer, offsetof(Ping, ball)}, {"ack", 0, &boolean, offsetof(Ping, ack)}};
static const hearth_component_type ping = {"Ping", sizeof(Ping), ping_resume, NULL, NULL, 2, ping_ports,
                                           false, {"ping_pong.isf", 1, 1, "Ping"}, 0, 0};

typedef struct {
    hearth_component base;
    hearth_channel *ball, *ack;
    int32_t sum;
} Pong;
static const hearth_site pong_receive = {"ping_pong.isf", 10, 9, "ball"};
static const hearth_site pong_send = {"ping_pong.isf", 11, 9, "ack"};

static hearth_step pong_resume(hearth_component *base)
{
    Pong *self = (Pong *)base;
    hearth_step step;
    switch (base->stage) {
    case 1: goto received;
    case 2: goto sent;
    }
    for (;;) {
        step = hearth_receive(base, self->ball, &pong_receive);
        if (step == HEARTH_BLOCKED) {
            base->stage = 1;
            return HEARTH_BLOCKED;
        received:
            step = base->outcome;
        }
        if (step != HEARTH_DONE) return step;
        self->sum += base->received.integer;
        bool more = base->received.integer < ROUNDS;
        step = hearth_send(base, self->ack, (hearth_value){.boolean = more}, false, &pong_send);
        if (step == HEARTH_BLOCKED) {
            base->stage = 2;
            return HEARTH_BLOCKED;
        sent:
            step = base->outcome;
        }
        if (step != HEARTH_DONE) return step;
        if (self->sum == ROUNDS * (ROUNDS + 1) / 2) {
            printf("%d\n", self->sum);
            return HEARTH_DONE;
        }
    }
}
static const hearth_port pong_ports[] = {
    {"ball", 0, &integer, offsetof(Pong, ball)}, {"ack", 1, &boolean, offsetof(Pong, ack)}};
static const hearth_component_type pong = {"Pong", sizeof(Pong), pong_resume, NULL, NULL, 2, pong_ports,
                                           false, {"ping_pong.isf", 8, 1, "Pong"}, 0, 0};

static hearth_step main_resume(hearth_component *self)
{
    hearth_component *p = hearth_component_new(self, &ping, -1);
    hearth_component *q = hearth_component_new(self, &pong, -1);
    hearth_component_start(p);
    hearth_component_start(q);
    hearth_channel *a = hearth_port_of(p, "ball"), *b = hearth_port_of(q, "ball");
    hearth_connect(self, a, b, NULL);
    hearth_connect(self, b, a, NULL); /* no effect */
    hearth_channel_release(a);
    hearth_channel_release(b);
    a = hearth_port_of(p, "ack");
    b = hearth_port_of(q, "ack");
    hearth_connect(self, a, b, NULL);
    hearth_channel_release(a);
    hearth_channel_release(b);
    hearth_component_release(p);
    hearth_component_release(q);
    return HEARTH_DONE;
}
static const hearth_component_type main_type = {
    "main", sizeof(hearth_component), main_resume, NULL, NULL, 0, NULL, false,
    {"ping_pong.isf", 14, 1, "main"}, 0, 0};
static const hearth_program program = {"ping_pong.isf", HEARTH_ABI, &main_type, false};

int main(int argc, char **argv) { return hearth_main(&program, argc, argv); }
