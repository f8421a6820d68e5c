/* SPDX-License-Identifier: GPL-2.0-only */
/* What the parts of the command owe each other. */
#ifndef HEARTH_GANG_COMMAND_H
#define HEARTH_GANG_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

#include "gang.h"

#define PROGRAM "hearth-gang-kernel"
/* Maps and programs of the scheduler that runs, for other calls of the command. */
#define PINS "/sys/fs/bpf/hearth-gang"

/* Hearth's exit codes. */
enum { DONE = 0, NEGATIVE = 1, INPUT = 2, ENVIRONMENT = 3, BUG = 4 };

/* Prints a line behind the program's name, and ends with a code. */
void fail(int code, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

/* ---- topology.c ---- */

struct topology {
	unsigned int cpus; /* in `order` */
	unsigned int order[CPUS_MAX];
	unsigned int positions_used;
	struct position positions[POSITIONS_MAX];
	struct place places[CPUS_MAX];
};

/* Reads sysfs; fails if there are more CPUs or positions than fit. */
void read_topology(struct topology *topology);

/* CPUs of a list such as 0-2,5; fails with `what` in its message if it is none. */
void read_cpu_list(const char *text, bool cpus[CPUS_MAX], const char *what);

/* CPUs `order[first] .. order[first + count - 1]` as such a list. */
void write_cpu_list(FILE *out, const unsigned int *order, unsigned int first, unsigned int count);

/* ---- run.c ---- */

/* Ends with one line if this kernel has no sched_ext. */
void need_sched_ext(void);

int run(int argc, char **argv);

/* ---- live.c: the scheduler that runs ---- */

struct live {
	struct shared *shared; /* of the scheduler, as memory */
	int sets, lives, accounts, counts, positions, order, seats, trace, join;
	unsigned int positions_used;
	unsigned int order_of[CPUS_MAX];
	struct position position_of[POSITIONS_MAX];
};

/* Opens what is pinned; fails with one line if no scheduler runs. */
void open_live(struct live *live);

void read_set(const struct live *live, unsigned int set, struct set *config, struct life *life);

/* The set of that name that has members, or 0. */
unsigned int find_set(const struct live *live, const char *name);

/* ---- show.c ---- */

int show_sets(int argc, char **argv);
int show_stats(int argc, char **argv);
int show_trace(int argc, char **argv);

#endif
