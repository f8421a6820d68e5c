// SPDX-License-Identifier: GPL-2.0-only
/*
 * A scheduler for coscheduled sets, as sched_ext loads it: the members of a set run at the same
 * time on the set's cores, or not at all. docs/internals/gang-kernel.md walks through a turn.
 *
 * The design is that of Schönherr, Lutz and Richling, "Non-intrusive Coscheduling for General
 * Purpose Operating Systems" (MSEPT 2012): queues along the hardware's hierarchy, a leader at each
 * position, notifications that nobody answers. What differs here:
 *
 * - A set's tasks wait in one queue for all of its cores instead of one for each; a CPU prefers
 *   those that ran on it last.
 * - A leader is whoever finds that a turn is over. It takes a lock by one compare-and-swap, and
 *   nobody ever waits for it: who comes second leaves a mark, and the first looks again.
 * - `chosen` of a queue can be read by any CPU at any time. A notification only makes a CPU look.
 */
#include "kernel.h"
#include "gang.h"

char LICENSE[] SEC("license") = "GPL";

/* Set before the program is loaded. */
const volatile unsigned int cpus_possible = 1;
const volatile u64 turn_ns = 10000000;
/* Slice of tasks in no set. */
const volatile u64 slice_ns = 5000000;

struct shared shared SEC(".data.shared") = { .version = VERSION };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, POSITIONS_MAX);
	__type(key, u32);
	__type(value, struct position);
} positions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CPUS_MAX);
	__type(key, u32);
	__type(value, struct place);
} places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CPUS_MAX);
	__type(key, u32);
	__type(value, u32);
} order SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SETS_MAX);
	__type(key, u32);
	__type(value, struct set);
} sets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SETS_MAX);
	__type(key, u32);
	__type(value, struct life);
} lives SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SETS_MAX * POSITIONS_MAX);
	__type(key, u32);
	__type(value, struct queue);
} queues SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, POSITIONS_MAX);
	__type(key, u32);
	__type(value, struct lead);
} leads SEC(".maps");

struct locked_account {
	struct bpf_spin_lock lock;
	struct account of;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SETS_MAX);
	__type(key, u32);
	__type(value, struct locked_account);
} accounts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counters);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} trace SEC(".maps");

/* What a CPU does, for others to see. */
struct seat {
	u32 serving; /* the set whose turn it is, by its last look */
	u32 doing; /* the set of the task that it runs, or NOBODY */
	u64 until; /* when that turn ends, or 0: never */
	u64 next; /* `until` of a look under way */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CPUS_MAX);
	__type(key, u32);
	__type(value, struct seat);
} seats SEC(".maps");

struct task {
	u32 set; /* that it is a member of */
	u32 counted; /* that it was counted in when it became runnable; the same, or a set around */
	u32 is_counted;
	u32 weight; /* with which it was counted */
	u32 accounted; /* the set in whose account it runs */
	u32 interrupted; /* the set whose turn it was where it runs, as a CPU's kernel thread */
	u64 time; /* virtual */
	u64 since; /* when it began to run */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task);
} tasks SEC(".maps");

/* ---- looking things up ------------------------------------------------------------------- */

#define LOOKUP(map, index)                                                                         \
	({                                                                                         \
		u32 _key = (index);                                                                \
		bpf_map_lookup_elem(&(map), &_key);                                                \
	})

static __always_inline struct queue *queue_of(u32 set, u32 position)
{
	if (set >= SETS_MAX || position >= POSITIONS_MAX)
		return NULL;
	return LOOKUP(queues, set * POSITIONS_MAX + position);
}

#define COUNT(what)                                                                                \
	({                                                                                         \
		struct counters *_c = LOOKUP(counts, 0);                                           \
		if (_c)                                                                            \
			__sync_fetch_and_add(&_c->what, 1);                                        \
	})

/* The numbers of queues of the kernel's own, one for each set, so that they begin at 1. */
static __always_inline u64 tasks_of(u32 set)
{
	return set + 1;
}

static __always_inline bool covers(const struct set *set, const struct place *place)
{
	struct position *at = LOOKUP(positions, set->position);

	return at && place->index >= at->first && place->index < at->first + set->cores;
}

/* Functions that are not static are verified once by themselves, by the kernel. Static ones are
 * verified anew with each call, and a tree of calls of them becomes more than it takes. */

/* The set within `set` that `inner` lies in, or is; NOBODY if it is `set` itself or elsewhere. */
__noinline u32 outermost(u32 set, u32 inner)
{
	int i;

	for (i = 0; i < NESTING_MAX && inner != ROOT_SET && inner < SETS_MAX; i++) {
		struct set *config = LOOKUP(sets, inner);

		if (!config)
			break;
		if (config->parent == set)
			return inner;
		inner = config->parent;
	}
	return NOBODY;
}

