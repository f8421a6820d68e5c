/* The contract between compiled Insense programs and Hearth's runtime.
 *
 * A component is a struct that begins with `hearth_component` and a function that resumes it.
 * Resumed, it runs until it must wait (HEARTH_BLOCKED), ends by an exception or a stop
 * (HEARTH_RAISED), or has nothing more to do (HEARTH_DONE). It need not know its carrier, a kernel
 * thread or a worker. While it waits, the thread that completes its rendezvous may write the fields
 * `received`, `held`, `arm`, `raised`, `outcome` and `waiting`; no other thread touches the struct.
 *
 * Compile with -std=c11 -fwrapv: Insense integers wrap.
 */
#ifndef HEARTH_H
#define HEARTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HEARTH_ABI 6

#define HEARTH_LIKELY(x) __builtin_expect(!!(x), 1)
#define HEARTH_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define HEARTH_COLD __attribute__((cold))
/* Unrolls the next loop, which runs a few times, as often as the caller says: so a select over
 * four arms takes 7 % fewer instructions. */
#if defined(__GNUC__) && !defined(__clang__)
#define HEARTH_UNROLL _Pragma("GCC unroll 8")
#else
#define HEARTH_UNROLL
#endif

typedef struct hearth_component hearth_component;
typedef struct hearth_component_type hearth_component_type;
typedef struct hearth_channel hearth_channel; /* a half-channel; opaque */
typedef struct hearth_worker hearth_worker;   /* resumes components, one a core */
typedef struct hearth_type hearth_type;
typedef struct hearth_tracer hearth_tracer;   /* collects references; opaque */

/* How a step ended. */
typedef enum { HEARTH_DONE = 0, HEARTH_BLOCKED = 1, HEARTH_RAISED = 2 } hearth_step;

/* A place in the source, for messages. `text` is the channel expression or the operation. */
typedef struct {
    const char *file;
    uint32_t line, column;
    const char *text;
} hearth_site;

/* ---- values ------------------------------------------------------------------------------ */

/* Any value that fits a variable. References are pointers to objects, channels or components. */
typedef union {
    int32_t integer;   /* and enum */
    uint32_t unsigned_; /* unsigned */
    float real;
    uint8_t byte;
    bool boolean;
    void *pointer;
    uint64_t bits; /* the whole slot; unused high bits are unspecified */
} hearth_value;

/* The header of every counted object. Objects belong to one component at a time, so the count is
 * plain. HEARTH_IMMORTAL marks literals: never counted, never freed, shared by all. */
typedef struct {
    uint32_t refs;
    uint32_t spare;
} hearth_object;
#define HEARTH_IMMORTAL UINT32_MAX

typedef struct {
    hearth_object object;
    size_t length; /* bytes, without the final NUL */
    char text[];
} hearth_string;

/* Arrays: a header and the elements, 16 bytes in. `length` is a size_t, a type that no Insense
 * value has, so that the C compiler knows that stores to elements do not change it. */
#define HEARTH_ARRAY_OF(T) \
    struct { hearth_object object; size_t length; T data[]; }
typedef HEARTH_ARRAY_OF(int32_t) hearth_integer_array; /* and enum */
typedef HEARTH_ARRAY_OF(uint32_t) hearth_unsigned_array;
typedef HEARTH_ARRAY_OF(float) hearth_real_array;
typedef HEARTH_ARRAY_OF(bool) hearth_bool_array;
typedef HEARTH_ARRAY_OF(uint8_t) hearth_byte_array;
typedef HEARTH_ARRAY_OF(void *) hearth_pointer_array;

/* any: a box. Immutable. */
typedef struct {
    hearth_object object;
    const hearth_type *type;
    hearth_value value;
} hearth_box;

/* A procedure as a value. `owner` is NULL, or the component whose members `code` uses; it is
 * counted. */
typedef struct {
    hearth_object object;
    void (*code)(void);
    hearth_component *owner;
} hearth_procedure;

/* Structs: `hearth_object object;` and the fields in order, laid out by C. */

