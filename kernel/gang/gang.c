// SPDX-License-Identifier: GPL-2.0-only
/* The command: its arguments, and what changes sets. */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "command.h"

/* Held while sets are made or moved. */
#define LOCK "/run/hearth-gang.lock"

static const char USAGE[] =
	"Usage: hearth-gang-kernel COMMAND\n"
	"\n"
	"  run [--turn MS] [--verbose]\n"
	"                   load the scheduler, and stay; turns of a set last 10 ms if not given\n"
	"  join --name NAME [--cores N] [--fill | --isolate] [--within NAME] -- COMMAND [ARGUMENTS]\n"
	"                   run a command as a member of a set; its children are members, too. A set\n"
	"                   that is not there is made, of N cores. Cores that have none of its members\n"
	"                   to run, while the set has its turn, run other tasks (--fill) or nothing\n"
	"                   (--isolate, which is the default)\n"
	"  sets [--json]    the sets that have members\n"
	"  stats [--json]   how long members ran together, and what leaders did\n"
	"  trace [SECONDS]  who ran where: ns, CPU, set, task, members that should run\n"
	"  move NAME --cpus LIST\n"
	"                   give a set other cores: the smallest part of the machine with those CPUs\n"
	"\n"
	"Exit codes: 0 done, 1 a negative answer, 2 a mistake in the command line, 3 the machine lacks\n"
	"something, 4 a mistake of this program's own; for join those of the command.\n";

void fail(int code, const char *format, ...)
{
	va_list arguments;

	fflush(stdout);
	fprintf(stderr, PROGRAM ": ");
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "\n");
	exit(code);
}

/* Held until the descriptor is closed, which an exec does. */
static int lock(void)
{
	int file = open(LOCK, O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	if (file < 0 || flock(file, LOCK_EX))
		fail(ENVIRONMENT, LOCK " cannot be locked: %s", strerror(errno));
	return file;
}

static void check_name(const char *name)
{
	size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "0123456789_.-");

	if (!*name || name[length] || length >= NAME_MAX_LEN)
		fail(INPUT, "'%s' is no name for a set: up to %d letters, digits, dots, dashes and "
			    "underscores are", name, NAME_MAX_LEN - 1);
}

/* Cores of other sets that lie within a position, by members of the same set around them. */
static unsigned int occupied(const struct live *live, unsigned int parent,
			     const struct position *at)
{
	unsigned int sum = 0;

	for (unsigned int i = 1; i <= live->shared->sets_used; i++) {
		struct set config;
		struct life life;
		const struct position *its;

		read_set(live, i, &config, &life);
		its = &live->position_of[config.position];
		if (life.members > 0 && config.parent == parent && its->first < at->first + at->count &&
		    at->first < its->first + its->count)
			sum += config.cores;
	}
	return sum;
}

/* The smallest position with enough cores within another; of those, the one with the least sets. */
static unsigned int find_position(const struct live *live, unsigned int cores, unsigned int parent,
				  const struct position *within)
{
	unsigned int best = NOBODY, best_occupied = 0;

	for (unsigned int i = 0; i < live->positions_used; i++) {
		const struct position *at = &live->position_of[i];
		unsigned int others;

		if (at->count < cores || at->first < within->first ||
		    at->first + at->count > within->first + within->count)
			continue;
		others = occupied(live, parent, at);
		if (best == NOBODY || at->count < live->position_of[best].count ||
		    (at->count == live->position_of[best].count && others < best_occupied)) {
			best = i;
			best_occupied = others;
		}
	}
	return best;
}

struct wish {
	const char *name, *within;
	unsigned long cores;
	bool fill;
};

/* Makes a set, with the lock held. */
static unsigned int make_set(const struct live *live, const struct wish *wish)
{
	struct set config = { .cores = (unsigned int)wish->cores, .fill = wish->fill, .depth = 1 }, outer;
	struct position within = live->position_of[0];
	struct locked {
		struct bpf_spin_lock lock;
		struct account of;
	} account = { 0 };
	struct life life;
	unsigned int set;

	if (!wish->cores)
		fail(INPUT, "there is no set '%s'; to make it, say how many --cores it has", wish->name);
	if (wish->within) {
		config.parent = find_set(live, wish->within);
		if (config.parent == ROOT_SET)
			fail(INPUT, "there is no set '%s' for '%s' to be within", wish->within, wish->name);
		read_set(live, config.parent, &outer, &life);
		within = live->position_of[outer.position];
		within.count = outer.cores;
		config.depth = outer.depth + 1;
		if (config.depth > NESTING_MAX)
			fail(INPUT, "'%s' lies within %d sets already", wish->within, NESTING_MAX - 1);
	}
	if (wish->cores > within.count)
		fail(INPUT, "%lu cores are more than the %u of %s", wish->cores, within.count,
		     wish->within ? wish->within : "this machine");
	config.position = find_position(live, config.cores, config.parent, &within);
	if (config.position == NOBODY)
		fail(INPUT, "no part of %s's cores has %lu of them; give the set as many as a core, a "
			    "cache or a node has",
		     wish->within, wish->cores);
	strcpy(config.name, wish->name);
	for (set = 1; set < SETS_MAX; set++) {
		struct set was;

		read_set(live, set, &was, &life);
		if (life.members <= 0)
			break;
	}
	if (set == SETS_MAX)
		fail(ENVIRONMENT, "there are %d sets already, the most", SETS_MAX - 1);
	if (bpf_map_update_elem(live->accounts, &set, &account, BPF_F_LOCK) ||
	    bpf_map_update_elem(live->sets, &set, &config, BPF_ANY))
		fail(BUG, "set %u cannot be written: %s", set, strerror(errno));
	if (wish->within) {
		outer.nested = 1;
		bpf_map_update_elem(live->sets, &config.parent, &outer, BPF_ANY);
	}
	if (live->shared->sets_used < set)
		live->shared->sets_used = set;
	return set;
}

