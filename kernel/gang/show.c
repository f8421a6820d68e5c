// SPDX-License-Identifier: GPL-2.0-only
/* Sets, their accounts, and the trace, as text and as JSON. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"

static bool is_json(int argc, char **argv, const char *what)
{
	if (argc == 1 && !strcmp(argv[0], "--json"))
		return true;
	if (argc)
		fail(INPUT, "%s takes --json, not '%s'", what, argv[0]);
	return false;
}

static const char *parent_of(const struct live *live, unsigned int set, struct set *config)
{
	struct life life;

	if (set == ROOT_SET)
		return "";
	read_set(live, set, config, &life);
	return config->name;
}

int show_sets(int argc, char **argv)
{
	bool json = is_json(argc, argv, "sets"), any = false;
	struct live live;

	open_live(&live);
	if (json)
		printf("{\"sets\": [");
	for (unsigned int i = 1; i <= live.shared->sets_used; i++) {
		struct set config, outer;
		struct life life;
		unsigned int first;
		const char *within;

		read_set(&live, i, &config, &life);
		if (life.members <= 0)
			continue;
		within = parent_of(&live, config.parent, &outer);
		first = live.position_of[config.position].first;
		if (json) {
			printf("%s{\"name\": \"%s\", \"cores\": %u, \"members\": %d, \"runnable\": %d, "
			       "\"fill\": %s, \"within\": \"%s\", \"cpus\": \"",
			       any ? ", " : "", config.name, config.cores, life.members, life.total,
			       config.fill ? "true" : "false", within);
			write_cpu_list(stdout, live.order_of, first, config.cores);
			printf("\", \"position_cpus\": %u}",
			       live.position_of[config.position].count);
		} else {
			if (!any)
				printf("%-16s %5s %7s %8s  %-7s %-16s %s\n", "set", "cores", "members",
				       "runnable", "idle", "within", "CPUs");
			printf("%-16s %5u %7d %8d  %-7s %-16s ", config.name, config.cores,
			       life.members, life.total, config.fill ? "fill" : "isolate",
			       *within ? within : "-");
			write_cpu_list(stdout, live.order_of, first, config.cores);
			printf("\n");
		}
		any = true;
	}
	if (json)
		printf("]}\n");
	else if (!any)
		printf("no sets\n");
	return DONE;
}

/* As the scheduler's map has it: a lock before the account, aligned as the account is. */
struct locked_account {
	struct bpf_spin_lock lock;
	struct account of;
};

