// SPDX-License-Identifier: GPL-2.0-only
/* Loads the scheduler, stays, and takes it away again. */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include "command.h"

/* From linux/magic.h. */
#define BPF_FS_MAGIC_NUMBER 0xcafe4a11
/* From the kernel's sched_ext: CPUs came or went. */
#define REASON_HOTPLUG (1LL << 32)
/* Exit kinds below this are somebody's wish, those from it on errors. */
#define EXIT_ERROR 1024

/* The scheduler, compiled. */
extern const char scheduler[], scheduler_end[];
__asm__(".section .rodata\n"
	".balign 8\n"
	".global scheduler\n"
	".global scheduler_end\n"
	"scheduler:\n"
	".incbin \"" OBJECT "\"\n"
	"scheduler_end:\n"
	".previous\n");

static bool verbose;

static int say(enum libbpf_print_level level, const char *format, va_list arguments)
{
	/* Of a program that the kernel refuses libbpf says thousands of lines. */
	if (!verbose && level != LIBBPF_WARN)
		return 0;
	return vfprintf(stderr, format, arguments);
}

void need_sched_ext(void)
{
	if (access("/sys/kernel/sched_ext", F_OK))
		fail(ENVIRONMENT,
		     "this kernel has no sched_ext (CONFIG_SCHED_CLASS_EXT); boot one of Linux 6.13 "
		     "or newer that has it, such as Debian's from trixie-backports, or use `hearth "
		     "gang` without --kernel");
}

static void mount_bpf(void)
{
	struct statfs is;

	if (!statfs("/sys/fs/bpf", &is) && is.f_type == BPF_FS_MAGIC_NUMBER)
		return;
	if (mount("bpf", "/sys/fs/bpf", "bpf", 0, "mode=700"))
		fail(ENVIRONMENT, "/sys/fs/bpf cannot be mounted: %s", strerror(errno));
}

/* Compares our constants with those of this kernel. */
static void check_constants(void)
{
	static const struct {
		const char *name;
		unsigned long long value;
	} ours[] = {
		{ "SCX_DSQ_LOCAL", 0x8000000000000002ULL }, { "SCX_ENQ_PREEMPT", 1ULL << 32 },
		{ "SCX_KICK_IDLE", 1 },	 { "SCX_KICK_PREEMPT", 2 },
		{ "SCX_TASK_QUEUED", 1 },	 { "SCX_OPS_ENQ_LAST", 2 },
		{ "SCX_OPS_ENQ_EXITING", 4 },
	};
	struct btf *btf = btf__load_vmlinux_btf();
	unsigned int found = 0, all = sizeof(ours) / sizeof(*ours);

	if (!btf)
		fail(ENVIRONMENT, "this kernel has no type information (CONFIG_DEBUG_INFO_BTF)");
	for (unsigned int id = 1; id < btf__type_cnt(btf); id++) {
		const struct btf_type *type = btf__type_by_id(btf, id);
		bool wide = btf_is_enum64(type);

		if (!wide && !btf_is_enum(type))
			continue;
		for (int i = 0; i < btf_vlen(type); i++) {
			unsigned int name_at = wide ? btf_enum64(type)[i].name_off :
						      btf_enum(type)[i].name_off;
			unsigned long long value =
				wide ? btf_enum64_value(&btf_enum64(type)[i]) :
				       (unsigned int)btf_enum(type)[i].val;
			const char *name = btf__name_by_offset(btf, name_at);

			if (!name || strncmp(name, "SCX_", 4))
				continue;
			for (unsigned int k = 0; k < all; k++)
				if (!strcmp(name, ours[k].name) && value == ours[k].value)
					found |= 1u << k;
		}
	}
	btf__free(btf);
	for (unsigned int k = 0; k < all; k++)
		if (!(found & 1u << k))
			fail(ENVIRONMENT,
			     "this kernel's sched_ext is another than this scheduler was written for "
			     "(%s is missing or differs); Linux 6.13 to 7.3 are known",
			     ours[k].name);
}

static struct bpf_map *map(struct bpf_object *object, const char *name)
{
	struct bpf_map *found = bpf_object__find_map_by_name(object, name);

	if (!found)
		fail(BUG, "the scheduler has no map %s", name);
	return found;
}

/* A variable of the scheduler's read-only data, before it is loaded. */
static void *constant(struct bpf_object *object, const char *name)
{
	struct btf *btf = bpf_object__btf(object);
	int section = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC);
	const struct btf_type *type = btf__type_by_id(btf, section > 0 ? (unsigned int)section : 0);
	size_t size;
	char *data = bpf_map__initial_value(map(object, ".rodata"), &size);

	for (int i = 0; section > 0 && i < btf_vlen(type); i++) {
		const struct btf_var_secinfo *at = &btf_var_secinfos(type)[i];
		const struct btf_type *variable = btf__type_by_id(btf, at->type);

		if (!strcmp(btf__name_by_offset(btf, variable->name_off), name))
			return data + at->offset;
	}
	fail(BUG, "the scheduler has no constant %s", name);
}

static void fill(struct bpf_object *object, const char *name, unsigned int count, const void *values,
		 size_t size)
{
	int maps = bpf_map__fd(map(object, name));

	for (unsigned int i = 0; i < count; i++)
		if (bpf_map_update_elem(maps, &i, (const char *)values + i * size, BPF_ANY))
			fail(BUG, "the map %s does not take entry %u: %s", name, i, strerror(errno));
}

static void pin(struct bpf_object *object, const char *name, const char *as)
{
	char path[128];

	snprintf(path, sizeof(path), PINS "/%s", as);
	if (bpf_map__pin(map(object, name), path))
		fail(ENVIRONMENT, "%s cannot be made: %s", path, strerror(errno));
}

