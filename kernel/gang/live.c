// SPDX-License-Identifier: GPL-2.0-only
/* The maps of the scheduler that runs. */
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "command.h"

static int pinned(const char *name)
{
	char path[128];
	int file;

	snprintf(path, sizeof(path), PINS "/%s", name);
	file = bpf_obj_get(path);
	if (file < 0 && (errno == EACCES || errno == EPERM))
		fail(ENVIRONMENT, "this takes root; try it with sudo");
	if (file < 0)
		fail(ENVIRONMENT, "the scheduler does not run; start it: sudo " PROGRAM " run");
	return file;
}

void open_live(struct live *live)
{
	need_sched_ext();
	memset(live, 0, sizeof(*live));
	live->shared = mmap(NULL, sizeof(*live->shared), PROT_READ | PROT_WRITE, MAP_SHARED,
			    pinned("shared"), 0);
	if (live->shared == MAP_FAILED)
		fail(ENVIRONMENT, PINS "/shared cannot be mapped: %s", strerror(errno));
	if (live->shared->version != VERSION)
		fail(ENVIRONMENT, "the scheduler that runs is of another version of this program");
	live->sets = pinned("sets");
	live->lives = pinned("lives");
	live->accounts = pinned("accounts");
	live->counts = pinned("counts");
	live->positions = pinned("positions");
	live->order = pinned("order");
	live->seats = pinned("seats");
	live->trace = pinned("trace");
	live->join = pinned("join");
	for (unsigned int i = 0; i < CPUS_MAX; i++)
		bpf_map_lookup_elem(live->order, &i, &live->order_of[i]);
	for (unsigned int i = 0; i < POSITIONS_MAX; i++) {
		bpf_map_lookup_elem(live->positions, &i, &live->position_of[i]);
		if (!live->position_of[i].count)
			break;
		live->positions_used = i + 1;
	}
}

void read_set(const struct live *live, unsigned int set, struct set *config, struct life *life)
{
	if (bpf_map_lookup_elem(live->sets, &set, config) ||
	    bpf_map_lookup_elem(live->lives, &set, life))
		fail(BUG, "set %u cannot be read: %s", set, strerror(errno));
}

unsigned int find_set(const struct live *live, const char *name)
{
	struct set config;
	struct life life;

	for (unsigned int i = 1; i <= live->shared->sets_used; i++) {
		read_set(live, i, &config, &life);
		if (life.members > 0 && !strcmp(config.name, name))
			return i;
	}
	return ROOT_SET;
}