/* Whether some CPU at a position runs what the levels below it decide on. */
__noinline int below_is_busy(u32 set, u32 position)
{
	struct position *at = LOOKUP(positions, position);
	u32 i;

	if (!at)
		return false;
	bpf_for(i, 0, at->count)
	{
		u32 *cpu = LOOKUP(order, at->first + i);
		struct seat *seat = cpu ? LOOKUP(seats, *cpu) : NULL;
		struct set *config;
		u32 doing, via;

		if (!seat)
			break;
		doing = seat->doing;
		if (doing == NOBODY)
			continue;
		if (doing == set)
			return true;
		via = outermost(set, doing);
		config = via != NOBODY ? LOOKUP(sets, via) : NULL;
		if (config && config->position != position)
			return true;
	}
	return false;
}

/* The weight per CPU of `tasks` tasks of weight `load` on `cpus` CPUs: how many tasks of nice 0,
 * times 100, share each CPU that has any. */
static __always_inline u64 weight_per_cpu(s64 load, s32 tasks, u32 cpus)
{
	u64 used = tasks > 0 && (u32)tasks < cpus ? tasks : cpus;
	u64 weight = load > 0 && used ? (u64)load / used : 0;

	return weight ? weight : 1;
}

static __always_inline bool is_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/* A virtual time that is at most a turn behind the queue's, since sleeping earns nothing, and at
 * most eight turns ahead, so that nobody waits for longer than those: a weight may have been that
 * of a task that ran for a moment. */
static __always_inline u64 bounded(u64 time, const struct queue *queue)
{
	if (is_before(time, queue->least_time - turn_ns))
		return queue->least_time - turn_ns;
	if (is_before(queue->least_time + 8 * turn_ns, time))
		return queue->least_time + 8 * turn_ns;
	return time;
}

/* ---- leaders ----------------------------------------------------------------------------- */