typedef enum {
    HEARTH_KIND_INTEGER, HEARTH_KIND_UNSIGNED, HEARTH_KIND_REAL, HEARTH_KIND_BOOL,
    HEARTH_KIND_BYTE, HEARTH_KIND_ENUM, HEARTH_KIND_STRING, HEARTH_KIND_ANY,
    HEARTH_KIND_STRUCT, HEARTH_KIND_ARRAY, HEARTH_KIND_IN, HEARTH_KIND_OUT,
    HEARTH_KIND_COMPONENT, HEARTH_KIND_PROCEDURE,
    HEARTH_KIND_FOREIGN /* an embedding program's; `element` has the function that passes it */
} hearth_kind;

typedef struct {
    const char *name;
    const hearth_type *type;
    size_t offset;
} hearth_field;

/* A type's descriptor: enough for the runtime to copy, release, compare, print and marshal. A
 * program has one for each structural type; `code` (language reference, section 3) is the same in
 * every program, equal types have equal codes. */
struct hearth_type {
    const char *code;
    hearth_kind kind;
    uint32_t size;              /* of a slot: 1, 4 or 8 bytes */
    bool flat;                  /* array or struct without references inside: memcpy copies it */
    const hearth_type *element; /* of an array; payload of a channel */
    uint32_t field_count;       /* of a struct */
    const hearth_field *fields;
    size_t object_size;         /* of a struct, header included */
};

/* ---- components -------------------------------------------------------------------------- */

/* A sender that stays blocked until an `acknowledge` block ends. */
typedef struct {
    hearth_component *sender; /* counted; NULL when none */
    uint64_t ticket;
} hearth_held;

struct hearth_component {
    const hearth_component_type *type;
    hearth_worker *home;     /* atomic: the worker that resumes it; NULL: a thread of its own */
    hearth_component *next;  /* behind it in a queue of the worker's */
    union {
        struct {
            hearth_channel *waits_at; /* while it waits lightly: its half-channel and operation */
            const hearth_site *waits_in;
        };
        hearth_held held;    /* by the last acknowledge, until it is taken */
    };
    hearth_value received;   /* by the last receive, select or blocking native */
    uint32_t raised;         /* 0, 1 + the exception's label, or HEARTH_STOPPED */
    uint32_t arm;            /* the last select's choice */
    uint32_t passes_left;    /* behaviour passes until hearth_next_pass must look */
    uint32_t heap;           /* private to the runtime; 0 before the first allocation */
    uint16_t stage;          /* generated code's: the part of its life */
    uint16_t destination;    /* 0, or 1 + the worker to move to before it is resumed */
    uint8_t attention;       /* atomic; not 0: hearth_next_pass must look, and no wait is light */
    uint8_t waiting;         /* the kind of wait: hearth_waiting */
    uint8_t outcome;         /* hearth_step of the operation that blocked, once resumed */
    uint8_t history;         /* the bits below */
};

#define HEARTH_STOPPED UINT32_MAX

/* Bits of `history`. MOVED, FOUND_FULL: private to the runtime. FOUND_SENDER: set by a select that
 * finds a sender waiting, cleared by a sender that serves the component's wait in a select. */
enum { HEARTH_MOVED = 1, HEARTH_FOUND_SENDER = 2, HEARTH_FOUND_FULL = 4 };

/* The labels of ExceptionType, in order; `raised` holds 1 + label. */
enum {
    HEARTH_OPERATION_FAILED, HEARTH_CHANNEL_BUFFER_FULL, HEARTH_DIVISION_BY_ZERO,
    HEARTH_SEND_STATUS_UNKNOWN, HEARTH_DUPLICATE_LCN, HEARTH_NODES_UNREACHABLE,
    HEARTH_CHANNELS_UNKNOWN, HEARTH_INCOMPATIBLE_CHANNELS, HEARTH_BIND_STATUS_UNKNOWN
};

typedef struct {
    const char *name;
    uint32_t direction; /* 0 in, 1 out */
    const hearth_type *payload;
    size_t offset; /* of the `hearth_channel *` in the component's struct */
} hearth_port;

