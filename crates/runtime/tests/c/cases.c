/* Many small programs; the first argument selects one. */
#include "hand.h"
#include <unistd.h>

static Hand *hand(hearth_component *component) { return (Hand *)component; }

/* ---- deadlocks --------------------------------------------------------------------------- */

COMPONENT(Left)
    AWAIT(SEND(out, 1));
    AWAIT(RECEIVE(in));
END

COMPONENT(Right)
    AWAIT(SEND(out, 1));
    AWAIT(RECEIVE(in));
END

static void cycle(hearth_component *self)
{
    hearth_component *left = begin(self, &Left), *right = begin(self, &Right);
    join(self, left, "out", right, "in");
    join(self, right, "out", left, "in");
    hearth_component_release(left);
    hearth_component_release(right);
}

COMPONENT(Lonely)
    AWAIT(RECEIVE(in));
END

static void lonely(hearth_component *self)
{
    hearth_component_release(begin(self, &Lonely));
    hearth_component_release(begin(self, &Lonely));
}

COMPONENT(Chooser)
{
    hearth_arm arms[] = {{self->in, false, SITE("first")}, {self->in2, false, SITE("second")}};
    AWAIT(hearth_select(base, arms, 2, false, SITE("select")));
}
END

static void choosing(hearth_component *self)
{
    hearth_component *chooser = begin(self, &Chooser), *lonely = begin(self, &Lonely);
    join(self, chooser, "in2", lonely, "out");
    hearth_component_release(chooser);
    hearth_component_release(lonely);
}

COMPONENT(Keeper)
    AWAIT(hearth_acknowledge(base, self->in, SITE("in")));
    self->held = base->held;
    AWAIT(RECEIVE(in2));
END

static void kept(hearth_component *self)
{
    hearth_component *keeper = begin(self, &Keeper), *left = begin(self, &Left);
    join(self, keeper, "in", left, "out");
    hearth_component_release(keeper);
    hearth_component_release(left);
}

/* ---- exceptions -------------------------------------------------------------------------- */

COMPONENT(Faulty)
    print(base, "before\n");
    hearth_raise(base, HEARTH_DIVISION_BY_ZERO, SITE(""), NULL);
    return HEARTH_RAISED;
END

COMPONENT(Careless)
    hearth_raise_index(base, 7, 5, SITE(""));
    return HEARTH_RAISED;
END

static void uncaught(hearth_component *self)
{
    hearth_component_release(begin(self, &Faulty));
}

static void careless(hearth_component *self)
{
    hearth_component_release(begin(self, &Careless));
}

/* ---- stop -------------------------------------------------------------------------------- */

COMPONENT(Victim)
    AWAIT(RECEIVE(in));
    print(base, "must not be reached\n");
END

COMPONENT(Killer)
    self->reference = begin(base, &Victim);
    join(base, self->reference, "in", base, "out2");
    /* Waiting already or not. */
    hearth_stop(base, self->reference);
    hearth_stop(base, self->reference);
    hearth_component_release(self->reference);
    print(base, "killed\n");
END

static void stopping(hearth_component *self)
{
    for (int i = 0; i < 100; i++) hearth_component_release(begin(self, &Killer));
}

COMPONENT(Worker)
    for (;;) {
        self->a++;
        print_int(base, self->a);
        PASS;
    }
END

static void passing(hearth_component *self)
{
    hearth_component_release(begin(self, &Worker));
}

COMPONENT(Computing)
    for (volatile uint64_t n = 0;; n++) {}
END

COMPONENT(Printing)
    for (self->a = 0;; self->a++) {
        print_int(base, self->a);
        PASS;
    }
END

/* Output printed while a component computes is written when the program is asked to end. */
COMPONENT(Signalled)
    hearth_component_release(begin(base, &Computing));
    print(base, "buffered\n");
    /* Past the runtime's buffer. */
    if (write(2, "started\n", 8) != 8) print(base, "wrong\n");
    AWAIT(RECEIVE(in));
END

static void signalled(hearth_component *self)
{
    hearth_component_release(begin(self, &Signalled));
}

static void printing(hearth_component *self)
{
    hearth_component_release(begin(self, &Printing));
}

/* ---- acknowledge ------------------------------------------------------------------------- */