/* Wakes a CPU's scheduler: it drops what it does, and looks again. */
static __always_inline void notify(u32 cpu)
{
	COUNT(notifications);
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/* Notifies the leaders of a position's direct children, but for the one that `me` lies below, which
 * is returned; NOBODY if there is none, or if all CPUs were notified. */
__noinline u32 notify_children(u32 position, u32 me)
{
	struct position *at = LOOKUP(positions, position);
	struct place *mine = LOOKUP(places, me);
	u32 i, next = NOBODY;

	if (!at || !mine)
		return NOBODY;
	if (at->count <= DIRECT_MAX) {
		bpf_for(i, 0, at->count)
		{
			u32 *cpu = LOOKUP(order, at->first + i);

			if (cpu && *cpu != me)
				notify(*cpu);
		}
		return NOBODY;
	}
	bpf_for(i, 0, at->children)
	{
		u32 child = at->first_child + i;
		struct position *below = LOOKUP(positions, child);
		struct lead *lead = LOOKUP(leads, child);

		if (!below || !lead)
			break;
		if (mine->index >= below->first && mine->index < below->first + below->count) {
			next = child;
			continue;
		}
		/* A position of one CPU has nothing to pass on. */
		if (below->children)
			lead->pending = 1;
		notify(lead->leader);
	}
	return next;
}

/* Passes a notification on from a position to the leaders of its direct children, and, where `me`
 * lies below, further down in their place. */
__noinline int pass_on(u32 position, u32 me)
{
	for (int level = 0; level < LEVELS_MAX && position != NOBODY; level++)
		position = notify_children(position, me);
	return 0;
}

/* Whether the queues of a set's parent above a position leave the choice to the levels below. */
__noinline int is_reached(u32 parent, u32 position)
{
	int level;

	for (level = 0; level < LEVELS_MAX && position != 0; level++) {
		struct position *at = LOOKUP(positions, position);
		struct queue *queue = at ? queue_of(parent, at->parent) : NULL;

		if (!queue || queue->chosen != ROOT_SET)
			return false;
		position = at->parent;
	}
	return true;
}

/* Whether it is a set's turn, and that of all sets around it: else nobody looks at its queues, and
 * nobody needs to be told of them. */
__noinline int has_turn(u32 set)
{
	int i;

	for (i = 0; i < NESTING_MAX && set != ROOT_SET && set < SETS_MAX; i++) {
		struct set *config = LOOKUP(sets, set);
		struct queue *queue = config ? queue_of(config->parent, config->position) : NULL;

		if (!queue || queue->chosen != set || !is_reached(config->parent, config->position))
			return false;
		set = config->parent;
	}
	return true;
}

/* Whether `inner` lies within `set`. */
static __always_inline bool is_within(u32 inner, u32 set)
{
	int i;

	for (i = 0; i < NESTING_MAX && inner != ROOT_SET && inner < SETS_MAX; i++) {
		struct set *config = LOOKUP(sets, inner);

		if (!config)
			return false;
		inner = config->parent;
		if (inner == set)
			return true;
	}
	return false;
}

/* Notes in the accounts that a turn of a set begins or ends. */
__noinline int turn_one(u32 set, u32 to, u64 now)
{
	struct locked_account *account = LOOKUP(accounts, set);

	if (!account)
		return 0;
	bpf_spin_lock(&account->lock);
	account->of.turning = to;
	if (to == TURN_ON) {
		account->of.turn_since = now;
		account->of.first_since = 0;
	}
	bpf_spin_unlock(&account->lock);
	return 0;
}

/* Notes for a set that lies within `outer`, in whose queue at `position` the choice changed,
 * whether it has its turn now. */
__noinline int note_turn(u32 set, u32 outer, u32 position, u64 now)
{
	struct set *config = LOOKUP(sets, set);
	struct position *its = config ? LOOKUP(positions, config->position) : NULL;
	struct position *at = LOOKUP(positions, position);

	if (!its || !at || its->first >= at->first + at->count || its->first < at->first ||
	    !is_within(set, outer))
		return 0;
	return turn_one(set, has_turn(set) ? TURN_ON : TURN_OFF, now);
}

/* Whether a set is runnable, and placed where this queue is. */
static __always_inline bool is_choice(u32 set, u32 parent, u32 position)
{
	struct set *config = LOOKUP(sets, set);
	struct life *life = LOOKUP(lives, set);

	return config && life && config->parent == parent && config->position == position &&
	       life->total > 0;
}

/* Virtual time of a turn of `ran` ns whose weight was the queue's as it began and is `weight` now,
 * with `tasks` runnable: by the mean of both. What waits for a turn piles up before it and is gone
 * behind it, the kernel's own threads above all. */
static __always_inline u64 charged(const struct queue *queue, u64 ran, u64 weight, s32 tasks)
{
	u64 before = queue->weight ? queue->weight : 100;

	return ran * 100 / (tasks > 0 ? (before + weight + 1) / 2 : before);
}

/* Looks at one set for a choice in the queue of `parent` at `position`, which had `old` before, for
 * `ran` ns. What was found so far is in the queue. */
__noinline int weigh(u32 set, u32 parent, u32 position, u32 old, u64 ran)
{
	struct queue *queue = queue_of(parent, position);
	struct position *at = LOOKUP(positions, position);
	struct set *config = LOOKUP(sets, set);
	struct life *life = LOOKUP(lives, set);
	u64 weight;

	if (!queue || !at || !config || !life || config->parent != parent)
		return 0;
	weight = weight_per_cpu(life->total_load, life->total, config->cores);
	if (config->position != position) {
		struct position *its = LOOKUP(positions, config->position);

		/* A set that is placed further down is part of what the levels below do. */
		if (its && life->total > 0 && its->level > at->level && its->first >= at->first &&
		    its->first < at->first + at->count) {
			queue->nested = 1;
			if (weight > queue->below_weight)
				queue->below_weight = weight;
		}
		return 0;
	}
	if (life->timed_at != position) {
		/* Times of different queues have nothing to do with each other. */
		life->timed_at = position;
		life->turn_time = queue->least_time;
	}
	if (set == old)
		life->turn_time += charged(queue, ran, weight, life->total);
	if (life->total <= 0)
		return 0;
	queue->candidates++;
	life->turn_time = bounded(life->turn_time, queue);
	if (queue->best == NOBODY || is_before(life->turn_time, queue->best_time)) {
		queue->best = set;
		queue->best_time = life->turn_time;
		queue->best_weight = weight;
	}
	return 0;
}

/* Looks at the levels below for a choice, behind all sets. */
__noinline int weigh_below(u32 set, u32 position, u32 old, u64 ran, int allowed)
{
	struct queue *queue = queue_of(set, position);
	struct position *at = LOOKUP(positions, position);
	struct life *mine = LOOKUP(lives, set);
	struct set *was;
	u64 weight;

	if (!queue || !at || !mine)
		return 0;
	weight = queue->below_weight;
	if (mine->own > 0)
		weight += weight_per_cpu(mine->own_load, mine->own, at->count);
	if (old == ROOT_SET)
		queue->below_time += charged(queue, ran, weight, mine->own);
	if (!allowed)
		return 0;
	/* Tasks that run on idle cores of the set that has the turn need none of their own. */
	was = old != ROOT_SET ? LOOKUP(sets, old) : NULL;
	if (!queue->nested && scx_bpf_dsq_nr_queued(tasks_of(set)) <= 0 &&
	    ((was && was->fill) || !below_is_busy(set, position)))
		return 0;
	queue->below_time = bounded(queue->below_time, queue);
	if (queue->best == NOBODY || is_before(queue->below_time, queue->best_time)) {
		queue->best = ROOT_SET;
		queue->best_time = queue->below_time;
		queue->best_weight = weight;
	}
	return 0;
}

/* Chooses anew, in the queue of `set` at `position`, with its lock held. Returns whether the choice
 * changed. `below`: whether the levels below may be chosen. */
__noinline int choose(u32 set, u32 position, int below, u64 now)
{
	struct queue *queue = queue_of(set, position);
	u32 i, old;
	u64 ran;

	if (!queue)
		return false;
	old = queue->chosen;
	COUNT(decisions);

	/* A turn in which nobody wanted anything counts as two at the most. */
	ran = now - queue->since;
	if ((s64)ran < 0)
		ran = 0;
	if (ran > 2 * turn_ns)
		ran = 2 * turn_ns;
	queue->best = NOBODY;
	queue->best_weight = 0;
	queue->candidates = 0;
	queue->nested = 0;
	queue->below_weight = 0;
	bpf_for(i, 1, shared.sets_used + 1)
		weigh(i, set, position, old, ran);
	weigh_below(set, position, old, ran, below);

	if (queue->best == NOBODY)
		/* Nobody wants anything, so nobody has to be told anything. */
		queue->best = old;
	else if (is_before(queue->least_time, queue->best_time))
		queue->least_time = queue->best_time;
	queue->since = now;
	/* A set that keeps the turn while all of it sleeps may wake: its turn has an end, too. */
	queue->until = queue->candidates || queue->best != ROOT_SET ? now + turn_ns : 0;
	queue->weight = queue->best_weight;
	if (queue->best == old)
		return false;
	COUNT(changes);
	queue->chosen = queue->best;
	bpf_for(i, 1, shared.sets_used + 1)
		note_turn(i, set, position, now);
	return true;
}

/* Chooses anew on behalf of `me`, unless another CPU is at it, which then does so once more. The
 * CPUs concerned are notified. */
__noinline int decide(u32 set, u32 position, u32 me, int below, u64 now)
{
	struct queue *queue = queue_of(set, position);
	struct position *at = LOOKUP(positions, position);
	struct place *mine = LOOKUP(places, me);
	struct lead *lead = LOOKUP(leads, position);
	int round;

	if (!queue || !at || !mine || !lead)
		return 0;
	bpf_for(round, 0, 8)
	{
		bool changed;

		if (__sync_val_compare_and_swap(&queue->lock, 0, 1)) {
			__sync_lock_test_and_set(&queue->again, 1);
			/* Whoever holds the lock still sees the mark when it has let go. */
			if (__sync_val_compare_and_swap(&queue->lock, 0, 1))
				return 0;
		}
		__sync_lock_test_and_set(&queue->again, 0);
		changed = choose(set, position, below, now);
		__sync_lock_test_and_set(&queue->lock, 0);

		if (changed && has_turn(set)) {
			if (mine->index >= at->first && mine->index < at->first + at->count) {
				if (lead->leader != me) {
					lead->leader = me;
					COUNT(takeovers);
				}
				pass_on(position, me);
			} else {
				lead->pending = 1;
				notify(lead->leader);
			}
		}
		if (!queue->again)
			break;
	}
	return 0;
}

/* Where a look at a CPU's queues has come to: a set, and a level of the CPU's path. */
#define AT(set, level) ((u64)(set) << 8 | (level))
#define SET_OF(at) ((u32)((at) >> 8))
#define LEVEL_OF(at) ((u32)((at) & 0xff))
#define LEVEL_DONE 0xff

/* Why somebody looks: to go on with its work; since a member of a set woke, and levels that have
 * nothing to do may hold the turn; since this CPU found nothing to run in the turn of the levels
 * below, whose tasks may all be kept to other CPUs. */
enum { GOES_ON, WOKE, FOUND_NOTHING };

/* One step of a look, from `from`; see `look`. */
__noinline u64 look_step(u64 from, u32 cpu, u32 me, int why, u64 now)
{
	struct place *place = LOOKUP(places, cpu);
	struct seat *seat = LOOKUP(seats, cpu);
	u32 set = SET_OF(from), level = LEVEL_OF(from), position, chosen;
	struct queue *queue;
	struct set *config;

	if (!place || !seat || level >= LEVELS_MAX || level >= place->levels)
		return AT(set, LEVEL_DONE);
	position = place->path[level];
	queue = queue_of(set, position);
	if (!queue)
		return AT(set, LEVEL_DONE);
	chosen = queue->chosen;
	if ((queue->until && !is_before(now, queue->until)) ||
	    (chosen != ROOT_SET && !is_choice(chosen, set, position)))
		decide(set, position, me, true, now);
	else if (why == FOUND_NOTHING && chosen == ROOT_SET && !below_is_busy(set, position))
		decide(set, position, me, false, now);
	else if (why == WOKE && chosen == ROOT_SET && !below_is_busy(set, position) &&
		 scx_bpf_dsq_nr_queued(tasks_of(set)) <= 0)
		decide(set, position, me, true, now);
	chosen = queue->chosen;
	if (cpu == me && queue->until && (!seat->next || is_before(queue->until, seat->next)))
		seat->next = queue->until;
	if (chosen == ROOT_SET || !is_choice(chosen, set, position))
		return AT(set, level + 1);
	config = LOOKUP(sets, chosen);
	/* The position may be larger than the set, and this CPU none of the set's cores. */
	if (!config || !covers(config, place))
		return AT(set, LEVEL_DONE);
	return AT(chosen, level);
}

/* The set whose turn it is on a CPU, by the queues from the machine down to it. Choices that are
 * due are made on the way, on behalf of `me`. */
__noinline u32 look(u32 cpu, u32 me, int why, u64 now)
{
	struct seat *seat = LOOKUP(seats, cpu);
	u64 at = AT(ROOT_SET, 0);
	int step;

	if (!seat)
		return ROOT_SET;
	if (cpu == me)
		seat->next = 0;
	bpf_for(step, 0, LEVELS_MAX + NESTING_MAX)
	{
		at = look_step(at, cpu, me, why, now);
		if (LEVEL_OF(at) == LEVEL_DONE)
			break;
	}
	if (cpu == me) {
		seat->serving = SET_OF(at);
		seat->until = seat->next;
	}
	return SET_OF(at);
}

/* ---- accounts ---------------------------------------------------------------------------- */

/* How many members of a set should run when it has its turn. */
__noinline u32 wanted(u32 set)
{
	struct set *config = LOOKUP(sets, set);
	struct life *life = LOOKUP(lives, set);
	s32 sum;
	u32 i;

	if (!config || !life)
		return 0;
	sum = life->own;
	if (!config->nested)
		sum = life->total;
	else
		bpf_for(i, 1, shared.sets_used + 1)
		{
			struct set *inner = LOOKUP(sets, i);
			struct life *its = LOOKUP(lives, i);

			if (!inner || !its)
				break;
			if (inner->parent == set && its->total > 0)
				sum += (u32)its->total < inner->cores ? (u32)its->total :
									inner->cores;
		}
	if (sum < 0)
		sum = 0;
	return (u32)sum < config->cores ? (u32)sum : config->cores;
}

static __always_inline u32 logarithm(u64 value)
{
	u32 found = 0;

	for (u32 step = 32; step; step >>= 1)
		if (value >> step) {
			value >>= step;
			found += step;
		}
	return found < SKEWS ? found : SKEWS - 1;
}

/* Closes a switch to a set: the last of the members that should run runs. */
static __always_inline void switched(struct account *account, u64 now)
{
	u64 skew = now - account->first_since, whole = now - account->turn_since;
	u32 index;

	if ((s64)skew < 0)
		skew = 0;
	if ((s64)whole < 0)
		whole = 0;
	account->turning = TURN_DONE;
	account->switches++;
	account->skew_sum += skew;
	if (skew > account->skew_max)
		account->skew_max = skew;
	account->switch_sum += whole;
	if (whole > account->switch_max)
		account->switch_max = whole;
	index = logarithm(skew);
	if (index < SKEWS)
		account->skews[index]++;
}

/* Brings a set's account up to date; then `change` more of its members run, and kernel threads of
 * `interrupted` more of its cores. Returns the set around it. */
__noinline u32 account_one(u32 set, int change, int interrupted, u64 now)
{
	struct locked_account *at = LOOKUP(accounts, set);
	struct set *config = LOOKUP(sets, set);
	u32 should = wanted(set), index, k;

	if (!at || !config)
		return ROOT_SET;
	bpf_spin_lock(&at->lock);
	k = at->of.running;
	if (k > 0 && is_before(at->of.last, now)) {
		u64 passed = now - at->of.last;

		if (k >= at->of.wanted)
			at->of.together += passed;
		else if (at->of.turning != TURN_DONE)
			at->of.switching += passed;
		else if (at->of.interrupted > 0 && k + at->of.interrupted >= at->of.wanted)
			at->of.interruptions += passed;
		else
			at->of.apart += passed;
		index = k < TOGETHER_MAX ? k : TOGETHER_MAX;
		at->of.at[index] += passed;
	}
	if (is_before(at->of.last, now))
		at->of.last = now;
	k += change;
	at->of.running = k;
	at->of.interrupted += interrupted;
	at->of.wanted = should;
	if (at->of.turning == TURN_ON && k > 0) {
		if (!at->of.first_since) {
			at->of.first_since = now;
			at->of.turns++;
		}
		if (k >= should)
			switched(&at->of, now);
	} else if (at->of.turning == TURN_OFF && k == 0) {
		at->of.turning = TURN_DONE;
	}
	bpf_spin_unlock(&at->lock);
	return config->parent;
}

/* The same for a set and those around it. */
__noinline int account(u32 set, int change, u64 now)
{
	for (int i = 0; i < NESTING_MAX && set != ROOT_SET && set < SETS_MAX; i++)
		set = account_one(set, change, 0, now);
	return 0;
}

/* Counts a runnable task in a set and those around it, or out of them. */
__noinline int count(u32 set, int sign, u32 weight)
{
	struct life *life = LOOKUP(lives, set);
	s64 load = sign > 0 ? (s64)weight : -(s64)weight;
	int i;

	if (!life)
		return 0;
	__sync_fetch_and_add(&life->own, sign);
	__sync_fetch_and_add(&life->own_load, load);
	if (set == ROOT_SET)
		return 0;
	__sync_fetch_and_add(&shared.active, sign);
	for (i = 0; i < NESTING_MAX && set != ROOT_SET && set < SETS_MAX; i++) {
		struct set *config = LOOKUP(sets, set);

		life = LOOKUP(lives, set);
		if (!life || !config)
			return 0;
		__sync_fetch_and_add(&life->total, sign);
		__sync_fetch_and_add(&life->total_load, load);
		set = config->parent;
	}
	return 0;
}

/* Counts a member of a set, and of those around it. */
__noinline int count_member(u32 set, int sign)
{
	int i;

	for (i = 0; i <= NESTING_MAX && set < SETS_MAX; i++) {
		struct life *life = LOOKUP(lives, set);
		struct set *config = LOOKUP(sets, set);

		if (!life || !config)
			break;
		if (__sync_fetch_and_add(&life->members, sign) == 0)
			/* A new set, where another one may have been before. */
			life->timed_at = NOBODY;
		if (set == ROOT_SET)
			break;
		set = config->parent;
	}
	return 0;
}

/* The set that a task is to be scheduled in: its own, or the nearest around it with a core that the
 * task may run on. */
static __always_inline u32 effective(struct task_struct *p, u32 set)
{
	int i;

	for (i = 0; i < NESTING_MAX && set != ROOT_SET && set < SETS_MAX; i++) {
		struct set *config = LOOKUP(sets, set);
		struct position *at = config ? LOOKUP(positions, config->position) : NULL;
		u32 k;

		if (!at)
			break;
		if (p->nr_cpus_allowed >= (int)cpus_possible)
			return set;
		bpf_for(k, 0, config->cores)
		{
			u32 *cpu = LOOKUP(order, at->first + k);

			if (!cpu)
				break;
			if (bpf_cpumask_test_cpu(*cpu, p->cpus_ptr))
				return set;
		}
		set = config->parent;
	}
	return ROOT_SET;
}

static __always_inline struct task *task_of(struct task_struct *p)
{
	return bpf_task_storage_get(&tasks, p, NULL, 0);
}

/* Kernel threads of one CPU do the CPU's own work, such as what interrupts left over. They wait for
 * no turn, and their time counts as time in which a member does not run. */
static __always_inline bool is_of_a_cpu(struct task_struct *p)
{
	return (p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1;
}

static __always_inline void write_step(u32 cpu, u32 set, int id, u64 now)
{
	struct step *step;
	struct locked_account *of;

	if (!shared.tracing)
		return;
	step = bpf_ringbuf_reserve(&trace, sizeof(*step), 0);
	if (!step)
		return;
	of = set < SETS_MAX ? LOOKUP(accounts, set) : NULL;
	step->ns = now;
	step->cpu = cpu;
	step->set = set;
	step->task = id;
	step->wanted = of ? of->of.wanted : 0;
	bpf_ringbuf_submit(step, 0);
}

/* ---- what the kernel calls --------------------------------------------------------------- */

SEC("struct_ops/gang_select_cpu")
s32 BPF_PROG(gang_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu;

	if (shared.active)
		/* Which CPU is free for it depends on turns: `enqueue` sees to it. */
		return prev_cpu;
	cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);
	if (is_idle)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
	return cpu;
}

/* Whether a CPU that is idle by its last look may run tasks of a set. */
__noinline int may_serve(u32 serving, u32 set)
{
	int i;

	for (i = 0; i <= NESTING_MAX && serving < SETS_MAX; i++) {
		struct life *life;
		struct set *config;

		if (serving == set)
			return true;
		if (serving == ROOT_SET)
			return false;
		config = LOOKUP(sets, serving);
		life = LOOKUP(lives, serving);
		if (!config || !life || (life->total > 0 && !config->fill))
			return false;
		serving = config->parent;
	}
	return false;
}

/* Sees to it that queues in which a set, or one around it, waits for its turn have an end of the
 * turn that is on: while nothing waits in a queue, its turn has none. */
__noinline int arouse(u32 set)
{
	int i;

	for (i = 0; i < NESTING_MAX && set != ROOT_SET && set < SETS_MAX; i++) {
		struct set *config = LOOKUP(sets, set);
		struct queue *queue = config ? queue_of(config->parent, config->position) : NULL;

		if (!queue)
			break;
		if (queue->chosen != set && !queue->until)
			queue->until = queue->since + turn_ns;
		set = config->parent;
	}
	return 0;
}

/* Finds a CPU for a task of a set that was just put into its queue: one of the set's that is idle,
 * or that does other things while the set has its turn. */
static __always_inline void find_cpu(struct task_struct *p, u32 set, u64 now)
{
	u32 me = bpf_get_smp_processor_id(), first = 0, cpus = cpus_possible, i, busy = NOBODY;
	struct set *config = LOOKUP(sets, set);
	struct position *at;

	if (!config)
		return;
	at = LOOKUP(positions, config->position);
	if (!at)
		return;
	if (set != ROOT_SET) {
		first = at->first;
		cpus = config->cores;
		if (!has_turn(set)) {
			u32 *leader = LOOKUP(order, first);

			arouse(set);
			if (leader)
				look(*leader, me, WOKE, now);
			if (!has_turn(set))
				return;
		}
	}
	bpf_for(i, 0, cpus)
	{
		u32 *cpu = LOOKUP(order, first + i);
		struct seat *seat = cpu ? LOOKUP(seats, *cpu) : NULL;

		if (!seat)
			break;
		if (!bpf_cpumask_test_cpu(*cpu, p->cpus_ptr))
			continue;
		if (seat->doing == NOBODY && may_serve(seat->serving, set) &&
		    scx_bpf_test_and_clear_cpu_idle(*cpu)) {
			scx_bpf_kick_cpu(*cpu, SCX_KICK_IDLE);
			return;
		}
		if (set != ROOT_SET && seat->serving == set && seat->doing != NOBODY &&
		    seat->doing != set && outermost(set, seat->doing) == NOBODY)
			busy = *cpu;
	}
	/* No core does other things while the set has runnable tasks that do not run. */
	if (busy != NOBODY)
		notify(busy);
}

SEC("struct_ops/gang_enqueue")
void BPF_PROG(gang_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task *task = task_of(p);
	u64 now = bpf_ktime_get_ns(), time;
	struct life *life;
	u32 set;

	if (!task || is_of_a_cpu(p)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags | SCX_ENQ_PREEMPT);
		return;
	}
	set = effective(p, task->set);
	if (task->is_counted && task->counted != set) {
		/* Its set moved, or the CPUs that it may use changed. */
		u32 from = task->counted;

		count(from, -1, task->weight);
		count(set, 1, task->weight);
		task->counted = set;
		task->time = 0;
		account(from, 0, now);
		account(set, 0, now);
	}
	life = LOOKUP(lives, set);
	if (!life)
		return;
	time = task->time;
	/* Sleeping earns no more than a slice. */
	if (is_before(time, life->task_time - slice_ns))
		time = task->time = life->task_time - slice_ns;
	scx_bpf_dsq_insert_vtime(p, tasks_of(set), slice_ns, time, enq_flags);
	find_cpu(p, set, now);
}