struct hearth_component_type {
    const char *name;
    size_t size;
    /* Runs the component until it blocks or ends. */
    hearth_step (*resume)(hearth_component *self);
    /* Releases members and all that frames still hold; ports are the runtime's. */
    void (*destroy)(hearth_component *self);
    /* Tells which components and half-channels members and frames refer to, by hearth_trace, once
     * for each counted reference; fewer may be told, but not more. The component is parked. NULL:
     * it may refer to anything, and be woken by anybody. */
    void (*trace)(hearth_component *self, hearth_tracer *tracer);
    uint32_t port_count;
    const hearth_port *ports;
    bool service; /* part of the prelude: does not keep the program alive, not reported */
    hearth_site declared;
    /* The most bytes in its heap at once, as far as the compiler can tell, and the largest block
     * of those. Both 0: nothing, or unknown. */
    uint32_t heap_bytes, heap_largest;
};

/* Makes a zeroed instance with its half-channels; not yet running. `core` is -1 or a request.
 * The result is counted once, for the caller. */
hearth_component *hearth_component_new(hearth_component *creator, const hearth_component_type *type,
                                       int32_t core);
/* Starts it. Its arguments are in place, and the caller's reference is the only one. */
void hearth_component_start(hearth_component *component);

/* Component and channel references are shared between components: counted atomically. NULL is
 * allowed. */
void *hearth_component_retain(hearth_component *component);
void hearth_component_release(hearth_component *component);
hearth_channel *hearth_channel_retain(hearth_channel *channel);
void hearth_channel_release(hearth_channel *channel);

/* The named port of any component: a counted reference. */
hearth_channel *hearth_port_of(hearth_component *component, const char *name);
/* Makes a port denote another half-channel. Takes over the caller's reference to `channel`. */
void hearth_port_assign(hearth_component *self, hearth_component *component, const char *name,
                        hearth_channel *channel);

/* `stop` of another component. Stopping oneself is raising HEARTH_STOPPED; under --compat
 * original, where a stop waits for the end of the pass, it also calls this. */
void hearth_stop(hearth_component *self, hearth_component *other);

bool hearth_next_pass_slow(hearth_component *self);
/* Called after each pass of a behaviour. False: the component ends; `raised` is set. */
static inline bool hearth_next_pass(hearth_component *self)
{
    if (HEARTH_LIKELY(--self->passes_left != 0 &&
                      __atomic_load_n(&self->attention, __ATOMIC_RELAXED) == 0))
        return true;
    return hearth_next_pass_slow(self);
}

/* ---- the heap of a component ------------------------------------------------------------- */

/* Neither allocator returns NULL: a component that runs out of memory ends the program with a
 * message. */
void *hearth_alloc(hearth_component *self, size_t size);        /* not zeroed */
void *hearth_alloc_zeroed(hearth_component *self, size_t size);
void hearth_free(hearth_component *self, void *block);

/* Frees an object whose last reference is gone, and releases the references in it. */
void hearth_destroy(hearth_component *self, const hearth_type *type, void *object);

static inline void *hearth_retain(void *pointer)
{
    hearth_object *object = pointer;
    if (object && object->refs != HEARTH_IMMORTAL) object->refs++;
    return pointer;
}
/* For strings, boxes, structs, arrays and procedures. NULL is allowed. */
static inline void hearth_release(hearth_component *self, const hearth_type *type, void *pointer)
{
    hearth_object *object = pointer;
    if (object && object->refs != HEARTH_IMMORTAL && --object->refs == 0)
        hearth_destroy(self, type, object);
}

/* Makes an array of `lengths[0]` × … × `lengths[dimensions-1]`; `type` is the whole array's.
 * `init` is borrowed: structs and arrays are copied per element, everything else is shared. */
void *hearth_array_new(hearth_component *self, const hearth_type *type, const uint32_t *lengths,
                       uint32_t dimensions, hearth_value init);