static double share(unsigned long long part, unsigned long long whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static double us(unsigned long long ns)
{
	return (double)ns / 1000;
}

/* A bound that no more than a hundredth of the switches exceeded. */
static unsigned long long skew_p99(const struct account *account)
{
	unsigned long long above = 0;

	for (int i = SKEWS - 1; i >= 0; i--) {
		above += account->skews[i];
		if (above * 100 > account->switches)
			return 2ULL << i;
	}
	return 0;
}

static void show_account_json(const struct set *config, const struct life *life,
			      const struct account *account, bool first)
{
	printf("%s{\"name\": \"%s\", \"cores\": %u, \"members\": %d, \"together_ns\": %llu, "
	       "\"interrupted_ns\": %llu, \"switching_ns\": %llu, \"apart_ns\": %llu, "
	       "\"turns\": %llu, \"switches\": %llu, "
	       "\"skew_ns_sum\": %llu, \"skew_ns_max\": %llu, \"skew_ns_p99\": %llu, "
	       "\"switch_ns_sum\": %llu, \"switch_ns_max\": %llu, \"running_ns\": [",
	       first ? "" : ", ", config->name, config->cores, life->members, account->together,
	       account->interruptions, account->switching, account->apart, account->turns,
	       account->switches, account->skew_sum,
	       account->skew_max, skew_p99(account), account->switch_sum, account->switch_max);
	for (unsigned int k = 0; k <= config->cores && k <= TOGETHER_MAX; k++)
		printf("%s%llu", k ? ", " : "", account->at[k]);
	printf("]}");
}

static void show_account(const struct set *config, const struct account *account, bool first)
{
	unsigned long long all = account->together + account->interruptions +
				 account->switching + account->apart;
	unsigned long long switches = account->switches ? account->switches : 1;
	unsigned long long idle = 0;

	for (unsigned int k = 1; k < config->cores && k <= TOGETHER_MAX; k++)
		idle += (config->cores - k) * account->at[k];
	if (first)
		printf("%-16s %10s %9s %11s %9s %9s %9s %7s %8s %27s\n", "set", "seconds",
		       "together", "interrupted", "switching", "apart", "no member", "turns",
		       "complete", "skew mean, p99, max in us");
	printf("%-16s %10.3f %7.3f %% %9.3f %% %7.3f %% %7.3f %% %7.3f %% %7llu %8llu %8.1f %8.1f "
	       "%9.1f\n",
	       config->name, (double)all / 1e9, share(account->together, all),
	       share(account->interruptions, all), share(account->switching, all),
	       share(account->apart, all), share(idle, all * config->cores), account->turns,
	       account->switches,
	       us(account->skew_sum) / (double)switches, us(skew_p99(account)),
	       us(account->skew_max));
}

int show_stats(int argc, char **argv)
{
	bool json = is_json(argc, argv, "stats"), first = true;
	unsigned int zero = 0;
	struct counters counters;
	struct live live;

	open_live(&live);
	if (json)
		printf("{\"sets\": [");
	for (unsigned int i = 1; i <= live.shared->sets_used; i++) {
		struct locked_account account;
		struct set config;
		struct life life;

		read_set(&live, i, &config, &life);
		if (bpf_map_lookup_elem_flags(live.accounts, &i, &account, BPF_F_LOCK))
			fail(BUG, "an account cannot be read: %s", strerror(errno));
		if (json)
			show_account_json(&config, &life, &account.of, first);
		else
			show_account(&config, &account.of, first);
		first = false;
	}
	if (bpf_map_lookup_elem(live.counts, &zero, &counters))
		fail(BUG, "the counters cannot be read: %s", strerror(errno));
	if (json)
		printf("], \"notifications\": %llu, \"decisions\": %llu, \"changes\": %llu, "
		       "\"takeovers\": %llu, \"runnable_members\": %d}\n",
		       counters.notifications, counters.decisions, counters.changes,
		       counters.takeovers, live.shared->active);
	else
		printf("%snotifications %llu, decisions %llu, changes %llu, takeovers %llu\n",
		       first ? "no sets so far; " : "", counters.notifications, counters.decisions,
		       counters.changes, counters.takeovers);
	return DONE;
}

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

static int write_step(void *context, void *data, size_t size)
{
	const struct live *live = context;
	const struct step *step = data;
	struct set config = { .name = "-" };
	struct life life;

	(void)size;
	if (step->set == ROOT_SET)
		strcpy(config.name, "others");
	else if (step->set < SETS_MAX)
		read_set(live, step->set, &config, &life);
	printf("%llu %u %s %d %u\n", step->ns, step->cpu, config.name, step->task, step->wanted);
	return 0;
}

int show_trace(int argc, char **argv)
{
	double seconds = 1;
	struct timespec now, until;
	struct ring_buffer *ring;
	struct live live;
	char *rest;

	if (argc > 1)
		fail(INPUT, "trace takes a number of seconds");
	if (argc) {
		seconds = strtod(argv[0], &rest);
		if (*rest || !(seconds > 0 && seconds < 1e6))
			fail(INPUT, "trace takes a number of seconds, not '%s'", argv[0]);
	}
	open_live(&live);
	ring = ring_buffer__new(live.trace, write_step, &live, NULL);
	if (!ring)
		fail(ENVIRONMENT, "the trace cannot be read: %s", strerror(errno));
	signal(SIGINT, end);
	signal(SIGTERM, end);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)seconds;
	until.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
	live.shared->tracing = 1;
	do {
		ring_buffer__poll(ring, 50);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (!ended && (now.tv_sec < until.tv_sec ||
			    (now.tv_sec == until.tv_sec && now.tv_nsec < until.tv_nsec)));
	live.shared->tracing = 0;
	ring_buffer__consume(ring);
	ring_buffer__free(ring);
	return DONE;
}