/* Takes one of a set's tasks to this CPU. Within a slice of the first in the queue, one that ran
 * here last is better: what it left in the caches may still be there. */
__noinline int take(u32 set, s32 cpu)
{
	struct task_struct *p;
	u64 first = 0;
	u32 seen = 0;
	bool taken = false;

	if (set != ROOT_SET) {
		bpf_for_each(scx_dsq, p, tasks_of(set), 0)
		{
			u64 time = p->scx.dsq_vtime;

			if (!seen)
				first = time;
			if (++seen > 16 || is_before(first + slice_ns, time))
				break;
			if (scx_bpf_task_cpu(p) != cpu || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
				continue;
			taken = scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0);
			break;
		}
		if (taken)
			return true;
	}
	return scx_bpf_dsq_move_to_local(tasks_of(set));
}

static __always_inline void set_slice(struct task_struct *p, u64 slice)
{
	if (bpf_ksym_exists(scx_bpf_task_set_slice))
		scx_bpf_task_set_slice(p, slice);
	else
		p->scx.slice = slice;
}

SEC("struct_ops/gang_dispatch")
void BPF_PROG(gang_dispatch, s32 cpu, struct task_struct *prev)
{
	bool prev_waits = prev && (prev->scx.flags & SCX_TASK_QUEUED);
	u32 prev_set = NOBODY, set, around, look_again;
	struct place *place = LOOKUP(places, cpu);
	struct seat *seat = LOOKUP(seats, cpu);
	u64 now = bpf_ktime_get_ns();

	if (!place || !seat)
		return;
	if (prev_waits) {
		struct task *task = task_of(prev);

		if (task && !is_of_a_cpu(prev))
			prev_set = task->counted;
	} else {
		seat->doing = NOBODY;
	}
	if (!shared.active && seat->serving == ROOT_SET) {
		if (!scx_bpf_dsq_move_to_local(tasks_of(ROOT_SET)) && prev_waits)
			set_slice(prev, slice_ns);
		return;
	}

	/* Passes on what this CPU was told as a leader, or finds that its leader was not there to. */
	for (int level = 0; level < LEVELS_MAX; level++) {
		struct lead *lead;

		if (level >= (int)place->levels)
			break;
		lead = LOOKUP(leads, place->path[level]);
		if (lead && lead->pending && __sync_lock_test_and_set(&lead->pending, 0))
			pass_on(place->path[level], cpu);
	}

	bpf_for(look_again, 0, 2)
	{
		set = look(cpu, cpu, look_again ? FOUND_NOTHING : GOES_ON, now);
		around = set;
		for (int i = 0; i <= NESTING_MAX; i++) {
			struct set *config;

			if (around >= SETS_MAX)
				break;
			if (take(around, cpu)) {
				/* Seen by others from now on, not only once the task runs. */
				seat->doing = around;
				return;
			}
			if (prev_waits && prev_set == around) {
				set_slice(prev, slice_ns);
				return;
			}
			config = LOOKUP(sets, around);
			if (around == ROOT_SET || !config || !config->fill)
				break;
			around = config->parent;
		}
	}
}