/* Makes a deep copy of a borrowed value. `to` may be another, parked or unstarted component. */
hearth_value hearth_copy(hearth_component *to, const hearth_type *type, hearth_value value);
/* Makes a box; `value` is borrowed and copied in as `any(e)` does. */
hearth_box *hearth_box_new(hearth_component *self, const hearth_type *type, hearth_value value);
/* Tells whether the box holds exactly this type. */
static inline bool hearth_box_is(const hearth_box *box, const hearth_type *type)
{
    return box->type == type || strcmp(box->type->code, type->code) == 0;
}
bool hearth_string_equal(const hearth_string *a, const hearth_string *b);
/* Compares by bytes: below, at or above 0. */
static inline int hearth_string_compare(const hearth_string *a, const hearth_string *b)
{
    size_t shorter = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->text, b->text, shorter);
    return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

/* Tells a tracer of a counted reference, which may be NULL, and of all in the object behind it. */
void hearth_trace(hearth_tracer *tracer, const hearth_type *type, void *value);
void hearth_trace_held(hearth_tracer *tracer, const hearth_held *held);

/* Division wraps like everything else: INT32_MIN / -1 is INT32_MIN. The divisor is not 0. */
static inline int32_t hearth_divide(int32_t a, int32_t b) { return b == -1 ? -a : a / b; }
static inline int32_t hearth_remainder(int32_t a, int32_t b) { return b == -1 ? 0 : a % b; }

/* ---- exceptions -------------------------------------------------------------------------- */

/* Sets `raised`; the caller leaves by its cleanup. `detail` is a literal or NULL. */
HEARTH_COLD void hearth_raise(hearth_component *self, uint32_t label, const hearth_site *site,
                              const char *detail);
HEARTH_COLD void hearth_raise_index(hearth_component *self, int64_t index, size_t length,
                                    const hearth_site *site);
static inline void hearth_raise_stop(hearth_component *self) { self->raised = HEARTH_STOPPED; }

/* ---- channels ---------------------------------------------------------------------------- *
 *
 * Operations that return hearth_step: DONE, the result is in `received`, `arm`, `held`; RAISED,
 * `raised` has the exception; BLOCKED, the caller saves its state and returns BLOCKED to its
 * carrier, and when resumed finds the same in `outcome`. Channels are borrowed; the runtime keeps
 * the references it needs while the operation is pending. */

hearth_channel *hearth_channel_new(hearth_component *self, const hearth_type *payload,
                                   uint32_t direction);

/* `move`: the caller's reference goes with the value, and the value may be handed over without a
 * copy if nothing else refers to it. Otherwise the value is borrowed until the send ends. */
hearth_step hearth_send(hearth_component *self, hearth_channel *channel, hearth_value value,
                        bool move, const hearth_site *site);
hearth_step hearth_receive(hearth_component *self, hearth_channel *channel,
                           const hearth_site *site);

/* ---- the fast path ----------------------------------------------------------------------- *
 *
 * Between two half-channels of one worker that have no other peers, a rendezvous takes no lock, no
 * atomic exchange and no call: see channel/light.rs, which has the rest. Therefore the first fields
 * of a worker and of a half-channel are here. */

struct hearth_worker {
    uintptr_t gate;         /* atomic: its mark; 0 while another thread owns its half-channels */
    uint32_t busy;          /* atomic: its thread touches them */
    uint32_t ticks;         /* number of select arms served here */
    hearth_component *running; /* atomic: the component whose code its thread runs */
    hearth_component *next; /* ready, to run first */
    hearth_component *first, *last; /* ready, in turn */
    bool seeded;            /* a seed chooses among arms */
};

struct hearth_channel {
    uintptr_t place;      /* atomic: a worker's mark, or private to the runtime */
    hearth_channel *sole; /* the only peer */
    uintptr_t slot;       /* the component that waits here; low bits: not by the fast path */
    void *inner;          /* private to the runtime */
    uint32_t arm;         /* the arm in which the component in the slot selects */
    uint32_t served;      /* of an in: the tick of its worker when an arm last took from here */
};
#define HEARTH_SLOT_SELECT 1u /* in a slot with a component: it selects */

typedef enum {
    HEARTH_WAITS_FOR_NOTHING, HEARTH_SENDS, HEARTH_SENDS_COPY, HEARTH_SENDS_MOVING,
    HEARTH_RECEIVES, HEARTH_SELECTS, HEARTH_SELECTED, HEARTH_OFFERS, HEARTH_LINKED,
    HEARTH_RETURNS
} hearth_waiting;