COMPONENT(Asking)
    step = SEND(out, 5);
    if (step == HEARTH_BLOCKED) {
        base->stage = 1;
        return HEARTH_BLOCKED;
        case 1: step = base->outcome;
    }
    print(base, step == HEARTH_RAISED && base->raised == 1 + HEARTH_SEND_STATUS_UNKNOWN
                    ? "refused\n" : "wrong\n");
    base->raised = 0;
    AWAIT(SEND(out, 6));
    print(base, "taken\n");
END

COMPONENT(Answering)
    AWAIT(hearth_acknowledge(base, self->in, SITE("in")));
    self->held = base->held;
    hearth_release_sender(base, &self->held, false);
    AWAIT(hearth_acknowledge(base, self->in, SITE("in")));
    self->held = base->held;
    print_int(base, base->received.integer);
    hearth_release_sender(base, &self->held, true);
END

static void acknowledging(hearth_component *self)
{
    hearth_component *asking = begin(self, &Asking), *answering = begin(self, &Answering);
    join(self, asking, "out", answering, "in");
    hearth_component_release(asking);
    hearth_component_release(answering);
}

/* ---- select ------------------------------------------------------------------------------ */

COMPONENT(Source)
    for (self->a = 0; self->a < 1000; self->a++) { AWAIT(SEND(out, self->b)); }
END

COMPONENT(Sink)
    for (self->a = 0; self->a < 2000; self->a++) {
        {
            hearth_arm arms[] = {{self->in, false, SITE("in")}, {self->in2, false, SITE("in2")}};
            AWAIT(hearth_select(base, arms, 2, false, SITE("select")));
        }
        if (base->arm != (uint32_t)base->received.integer) print(base, "wrong arm\n");
        if (base->arm == 0) self->b++;
    }
    print_int(base, self->b);
    {
        hearth_arm arms[] = {{self->in, false, SITE("in")}};
        step = hearth_select(base, arms, 1, true, SITE("select"));
        print(base, step == HEARTH_DONE && base->arm == HEARTH_DEFAULT ? "default\n" : "wrong\n");
    }
END

static void selecting(hearth_component *self)
{
    hearth_component *sink = hearth_component_new(self, &Sink, -1);
    for (int i = 0; i < 2; i++) {
        hearth_component *source = hearth_component_new(self, &Source, i);
        hand(source)->b = i;
        join(self, source, "out", sink, i ? "in2" : "in");
        hearth_component_start(source);
        hearth_component_release(source);
    }
    hearth_component_start(sink);
    hearth_component_release(sink);
}

/* ---- timers ------------------------------------------------------------------------------ */

COMPONENT(Ticking)
    hearth_set_timer(base, self->tick, 0.01f, true);
    for (self->a = 0; self->a < 3; self->a++) {
        AWAIT(RECEIVE(tick));
        print(base, base->received.boolean ? "tick\n" : "wrong\n");
    }
    hearth_unset_timer(base, self->tick);
    hearth_set_rtimer(base, self->tick, 1.0f);
    AWAIT(RECEIVE(tick));
    /* Reset while it runs: only the new time counts. */
    hearth_set_timer(base, self->tick, 1000.0f, true);
    hearth_set_rtimer(base, self->tick, 1.0f);
    AWAIT(RECEIVE(tick));
    print(base, "done\n");
END

static void ticking(hearth_component *self)
{
    hearth_component_release(begin(self, &Ticking));
}

COMPONENT(Deaf)
    hearth_set_timer(base, self->tick, 0.005f, true);
    AWAIT(RECEIVE(in));
END

static void deaf(hearth_component *self)
{
    hearth_component_release(begin(self, &Deaf));
}

/* ---- values ------------------------------------------------------------------------------ */

typedef struct {
    hearth_object object;
    int32_t number;
    hearth_integer_array *numbers;
    hearth_string *name;
    hearth_box *box;
} Record;
static const hearth_type integers = {"Ai", HEARTH_KIND_ARRAY, 8, true, &integer, 0, NULL, 0};
static const hearth_type table = {"AAi", HEARTH_KIND_ARRAY, 8, false, &integers, 0, NULL, 0};
static const hearth_field fields[] = {{"number", &integer, offsetof(Record, number)},
                                      {"numbers", &integers, offsetof(Record, numbers)},
                                      {"name", &string, offsetof(Record, name)},
                                      {"box", &any, offsetof(Record, box)}};
