/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the scheduler in the kernel and its command share: the hierarchy, sets, and their accounts.
 *
 *     structure       the command writes                the scheduler writes
 *     position        all, before it starts the rest    -
 *     place           all, before it starts the rest    -
 *     set             all; `position` later, too        -
 *     life            -                                 all
 *     queue, lead     -                                 all
 *     account         -                                 all, under its lock
 */
#ifndef HEARTH_GANG_H
#define HEARTH_GANG_H

enum {
	CPUS_MAX = 256,
	/* A tree whose inner vertices have two children or more has less than twice its leaves. */
	POSITIONS_MAX = 512,
	/* Machine, package, node, cache, core, CPU, and halves of those that have many parts. */
	LEVELS_MAX = 12,
	/* A leader of at most this many CPUs notifies each itself. */
	DIRECT_MAX = 4,
	/* Set 0 holds all tasks that are in no set. */
	SETS_MAX = 64,
	ROOT_SET = 0,
	/* Sets within sets, the root set not counted. */
	NESTING_MAX = 4,
	NAME_MAX_LEN = 32,
	/* Accounts count members that run together up to this number. */
	TOGETHER_MAX = 64,
	SKEWS = 40,
	NOBODY = 0xffffffff,
};

/* A vertex of the hierarchy. Its CPUs are `order[first] .. order[first + count - 1]`, where `order`
 * lists CPUs so that those of each position are neighbours. Children have consecutive numbers. */
struct position {
	unsigned int first;
	unsigned int count;
	unsigned int first_child;
	unsigned int children;
	unsigned int parent;
	unsigned int level;
};

/* A CPU's way from the machine down to itself. */
struct place {
	unsigned int index; /* in `order` */
	unsigned int levels; /* entries of `path`; 0 if the CPU is not there */
	unsigned int path[LEVELS_MAX];
};

struct set {
	char name[NAME_MAX_LEN];
	unsigned int cores;
	unsigned int position;
	unsigned int parent;
	unsigned int fill; /* its idle cores run tasks of the parent set */
	unsigned int nested; /* there have been sets within it */
	unsigned int depth; /* 1 for a set within the root set */
};

struct life {
	int members; /* tasks, with those of nested sets; a set without any is free */
	int own; /* members that are runnable, without those of nested sets */
	int total; /* members that are runnable, with those of nested sets */
	unsigned int timed_at; /* the position whose queue `turn_time` belongs to */
	long long own_load; /* sums of the weights of those; 100 is a task of nice 0 */
	long long total_load;
	unsigned long long turn_time; /* virtual time of the set, in the queue that it is in */
	unsigned long long task_time; /* virtual time of the set's own tasks */
};

/* What one set decides at one position: which of the sets within it that are placed there has its
 * turn, or whether the levels below decide (`chosen` is ROOT_SET). */
struct queue {
	unsigned int lock;
	unsigned int again; /* something changed while somebody had the lock */
	unsigned int chosen;
	unsigned int unused;
	unsigned long long since; /* when the turn began, in ns */
	unsigned long long until; /* when it ends, at the earliest */
	unsigned long long below_time; /* virtual time of the levels below */
	unsigned long long least_time; /* virtual time that no entity may fall behind by over a turn */
	/* Of what was chosen, then: at the end of a turn its tasks may all sleep. */
	unsigned long long weight;
	/* Of a choice under way, by whoever holds the lock. */
	unsigned int best; /* so far, or NOBODY */
	unsigned int candidates; /* sets that are runnable and placed here */
	unsigned int nested; /* there are such further down */
	unsigned int unused_too;
	unsigned long long best_time;
	unsigned long long best_weight;
	unsigned long long below_weight;
};

struct lead {
	unsigned int leader; /* a CPU */
	unsigned int pending; /* there is a notification to pass on */
};

/* One of a set's times, in ns, by how its members ran. */
struct account {
	unsigned int running; /* members that run now, with those of nested sets */
	unsigned int wanted; /* how many should: the smaller of runnable members and cores */
	unsigned int turning; /* TURN_ON or TURN_OFF while a switch is under way */
	int interrupted; /* cores of the set, in its turn, that run kernel threads of theirs */
	unsigned long long last; /* when the times below were last brought up to date */
	unsigned long long together; /* as many as should */
	unsigned long long interruptions; /* fewer, for as many cores ran kernel threads of theirs */
	unsigned long long switching; /* fewer, while a turn of the set began or ended */
	unsigned long long apart; /* fewer at other times */
	unsigned long long at[TOGETHER_MAX + 1]; /* by number of members that ran */
	unsigned long long turn_since; /* when the leader decided on the set */
	unsigned long long first_since; /* when the first member ran */
	unsigned long long turns; /* in which a member ran */
	unsigned long long switches; /* turns in which as many members ran together as should */
	unsigned long long skew_sum; /* from the first member that ran to the last */
	unsigned long long skew_max;
	unsigned long long switch_sum; /* from the leader's decision to the last member that ran */
	unsigned long long switch_max;
	unsigned long long skews[SKEWS]; /* switches by binary logarithm of the skew in ns */
	unsigned long long notifications; /* sent to let the set run */
};

enum { TURN_DONE, TURN_ON, TURN_OFF };

struct counters {
	unsigned long long notifications; /* one-way, from leader to leader, and to CPUs */
	unsigned long long decisions; /* of leaders */
	unsigned long long changes; /* decisions for something else than before */
	unsigned long long takeovers; /* a CPU became a leader that was not */
	unsigned long long failures; /* the scheduler's own checks; always 0 */
};

/* What the command sets and sees while the scheduler runs; the map `.data.shared` is one. */
struct shared {
	unsigned int version; /* VERSION, of the scheduler that is loaded */
	unsigned int sets_used; /* sets beyond this number never existed */
	int active; /* runnable members of all sets */
	unsigned int tracing; /* steps are written to the map `trace` */
	unsigned int exit_kind; /* the kernel's reason, once it has ended the scheduler; or 0 */
	unsigned int unused;
	long long exit_code;
	char exit_message[128];
};

/* Of this file: a command does not touch the maps of a scheduler of another version. */
enum { VERSION = 1 };

/* A step of the trace: from `ns` on, `cpu` runs a task of `set`, or none of the scheduler's. */
struct step {
	unsigned long long ns;
	unsigned int cpu;
	unsigned int set; /* NOBODY: none */
	int task;
	unsigned int wanted; /* of the set, then */
};

#endif