SEC("struct_ops/gang_runnable")
void BPF_PROG(gang_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task *task = task_of(p);
	u32 set;

	if (!task || is_of_a_cpu(p))
		return;
	set = effective(p, task->set);
	if (task->counted != set) {
		/* Virtual times of different sets have nothing to do with each other. */
		struct life *life = LOOKUP(lives, set);

		task->time = life ? life->task_time : 0;
	}
	task->counted = set;
	task->weight = p->scx.weight;
	task->is_counted = 1;
	count(set, 1, task->weight);
	account(set, 0, bpf_ktime_get_ns());
}

SEC("struct_ops/gang_quiescent")
void BPF_PROG(gang_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task *task = task_of(p);

	if (!task || !task->is_counted)
		return;
	task->is_counted = 0;
	count(task->counted, -1, task->weight);
	account(task->counted, 0, bpf_ktime_get_ns());
}

SEC("struct_ops/gang_running")
void BPF_PROG(gang_running, struct task_struct *p)
{
	struct task *task = task_of(p);
	u32 cpu = bpf_get_smp_processor_id();
	struct seat *seat = LOOKUP(seats, cpu);
	u64 now = bpf_ktime_get_ns();
	struct life *life;

	if (!task || !seat)
		return;
	task->since = now;
	if (is_of_a_cpu(p)) {
		task->accounted = NOBODY;
		task->interrupted = seat->serving;
		seat->doing = NOBODY;
		if (task->interrupted != ROOT_SET)
			account_one(task->interrupted, 0, 1, now);
		return;
	}
	task->interrupted = ROOT_SET;
	life = LOOKUP(lives, task->counted);
	if (life && is_before(life->task_time, task->time))
		life->task_time = task->time;
	task->accounted = task->counted;
	seat->doing = task->counted;
	account(task->counted, 1, now);
	write_step(cpu, task->counted, p->pid, now);
	if (seat->until) {
		/* No slice outlasts the turn, so that somebody looks when it ends. */
		u64 left = seat->until - now, least = 500000;

		if ((s64)left < (s64)least)
			left = least;
		if (left < p->scx.slice || task->counted != ROOT_SET)
			set_slice(p, left);
	}
}