static const hearth_type record = {"Sinumber_...", HEARTH_KIND_STRUCT, 8, false, NULL, 4, fields,
                                   sizeof(Record)};
static const hearth_type records = {"AS...", HEARTH_KIND_ARRAY, 8, false, &record, 0, NULL, 0};
#define REFERENCE(p) ((hearth_value){.pointer = (p)})

static hearth_string *text(hearth_component *self, const char *of)
{
    hearth_string *string = hearth_alloc(self, sizeof *string + strlen(of) + 1);
    string->object = (hearth_object){1, 0};
    string->length = strlen(of);
    memcpy(string->text, of, strlen(of) + 1);
    return string;
}

static Record *new_record(hearth_component *self)
{
    Record *made = hearth_alloc(self, sizeof *made);
    uint32_t three = 3;
    made->object = (hearth_object){1, 0};
    made->number = 1;
    made->numbers = hearth_array_new(self, &integers, &three, 1, (hearth_value){.integer = 9});
    made->name = text(self, "name");
    made->box = hearth_box_new(self, &integers, REFERENCE(made->numbers));
    return made;
}

#define CHECK(condition) if (!(condition)) print(self, "wrong: " #condition "\n")

static void copying(hearth_component *self)
{
    Record *one = new_record(self);
    CHECK(one->box->value.pointer != one->numbers);
    CHECK(one->numbers->length == 3 && one->numbers->data[2] == 9);
    CHECK(hearth_box_is(one->box, &integers) && !hearth_box_is(one->box, &integer));

    Record *two = hearth_copy(self, &record, REFERENCE(one)).pointer;
    two->numbers->data[0] = 1;
    CHECK(one->numbers->data[0] == 9);
    CHECK(one->name != two->name && hearth_string_equal(one->name, two->name));
    CHECK(two->box != one->box);

    uint32_t lengths[] = {2, 3};
    hearth_pointer_array *rows =
        hearth_array_new(self, &table, lengths, 2, (hearth_value){.integer = 0});
    CHECK(((hearth_integer_array *)rows->data[1])->data[2] == 0);
    CHECK(rows->data[0] != rows->data[1]);
    /* A row that the original shares is shared in the copy. */
    hearth_release(self, &integers, rows->data[1]);
    rows->data[1] = hearth_retain(rows->data[0]);
    hearth_pointer_array *same = hearth_copy(self, &table, REFERENCE(rows)).pointer;
    CHECK(same->data[0] == same->data[1] && same->data[0] != rows->data[0]);

    hearth_pointer_array *many = hearth_array_new(self, &records, lengths, 1, REFERENCE(one));
    Record *first = many->data[0], *second = many->data[1];
    CHECK(first != second && first != one && first->numbers != second->numbers);
    CHECK(first->name == one->name && one->name->object.refs == 3);
    CHECK(first->box == one->box);

    hearth_release(self, &records, many);
    CHECK(one->name->object.refs == 1 && one->box->object.refs == 1);
    hearth_release(self, &record, one);
    hearth_release(self, &record, two);
    hearth_release(self, &table, rows);
    hearth_release(self, &table, same);

    /* A list of a million boxes is copied and freed without recursion. */
    hearth_box *list = NULL;
    for (int i = 0; i < 1000000; i++) {
        hearth_box *next = hearth_box_new(self, &any, REFERENCE(list));
        hearth_release(self, &any, list);
        list = next;
    }
    hearth_box *copy = hearth_copy(self, &any, REFERENCE(list)).pointer;
    hearth_release(self, &any, list);
    hearth_release(self, &any, copy);
    print(self, "copied\n");
}

COMPONENT(Giver)
    self->reference = hearth_box_new(base, &string, REFERENCE(text(base, "gift")));
    /* The box has a reference of its own. */
    ((hearth_string *)((hearth_box *)self->reference)->value.pointer)->object.refs--;
    AWAIT(hearth_send(base, self->any_out, REFERENCE(self->reference), true, SITE("any_out")));
    self->reference = hearth_box_new(base, &integer, (hearth_value){.integer = 3});
    AWAIT(hearth_send(base, self->any_out, REFERENCE(self->reference), false, SITE("any_out")));
    if (((hearth_box *)self->reference)->object.refs != 1) print(base, "wrong count\n");
    hearth_release(base, &any, self->reference);
