/* Programs that other processes may reach; the first argument says by which way. Both take boxes
 * until the integer 42 comes, and print the others. */
#include "hand.h"

extern hearth_step hearth_device_radio_next(hearth_component *self, const hearth_site *site);

static const hearth_type integers = {"Ai", HEARTH_KIND_ARRAY, 8, true, &integer, 0, NULL, 0};
static const struct { hearth_object object; size_t length; char text[6]; } boxes =
    {{HEARTH_IMMORTAL, 0}, 5, "boxes"};

/* Gives the box back. */
static bool is_last(hearth_component *base, hearth_box *box)
{
    bool last = hearth_box_is(box, &integer) && box->value.integer == 42;
    if (hearth_box_is(box, &integers)) print(base, "an array\n");
    hearth_release(base, &any, box);
    return last;
}

COMPONENT(Keeper)
    AWAIT(hearth_publish(base, self->any_in, (hearth_string *)&boxes, SITE("publish")));
    print(base, "ready\n");
    for (;;) {
        AWAIT(hearth_receive(base, self->any_in, SITE("any_in")));
        if (is_last(base, base->received.pointer)) break;
    }
    print(base, "done\n");
END

static void publishing(hearth_component *self) { hearth_component_release(begin(self, &Keeper)); }

/* ---- a large value that no peer reads ---------------------------------------------------- */

#define LARGE (8 << 20)

COMPONENT(Giver)
    AWAIT(hearth_publish(base, self->any_out, (hearth_string *)&boxes, SITE("publish")));
    print(base, "ready\n");
    hearth_string *large = hearth_alloc_zeroed(base, sizeof *large + LARGE + 1);
    large->object.refs = 1;
    large->length = LARGE;
    for (size_t i = 0; i < LARGE; i++) ((unsigned char *)(large + 1))[i] = (unsigned char)(i % 251);
    hearth_box *box = hearth_box_new(base, &string, (hearth_value){.pointer = large});
    hearth_release(base, &string, large);
    AWAIT(hearth_send(base, self->any_out, (hearth_value){.pointer = box}, true, SITE("any_out")));
END

/* Continues whatever happens to the other. */
COMPONENT(Neighbour)
    AWAIT(hearth_get_string(base, SITE("input")));
    hearth_release(base, &string, base->received.pointer);
    print(base, "done\n");
    hearth_stop(base, self->other);
    hearth_component_release(self->other);
END

static void giving(hearth_component *self)
{
    hearth_component *neighbour = hearth_component_new(self, &Neighbour, -1);
    ((Hand *)neighbour)->other = begin(self, &Giver);
    hearth_component_start(neighbour);
    hearth_component_release(neighbour);
}

/* ---- the radio --------------------------------------------------------------------------- */

/* The prelude's struct of that name. */
typedef struct { hearth_object object; uint32_t addr; hearth_box *payload; } Packet;

COMPONENT(Hearer)
    print(base, "ready\n");
    for (;;) {
        AWAIT(hearth_device_radio_next(base, SITE("radio")));
        Packet *packet = base->received.pointer;
        hearth_box *box = packet->payload;
        hearth_free(base, packet);
        if (is_last(base, box)) break;
    }
    print(base, "done\n");
END

static void hearing(hearth_component *self) { hearth_component_release(begin(self, &Hearer)); }

static const struct { const char *name; void (*run)(hearth_component *); } cases[] = {
    {"publishing", publishing}, {"giving", giving}, {"hearing", hearing}};

MAIN