SEC("struct_ops/gang_stopping")
void BPF_PROG(gang_stopping, struct task_struct *p, bool runnable)
{
	struct task *task = task_of(p);
	u32 cpu = bpf_get_smp_processor_id();
	struct seat *seat = LOOKUP(seats, cpu);
	u64 now = bpf_ktime_get_ns();
	u32 weight;

	if (!task || !seat)
		return;
	weight = p->scx.weight;
	task->time += (now - task->since) * 100 / (weight ? weight : 1);
	seat->doing = NOBODY;
	if (task->interrupted != ROOT_SET)
		account_one(task->interrupted, 0, -1, now);
	if (task->accounted == NOBODY)
		return;
	account(task->accounted, -1, now);
	write_step(cpu, NOBODY, p->pid, now);
}

SEC("struct_ops/gang_init_task")
s32 BPF_PROG(gang_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task *task, *parent;
	struct life *life;

	task = bpf_task_storage_get(&tasks, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!task)
		return -12; /* ENOMEM */
	task->set = ROOT_SET;
	task->counted = ROOT_SET;
	task->accounted = NOBODY;
	if (args->fork) {
		parent = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), NULL, 0);
		if (parent)
			task->set = parent->set;
	}
	life = LOOKUP(lives, task->set);
	if (life)
		task->time = life->task_time;
	count_member(task->set, 1);
	return 0;
}