/* Orders the compiler only; the other thread issues a barrier for both. */
static inline void hearth_compiler_fence(void) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

/* The monitor may change `home` while the component computes: it closes the old gate first. */
static inline hearth_worker *hearth_home(hearth_component *self)
{
    return __atomic_load_n(&self->home, __ATOMIC_RELAXED);
}
static inline void hearth_leave(hearth_worker *worker)
{
    __atomic_store_n(&worker->busy, 0, __ATOMIC_RELEASE);
}
/* True if nothing asks for attention, and this worker owns the half-channel: then it may be touched
 * until hearth_leave. The Acquire load of the place pairs with the Release store of the thread that
 * gave the half-channel to this worker; that of the gate with the Release store of another thread
 * that owned the half-channels, changed them and then opened the gate. */
static inline bool hearth_enter(hearth_worker *worker, hearth_component *self,
                                hearth_channel *channel)
{
    __atomic_store_n(&worker->busy, 1, __ATOMIC_RELAXED);
    hearth_compiler_fence();
    if (HEARTH_LIKELY(__atomic_load_n(&channel->place, __ATOMIC_ACQUIRE) ==
                          __atomic_load_n(&worker->gate, __ATOMIC_ACQUIRE) &&
                      __atomic_load_n(&self->attention, __ATOMIC_RELAXED) == 0))
        return true;
    hearth_leave(worker);
    return false;
}
static inline hearth_component *hearth_occupant(hearth_channel *channel)
{
    return channel->slot & 3 ? NULL : (hearth_component *)channel->slot;
}
/* The component that selects here and is still open. One that was served elsewhere is removed. */
static inline hearth_component *hearth_selecting(hearth_channel *channel)
{
    hearth_component *component;
    if ((channel->slot & 3) != HEARTH_SLOT_SELECT)
        return NULL;
    component = (hearth_component *)(channel->slot - HEARTH_SLOT_SELECT);
    if (component->waiting == HEARTH_SELECTS)
        return component;
    channel->slot = 0;
    return NULL;
}
static inline void hearth_ready_last(hearth_worker *worker, hearth_component *component)
{
    component->next = NULL;
    if (worker->last)
        worker->last->next = component;
    else
        worker->first = component;
    worker->last = component;
}
static inline void hearth_ready(hearth_worker *worker, hearth_component *component)
{
    component->waiting = HEARTH_WAITS_FOR_NOTHING;
    if (worker->next == NULL)
        worker->next = component;
    else
        hearth_ready_last(worker, component);
}
/* A component that finds several messages between two waits runs behind the others: more of them
 * will have sent by then, and each wait in a select costs a visit to all of its arms. */
static inline void hearth_ready_selected(hearth_worker *worker, hearth_component *component)
{
    bool runs_next = worker->next == NULL && !(component->history & HEARTH_FOUND_SENDER);
    component->history &= (uint8_t)~HEARTH_FOUND_SENDER;
    component->waiting = HEARTH_SELECTED;
    if (runs_next)
        worker->next = component;
    else
        hearth_ready_last(worker, component);
}
static inline hearth_step hearth_wait_here(hearth_worker *worker, hearth_component *self,
                                           hearth_channel *channel, const hearth_site *site,
                                           hearth_waiting waiting)
{
    channel->slot = (uintptr_t)self;
    self->waits_at = channel;
    self->waits_in = site;
    self->waiting = waiting;
    self->outcome = HEARTH_DONE;
    __atomic_store_n(&worker->running, NULL, __ATOMIC_RELAXED);
    hearth_leave(worker);
    return HEARTH_BLOCKED;
}