static int join(int argc, char **argv)
{
	struct wish wish = { 0 };
	bool filling = false, isolating = false;
	struct live live;
	unsigned int set;
	int i;

	for (i = 0; i < argc && strcmp(argv[i], "--"); i++) {
		const char *option = argv[i];
		char *end;

		if (!strcmp(option, "--fill")) {
			filling = wish.fill = true;
			continue;
		}
		if (!strcmp(option, "--isolate")) {
			isolating = true;
			continue;
		}
		if (strcmp(option, "--name") && strcmp(option, "--cores") && strcmp(option, "--within"))
			fail(INPUT, "join does not know '%s'; try: " PROGRAM " help", option);
		if (++i >= argc || !strcmp(argv[i], "--"))
			fail(INPUT, "%s takes a value", option);
		if (!strcmp(option, "--name")) {
			wish.name = argv[i];
		} else if (!strcmp(option, "--within")) {
			wish.within = argv[i];
		} else {
			wish.cores = strtoul(argv[i], &end, 10);
			if (*end || wish.cores < 1 || wish.cores > CPUS_MAX)
				fail(INPUT, "--cores takes a number from 1 to %d, not '%s'", CPUS_MAX,
				     argv[i]);
		}
	}
	if (!wish.name)
		fail(INPUT, "join takes the --name of a set");
	if (i + 1 >= argc)
		fail(INPUT, "join takes a command, behind --");
	if (filling && isolating)
		fail(INPUT, "--fill and --isolate exclude each other");
	check_name(wish.name);
	open_live(&live);
	int locked = lock();

	set = find_set(&live, wish.name);
	if (set == ROOT_SET) {
		set = make_set(&live, &wish);
	} else if (wish.cores) {
		struct set config;
		struct life life;

		read_set(&live, set, &config, &life);
		if (config.cores != wish.cores)
			fail(INPUT, "the set '%s' is there, and has %u cores, not %lu", wish.name,
			     config.cores, wish.cores);
	}
	LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = &set, .ctx_size_in = sizeof(set));
	if (bpf_prog_test_run_opts(live.join, &options))
		fail(BUG, "the set '%s' cannot be joined: %s", wish.name, strerror(errno));
	if ((int)options.retval)
		fail(ENVIRONMENT, "this process is in another scheduling class, and cannot join");
	close(locked);
	/* Membership counts from when a task next wakes. */
	nanosleep(&(const struct timespec){ .tv_nsec = 1000000 }, NULL);
	execvp(argv[i + 1], argv + i + 1);
	fail(INPUT, "'%s' cannot be run: %s", argv[i + 1], strerror(errno));
}

static int move(int argc, char **argv)
{
	unsigned int set, best = NOBODY;
	bool wanted[CPUS_MAX];
	struct position within;
	struct set config, outer;
	struct life life;
	struct live live;

	if (argc != 3 || strcmp(argv[1], "--cpus"))
		fail(INPUT, "move takes a set, and --cpus with a list such as 0-3");
	read_cpu_list(argv[2], wanted, "--cpus");
	open_live(&live);
	lock();
	set = find_set(&live, argv[0]);
	if (set == ROOT_SET)
		fail(INPUT, "there is no set '%s'", argv[0]);
	read_set(&live, set, &config, &life);
	within = live.position_of[0];
	if (config.parent != ROOT_SET) {
		read_set(&live, config.parent, &outer, &life);
		within = live.position_of[outer.position];
		within.count = outer.cores;
	}
	if (config.nested)
		fail(INPUT, "'%s' has or had sets within it, and stays where it is", argv[0]);
	for (unsigned int i = 0; i < live.positions_used; i++) {
		const struct position *at = &live.position_of[i];
		bool in[CPUS_MAX] = { false }, all = true;

		if (at->count < config.cores || at->first < within.first ||
		    at->first + at->count > within.first + within.count)
			continue;
		for (unsigned int k = 0; k < config.cores; k++)
			in[live.order_of[at->first + k]] = true;
		for (unsigned int cpu = 0; cpu < CPUS_MAX; cpu++)
			all = all && (in[cpu] || !wanted[cpu]);
		if (all && (best == NOBODY || at->count < live.position_of[best].count))
			best = i;
	}
	if (best == NOBODY)
		fail(INPUT, "no part of the machine has the CPUs %s among the first %u of its own, which "
			    "would be the set's",
		     argv[2], config.cores);
	config.position = best;
	if (bpf_map_update_elem(live.sets, &set, &config, BPF_ANY))
		fail(BUG, "set %u cannot be written: %s", set, strerror(errno));
	return DONE;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*does)(int argc, char **argv);
	} commands[] = {
		{ "run", run },		 { "join", join },	   { "sets", show_sets },
		{ "stats", show_stats }, { "trace", show_trace }, { "move", move },
	};

	if (argc > 1)
		for (unsigned int i = 0; i < sizeof(commands) / sizeof(*commands); i++)
			if (!strcmp(argv[1], commands[i].name))
				return commands[i].does(argc - 2, argv + 2);
	if (argc == 2 && (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help"))) {
		fputs(USAGE, stdout);
		return DONE;
	}
	fputs(USAGE, stderr);
	return INPUT;
}