SEC("struct_ops/gang_exit_task")
void BPF_PROG(gang_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	struct task *task = task_of(p);

	if (task)
		count_member(task->set, -1);
}

SEC("struct_ops.s/gang_init")
s32 BPF_PROG(gang_init)
{
	u32 i;

	bpf_for(i, 0, SETS_MAX)
	{
		s32 error = scx_bpf_create_dsq(tasks_of(i), -1);

		if (error)
			return error;
	}
	return 0;
}

SEC("struct_ops/gang_exit")
void BPF_PROG(gang_exit, struct scx_exit_info *info)
{
	bpf_probe_read_kernel_str(shared.exit_message, sizeof(shared.exit_message), info->msg);
	if (!shared.exit_message[0])
		bpf_probe_read_kernel_str(shared.exit_message, sizeof(shared.exit_message), info->reason);
	shared.exit_code = info->exit_code;
	shared.exit_kind = info->kind;
}

SEC(".struct_ops.link")
struct sched_ext_ops gang = {
	.select_cpu = (void *)gang_select_cpu,
	.enqueue = (void *)gang_enqueue,
	.dispatch = (void *)gang_dispatch,
	.runnable = (void *)gang_runnable,
	.quiescent = (void *)gang_quiescent,
	.running = (void *)gang_running,
	.stopping = (void *)gang_stopping,
	.init_task = (void *)gang_init_task,
	.exit_task = (void *)gang_exit_task,
	.init = (void *)gang_init,
	.exit = (void *)gang_exit,
	/* A task that is alone in its queue may not simply go on: its set's turn may be over. And a
	 * task that is about to end keeps to turns as before. */
	.flags = SCX_OPS_ENQ_LAST | SCX_OPS_ENQ_EXITING,
	.timeout_ms = 20000,
	.name = "hearth_gang",
};

/* ---- what the command calls -------------------------------------------------------------- */

struct joining {
	u32 set;
};

/* Makes the calling task a member of a set. It is counted there from when it next wakes. */
SEC("syscall")
int join(struct joining *what)
{
	struct task *task;
	u32 set = what->set;

	if (set >= SETS_MAX)
		return -22; /* EINVAL */
	task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), NULL, 0);
	if (!task)
		return -3; /* ESRCH: of another scheduling class, such as real time */
	count_member(set, 1);
	count_member(task->set, -1);
	task->set = set;
	return 0;
}