/* hearth_send, for a value that is not a reference. */
static inline hearth_step hearth_send_scalar(hearth_component *self, hearth_channel *channel,
                                             hearth_value value, const hearth_site *site)
{
    hearth_worker *worker = hearth_home(self);
    if (HEARTH_LIKELY(worker != NULL) && hearth_enter(worker, self, channel)) {
        hearth_channel *into = channel->sole;
        if (HEARTH_LIKELY(into != NULL)) {
            hearth_component *receiver = hearth_occupant(into);
            if (receiver) {
                into->slot = 0;
                receiver->received = value;
                hearth_ready(worker, receiver);
                hearth_leave(worker);
                return HEARTH_DONE;
            }
            receiver = hearth_selecting(into);
            if (receiver) {
                into->slot = 0;
                into->served = ++worker->ticks;
                receiver->received = value;
                receiver->arm = into->arm;
                hearth_ready_selected(worker, receiver);
                hearth_leave(worker);
                return HEARTH_DONE;
            }
            if (HEARTH_LIKELY(into->slot == 0 && channel->slot == 0 && into->sole == channel)) {
                self->received = value;
                return hearth_wait_here(worker, self, channel, site, HEARTH_SENDS);
            }
        }
        hearth_leave(worker);
    }
    return hearth_send(self, channel, value, false, site);
}

/* hearth_receive. */
static inline hearth_step hearth_receive_here(hearth_component *self, hearth_channel *channel,
                                              const hearth_site *site)
{
    hearth_worker *worker = hearth_home(self);
    if (HEARTH_LIKELY(worker != NULL) && hearth_enter(worker, self, channel)) {
        hearth_channel *out = channel->sole;
        if (HEARTH_LIKELY(out != NULL && channel->slot == 0)) {
            hearth_component *sender = hearth_occupant(out);
            if (sender && sender->waiting == HEARTH_SENDS) {
                out->slot = 0;
                self->received = sender->received;
                self->arm = 0;
                hearth_ready(worker, sender);
                hearth_leave(worker);
                return HEARTH_DONE;
            }
            if (out->slot == 0)
                return hearth_wait_here(worker, self, channel, site, HEARTH_RECEIVES);
        }
        hearth_leave(worker);
    }
    return hearth_receive(self, channel, site);
}

/* ---- more about channels ----------------------------------------------------------------- */

/* Receives a value and holds its sender, which is then in `held`. */
hearth_step hearth_acknowledge(hearth_component *self, hearth_channel *channel,
                               const hearth_site *site);
/* Ends an acknowledge: `ok` false gives the sender SendStatusUnknownException. */
void hearth_release_sender(hearth_component *self, hearth_held *held, bool ok);

typedef struct {
    hearth_channel *channel;
    bool acknowledge;
    const hearth_site *site;
} hearth_arm;
/* An arm whose guard is false has a NULL channel; `arm` is the index chosen. With nothing open and
 * no default the caller raises. With default and nothing ready: DONE, `arm` HEARTH_DEFAULT. */
hearth_step hearth_select(hearth_component *self, const hearth_arm *arms, uint32_t count,
                          bool has_default, const hearth_site *site);
#define HEARTH_DEFAULT UINT32_MAX

/* Waits at all open arms, none of which has a sender. For hearth_select_here, which has entered
 * and checked. */
hearth_step hearth_select_waits(hearth_component *self, const hearth_arm *arms, uint32_t count,
                                const hearth_site *site);
/* hearth_select. With all open arms on the fast path: receives from the one served longest ago
 * among those with a sender. */