static const char *const PINNED[] = { "sets",	   "lives", "accounts", "counts",
				      "positions", "order", "seats",	"trace" };

static void pin_all(struct bpf_object *object)
{
	struct bpf_program *join = bpf_object__find_program_by_name(object, "join");

	if (mkdir(PINS, 0700) && errno != EEXIST)
		fail(ENVIRONMENT, PINS " cannot be made: %s", strerror(errno));
	for (unsigned int i = 0; i < sizeof(PINNED) / sizeof(*PINNED); i++)
		pin(object, PINNED[i], PINNED[i]);
	pin(object, ".data.shared", "shared");
	if (!join || bpf_program__pin(join, PINS "/join"))
		fail(ENVIRONMENT, PINS "/join cannot be made: %s", strerror(errno));
}

static void unpin_all(void)
{
	char path[128];

	for (unsigned int i = 0; i < sizeof(PINNED) / sizeof(*PINNED); i++) {
		snprintf(path, sizeof(path), PINS "/%s", PINNED[i]);
		unlink(path);
	}
	unlink(PINS "/shared");
	unlink(PINS "/join");
	rmdir(PINS);
}

/* Whether another scheduler of this or of any kind runs. */
static void need_nobody(void)
{
	FILE *file = fopen("/sys/kernel/sched_ext/state", "re");
	char state[32] = "";

	if (file) {
		if (fscanf(file, "%31s", state) != 1)
			*state = 0;
		fclose(file);
	}
	if (!strcmp(state, "enabled") || !strcmp(state, "enabling"))
		fail(ENVIRONMENT, "a scheduler of sched_ext runs already (see "
				  "/sys/kernel/sched_ext/root/ops); end it first");
}

int run(int argc, char **argv)
{
	unsigned long turn_ms = 10;
	struct topology *topology = calloc(1, sizeof(*topology));
	struct bpf_object *object;
	struct bpf_link *link;
	struct shared *shared;
	unsigned int leads = 0;
	sigset_t signals;
	size_t size;

	for (int i = 0; i < argc; i++) {
		char *end;

		if (!strcmp(argv[i], "--verbose")) {
			verbose = true;
		} else if (!strcmp(argv[i], "--turn") && i + 1 < argc) {
			turn_ms = strtoul(argv[++i], &end, 10);
			if (*end || turn_ms < 1 || turn_ms > 1000)
				fail(INPUT, "--turn takes milliseconds from 1 to 1000, not '%s'", argv[i]);
		} else {
			fail(INPUT, "run takes --turn MS and --verbose, not '%s'", argv[i]);
		}
	}
	need_sched_ext();
	if (geteuid() != 0)
		fail(ENVIRONMENT, "loading a scheduler takes root; try: sudo " PROGRAM " run");
	need_nobody();
	check_constants();
	mount_bpf();
	/* Left by a run that was killed. */
	unpin_all();
	if (!topology)
		fail(ENVIRONMENT, "there is no memory");
	read_topology(topology);

	libbpf_set_print(say);
	object = bpf_object__open_mem(scheduler, (size_t)(scheduler_end - scheduler), NULL);
	if (!object)
		fail(BUG, "the scheduler's object cannot be read: %s", strerror(errno));
	*(unsigned int *)constant(object, "cpus_possible") = topology->cpus;
	*(unsigned long long *)constant(object, "turn_ns") = turn_ms * 1000000ULL;
	if (bpf_object__load(object))
		fail(ENVIRONMENT,
		     "this kernel does not take the scheduler: %s; with --verbose it says why",
		     strerror(errno));
	fill(object, "order", topology->cpus, topology->order, sizeof(*topology->order));
	fill(object, "positions", topology->positions_used, topology->positions,
	     sizeof(*topology->positions));
	fill(object, "places", CPUS_MAX, topology->places, sizeof(*topology->places));
	for (unsigned int i = 0; i < topology->positions_used; i++) {
		struct lead lead = { .leader = topology->order[topology->positions[i].first] };

		if (bpf_map_update_elem(bpf_map__fd(map(object, "leads")), &i, &lead, BPF_ANY))
			leads++;
	}
	for (unsigned int i = 0; i < CPUS_MAX; i++) {
		/* As `struct seat`: no CPU is seen to do anything. */
		unsigned long long seat[3] = { (unsigned long long)NOBODY << 32 };

		if (bpf_map_update_elem(bpf_map__fd(map(object, "seats")), &i, seat, BPF_ANY))
			leads++;
	}
	if (leads)
		fail(BUG, "%u entries of maps cannot be written: %s", leads, strerror(errno));
	shared = bpf_map__initial_value(map(object, ".data.shared"), &size);

	/* Signals wait from here on, so that none ends us between loading and taking away. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	link = bpf_map__attach_struct_ops(map(object, "gang"));
	if (!link)
		fail(ENVIRONMENT, "the kernel does not start the scheduler: %s", strerror(errno));
	pin_all(object);
	printf("%s: %u CPUs, turns of %lu ms; Ctrl-C ends it\n", PROGRAM, topology->cpus, turn_ms);
	fflush(stdout);
	while (!shared->exit_kind) {
		const struct timespec pause = { .tv_nsec = 200000000 };

		if (sigtimedwait(&signals, NULL, &pause) > 0)
			break;
	}
	unpin_all();
	bpf_link__destroy(link);
	if (shared->exit_kind >= EXIT_ERROR)
		fail(BUG, "the kernel ended the scheduler, and its own goes on: %s",
		     shared->exit_message);
	if (shared->exit_code & REASON_HOTPLUG)
		fail(ENVIRONMENT, "a CPU came or went, and the kernel's own scheduler goes on; start "
				  "this again");
	bpf_object__close(object);
	return DONE;
}