END

COMPONENT(Taker)
    AWAIT(hearth_receive(base, self->any_in, SITE("any_in")));
    {
        hearth_box *box = base->received.pointer;
        hearth_print_string(base, box->value.pointer);
        print(base, "\n");
        hearth_release(base, &any, box);
    }
    AWAIT(hearth_receive(base, self->any_in, SITE("any_in")));
    {
        hearth_box *box = base->received.pointer;
        print_int(base, box->value.integer);
        hearth_release(base, &any, box);
    }
END

static void giving(hearth_component *self)
{
    hearth_component *giver = begin(self, &Giver), *taker = begin(self, &Taker);
    join(self, giver, "any_out", taker, "any_in");
    hearth_component_release(giver);
    hearth_component_release(taker);
}

/* ---- ports, disconnection ---------------------------------------------------------------- */

COMPONENT(Reader)
    AWAIT(RECEIVE(in));
    self->a = base->received.integer;
    AWAIT(RECEIVE(in));
    print_int(base, self->a + base->received.integer);
END

COMPONENT(Writer)
    AWAIT(SEND(out, self->a));
END

/* A pending send survives a disconnection; two writers share one half-channel. */
static void rewiring(hearth_component *self)
{
    hearth_component *reader = hearth_component_new(self, &Reader, -1);
    hearth_component *one = hearth_component_new(self, &Writer, -1);
    hearth_component *two = hearth_component_new(self, &Writer, -1);
    hand(one)->a = 1;
    hand(two)->a = 2;
    hearth_channel *out = hearth_channel_new(self, &integer, 1);
    hearth_port_assign(self, one, "out", hearth_channel_retain(out));
    hearth_port_assign(self, two, "out", hearth_channel_retain(out));
    hearth_channel *in = hearth_port_of(reader, "in");
    hearth_channel *in2 = hearth_port_of(reader, "in2");
    hearth_connect(self, in2, out, NULL);
    hearth_component_start(one);
    hearth_component_start(two);
    hearth_component_start(reader);
    hearth_disconnect(self, out, NULL);
    hearth_connect(self, in, out, NULL);
    hearth_channel_release(in);
    hearth_channel_release(in2);
    hearth_channel_release(out);
    hearth_component_release(reader);
    hearth_component_release(one);
    hearth_component_release(two);
}

/* ---- environment ------------------------------------------------------------------------- */

static void huge(hearth_component *self)
{
    uint32_t lengths[] = {2000000000, 2000000000};
    hearth_array_new(self, &table, lengths, 2, (hearth_value){.integer = 1});
}

static void crowd(hearth_component *self)
{
    for (int i = 0; i < 1000000; i++) hearth_component_release(begin(self, &Lonely));
}

static void arguments(hearth_component *self)
{
    for (int32_t i = 0; i < hearth_argument_count(self); i++) {
        hearth_string *argument = hearth_argument(self, i);
        hearth_print_string(self, argument);
        print(self, "\n");
        hearth_release(self, &string, argument);
    }
    hearth_set_core(self, 0);
    hearth_set_core(self, 100000);
}

COMPONENT(Input)
    AWAIT(hearth_get_string(base, SITE("getString")));
    hearth_print_string(base, base->received.pointer);
    print(base, "\n");
    hearth_release(base, &string, base->received.pointer);
    AWAIT(hearth_get_string(base, SITE("getString")));
END

static void reading(hearth_component *self)
{
    print(self, "name?\n");
    hearth_component_release(begin(self, &Input));
}

/* ------------------------------------------------------------------------------------------ */

static const struct { const char *name; void (*run)(hearth_component *); } cases[] = {
    {"cycle", cycle}, {"lonely", lonely}, {"choosing", choosing}, {"kept", kept},
    {"uncaught", uncaught}, {"careless", careless}, {"stopping", stopping}, {"passing", passing},
    {"signalled", signalled}, {"printing", printing}, {"acknowledging", acknowledging},
    {"selecting", selecting}, {"ticking", ticking}, {"deaf", deaf}, {"copying", copying},
    {"giving", giving}, {"rewiring", rewiring}, {"huge", huge}, {"crowd", crowd},
    {"arguments", arguments}, {"reading", reading}};

MAIN