static inline hearth_step hearth_select_here(hearth_component *self, const hearth_arm *arms,
                                             uint32_t count, bool has_default,
                                             const hearth_site *site)
{
    hearth_worker *worker = hearth_home(self);
    if (HEARTH_LIKELY(worker != NULL && !worker->seeded)) {
        hearth_channel *best = NULL, *out = NULL;
        uintptr_t gate;
        uint32_t oldest = 0, chosen = 0, open = 0, i;
        __atomic_store_n(&worker->busy, 1, __ATOMIC_RELAXED);
        hearth_compiler_fence();
        gate = __atomic_load_n(&worker->gate, __ATOMIC_ACQUIRE);
        if (gate == 0 || __atomic_load_n(&self->attention, __ATOMIC_RELAXED) != 0)
            goto slow;
        HEARTH_UNROLL
        for (i = 0; i < count; i++) {
            hearth_channel *channel = arms[i].channel, *peer;
            hearth_component *sender;
            uint32_t age;
            if (!channel)
                continue;
            if (arms[i].acknowledge ||
                __atomic_load_n(&channel->place, __ATOMIC_ACQUIRE) != gate ||
                channel->slot != 0 || (peer = channel->sole) == NULL)
                goto slow;
            open++;
            if (peer->slot == 0)
                continue;
            sender = hearth_occupant(peer);
            if (!sender || sender->waiting != HEARTH_SENDS)
                goto slow;
            age = worker->ticks - channel->served;
            if (best == NULL || age > oldest) {
                best = channel;
                out = peer;
                oldest = age;
                chosen = i;
            }
        }
        if (best) {
            hearth_component *sender = hearth_occupant(out);
            best->served = ++worker->ticks;
            out->slot = 0;
            self->received = sender->received;
            self->arm = chosen;
            self->history |= HEARTH_FOUND_SENDER;
            hearth_ready(worker, sender);
            hearth_leave(worker);
            return HEARTH_DONE;
        }
        if (open != 0 && !has_default) {
            hearth_step step = hearth_select_waits(self, arms, count, site);
            hearth_leave(worker);
            return step;
        }
    slow:
        hearth_leave(worker);
    }
    return hearth_select(self, arms, count, has_default, site);
}

void hearth_connect(hearth_component *self, hearth_channel *a, hearth_channel *b,
                    const hearth_site *site);
void hearth_disconnect(hearth_component *self, hearth_channel *a, const hearth_site *site);

/* Remote forms. `address` is a node's number. They may block and may raise. */
hearth_step hearth_publish(hearth_component *self, hearth_channel *channel, hearth_string *name,
                           const hearth_site *site);
hearth_step hearth_connect_remote(hearth_component *self, hearth_channel *channel,
                                  hearth_string *name, uint32_t address, const hearth_site *site);
hearth_step hearth_connect_remotes(hearth_component *self, hearth_string *name_a, uint32_t address_a,
                                   hearth_string *name_b, uint32_t address_b,
                                   const hearth_site *site);
hearth_step hearth_disconnect_remote(hearth_component *self, hearth_string *name, uint32_t address,
                                     const hearth_site *site);
/* byte[] addresses of the older preludes: little-endian. */
uint32_t hearth_address_of_bytes(const hearth_byte_array *bytes);

/* ---- calls beside others ------------------------------------------------------------------- *
 *
 * Calls and rounds of loops that are proved to be independent of what follows them. A procedure
 * that such a call reaches exists twice more: with `base` as a parameter, since two threads in one
 * component need two bases, and so once more with the calls beside in it. */

/* How finely work is divided, learnt from measurements: of a procedure that calls itself, of a
 * call, or of a loop. Private to the runtime but for `cutoff`. */
typedef struct {
    uint32_t cutoff; /* atomic. Calls at this depth or deeper run in order; 0: all. Of a loop: fewer
                      * rounds run in order */
    uint32_t seen;
    uint64_t mean;
} hearth_grain;
#define HEARTH_GRAIN_CALLS { 6, 0, 0 }
#define HEARTH_GRAIN_CALL { 1, 0, 0 }
#define HEARTH_GRAIN_ROUNDS { 2, 0, 0 }
/* One in so many calls of a closed grain is measured. */
#define HEARTH_GRAIN_SAMPLES 64u

/* A call beside others, on its caller's stack; the arguments and the result are behind it. Not 0
 * `slot`: it has been begun and not waited for. */
typedef struct hearth_record hearth_record;
struct hearth_record {
    void (*run)(hearth_record *record, hearth_component *base, uint32_t depth);
    hearth_grain *grain;
    uint32_t depth;
    uint32_t slot;
    uint64_t rest[13];
};

/* True with more than one worker. Written before the first component is made. */
extern bool hearth_may_run_beside;
uint64_t hearth_grain_now(void);
void hearth_piece_ended(hearth_grain *grain, uint64_t start_ns);
/* Begins a call; others may run it from here on. `is_measured`: the grain is the call's own. */
void hearth_beside(hearth_record *record, hearth_component *base,
                   void (*run)(hearth_record *, hearth_component *, uint32_t),
                   hearth_grain *grain, uint32_t depth, bool is_measured);
/* Waits for it; runs it now if nobody has begun. Its exception is then in flight. */
void hearth_await(hearth_record *record, hearth_component *base);

/* A loop: rounds are numbered from 0. Each half of its range has sums of its own. */
typedef struct {
    void (*run)(void *given, hearth_component *base, uint32_t depth, void *sums, int64_t from,
                int64_t to);
    void (*join)(void *sums, const void *others); /* NULL: there are no sums */
    void *given;
    const void *neutral;
    size_t bytes; /* of the sums: 64 at most */
    hearth_grain *grain;
} hearth_rounds;
#define HEARTH_SUMS_BYTES 64
void hearth_run_rounds(const hearth_rounds *rounds, hearth_component *base, uint32_t depth,
                       void *sums, int64_t count);

static _Thread_local uint32_t hearth_grain_tick __attribute__((unused));
static inline bool hearth_grain_is_sampled(void)
{
    return HEARTH_UNLIKELY(++hearth_grain_tick % HEARTH_GRAIN_SAMPLES == 0);
}
/* Whether calls of a grain may be divided, or one of them is to be measured. */
static inline bool hearth_grain_is_open(hearth_grain *grain)
{
    if (!__atomic_load_n(&hearth_may_run_beside, __ATOMIC_RELAXED))
        return false;
    return __atomic_load_n(&grain->cutoff, __ATOMIC_RELAXED) != 0 || hearth_grain_is_sampled();
}
static inline bool hearth_grain_has_rounds(hearth_grain *grain, int64_t rounds)
{
    if (!__atomic_load_n(&hearth_may_run_beside, __ATOMIC_RELAXED) || rounds < 2)
        return false;
    return rounds >= (int64_t)__atomic_load_n(&grain->cutoff, __ATOMIC_RELAXED) ||
           hearth_grain_is_sampled();
}
/* Whether a call at this depth is a piece, which runs in order. */
static inline bool hearth_grain_is_piece(hearth_grain *grain, uint32_t depth)
{
    return depth >= __atomic_load_n(&grain->cutoff, __ATOMIC_RELAXED);
}
/* The time before a piece that is measured, one in four of an open grain; else 0. */
static inline uint64_t hearth_piece_begins(uint32_t depth)
{
    return depth == 0 || ++hearth_grain_tick % 4 == 0 ? hearth_grain_now() : 0;
}

/* ---- the program ------------------------------------------------------------------------- */

typedef struct {
    const char *name; /* the source file, for messages */
    uint32_t abi;     /* HEARTH_ABI */
    /* The main sequence, a component of its own; it makes the globals first. */
    const hearth_component_type *main;
    bool compat_original;
} hearth_program;

int hearth_main(const hearth_program *program, int argc, char **argv);

/* ---- probes ------------------------------------------------------------------------------ *
 *
 * A program into which the compiler put probes begins with hearth_probed_main, and each of its
 * components ends with a hearth_calls. */

typedef struct {
    uint64_t state; /* private to the runtime; 0 at first */
} hearth_calls;

typedef struct {
    const uint64_t *place; /* atomic: NULL until it is first passed; then its state */
    const char *name;
} hearth_probe;
#define HEARTH_PROBE_OFF 1

int hearth_probed_main(const hearth_program *program, int argc, char **argv);

bool hearth_probe_begins(hearth_component *self, hearth_probe *probe);
void hearth_probe_ends(hearth_component *self, hearth_probe *probe);

/* Notes the beginning of a call. True: its end is to be noted, by hearth_probe_ends. */
static inline bool hearth_call_begins(hearth_component *self, hearth_probe *probe)
{
    const uint64_t *place = __atomic_load_n(&probe->place, __ATOMIC_ACQUIRE);
    if (HEARTH_LIKELY(place && __atomic_load_n(place, __ATOMIC_RELAXED) == HEARTH_PROBE_OFF))
        return false;
    return hearth_probe_begins(self, probe);
}

#endif
