// SPDX-License-Identifier: GPL-2.0-only
/* The hierarchy of CPUs, from sysfs. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

/* A CPU by the numbers of the parts that it lies in, outermost first. Parts within different outer
 * parts may have equal numbers. */
enum { PARTS = 4 };
struct cpu {
	long parts[PARTS]; /* package, node, last cache, core */
	unsigned int number;
};

static long read_number(const char *path, long otherwise)
{
	FILE *file = fopen(path, "re");
	long value = otherwise;

	if (file) {
		if (fscanf(file, "%ld", &value) != 1)
			value = otherwise;
		fclose(file);
	}
	return value;
}

static bool read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	bool got = file && fgets(line, (int)size, file);

	if (file)
		fclose(file);
	if (got)
		line[strcspn(line, "\n")] = 0;
	return got;
}

void read_cpu_list(const char *text, bool cpus[CPUS_MAX], const char *what)
{
	const char *at = text;

	memset(cpus, 0, CPUS_MAX * sizeof(*cpus));
	while (*at) {
		char *end;
		unsigned long first = strtoul(at, &end, 10), last = first;

		if (end == at)
			break;
		if (*end == '-') {
			at = end + 1;
			last = strtoul(at, &end, 10);
			if (end == at)
				break;
		}
		if (first > last || last >= CPUS_MAX)
			fail(INPUT, "%s: '%s' is not within the CPUs 0-%d", what, text, CPUS_MAX - 1);
		while (first <= last)
			cpus[first++] = true;
		at = end;
		if (*at == ',')
			at++;
		else if (*at)
			break;
	}
	if (*at || at == text)
		fail(INPUT, "%s: '%s' is not a list of CPUs, such as 0-2,5", what, text);
}

static int by_number(const void *a, const void *b)
{
	unsigned int x = *(const unsigned int *)a, y = *(const unsigned int *)b;

	return x < y ? -1 : x > y;
}

void write_cpu_list(FILE *out, const unsigned int *order, unsigned int first, unsigned int count)
{
	unsigned int sorted[CPUS_MAX], i, end;
	const char *comma = "";

	memcpy(sorted, order + first, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), by_number);
	for (i = 0; i < count; i = end) {
		for (end = i + 1; end < count && sorted[end] == sorted[end - 1] + 1;)
			end++;
		fprintf(out, "%s%u", comma, sorted[i]);
		if (end - i > 1)
			fprintf(out, "-%u", sorted[end - 1]);
		comma = ",";
	}
}

/* The first CPU that shares the largest cache that several CPUs share, as that cache's number. */
static long cache_of(unsigned int cpu)
{
	long found = cpu;

	for (int index = 0; index < 8; index++) {
		char path[128], list[1024];
		bool sharers[CPUS_MAX];

		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%u/cache/index%d/shared_cpu_list", cpu, index);
		if (!read_line(path, list, sizeof(list)) || !*list)
			continue;
		read_cpu_list(list, sharers, path);
		for (long first = 0; first < CPUS_MAX; first++)
			if (sharers[first]) {
				if (first < found)
					found = first;
				break;
			}
	}
	return found;
}

static long node_of(unsigned int cpu)
{
	char path[64];
	long node = 0;
	DIR *folder;
	struct dirent *entry;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u", cpu);
	folder = opendir(path);
	if (!folder)
		return 0;
	while ((entry = readdir(folder)))
		if (sscanf(entry->d_name, "node%ld", &node) == 1)
			break;
	closedir(folder);
	return node;
}

static int by_parts(const void *a, const void *b)
{
	const struct cpu *x = a, *y = b;

	for (int i = 0; i < PARTS; i++)
		if (x->parts[i] != y->parts[i])
			return x->parts[i] < y->parts[i] ? -1 : 1;
	return by_number(&x->number, &y->number);
}

/* Where the part of `cpus[first]` at a level ends. Level 0 is the machine. */
static unsigned int end_of(const struct cpu *cpus, unsigned int first, unsigned int end, int level)
{
	unsigned int at = first + 1;

	if (level > PARTS)
		return at;
	while (at < end && !memcmp(cpus[at].parts, cpus[first].parts,
				   (size_t)level * sizeof(*cpus[first].parts)))
		at++;
	return at;
}

void read_topology(struct topology *topology)
{
	struct cpu cpus[CPUS_MAX];
	int split_at[POSITIONS_MAX]; /* the level below which a position's children are looked for */
	bool online[CPUS_MAX];
	char list[4096];
	unsigned int done;

	memset(topology, 0, sizeof(*topology));
	if (!read_line("/sys/devices/system/cpu/online", list, sizeof(list)))
		fail(ENVIRONMENT, "/sys/devices/system/cpu/online cannot be read; is sysfs mounted?");
	read_cpu_list(list, online, "/sys/devices/system/cpu/online");
	for (unsigned int i = 0; i < CPUS_MAX; i++) {
		struct cpu *cpu = &cpus[topology->cpus];
		char path[128];

		if (!online[i])
			continue;
		cpu->number = i;
		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%u/topology/physical_package_id", i);
		cpu->parts[0] = read_number(path, 0);
		cpu->parts[1] = node_of(i);
		cpu->parts[2] = cache_of(i);
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/core_id", i);
		cpu->parts[3] = read_number(path, i);
		topology->cpus++;
	}
	qsort(cpus, topology->cpus, sizeof(*cpus), by_parts);
	for (unsigned int i = 0; i < topology->cpus; i++)
		topology->order[i] = cpus[i].number;

	/* Breadth first, so that children are neighbours. A level that splits nothing is left out; one
	 * that splits into four parts or more gets halves above it, so that sets of half the size can
	 * run side by side. */
	topology->positions[0] = (struct position){ .count = topology->cpus };
	topology->positions_used = 1;
	split_at[0] = 1;
	for (done = 0; done < topology->positions_used; done++) {
		struct position *at = &topology->positions[done];
		unsigned int end = at->first + at->count;
		int level = split_at[done];

		if (at->count == 1)
			continue;
		while (end_of(cpus, at->first, end, level) == end)
			level++;
		unsigned int parts = 0, halves;

		for (unsigned int first = at->first; first < end; parts++)
			first = end_of(cpus, first, end, level);
		/* Beside those levels there must be room for each kind of part. */
		halves = parts >= 4 && at->level + PARTS + 2 < LEVELS_MAX;
		at->first_child = topology->positions_used;
		for (unsigned int first = at->first; first < end;) {
			unsigned int next = end_of(cpus, first, end, level);
			unsigned int more = !halves ? 0 : first == at->first ? parts / 2 - 1 : parts;

			for (; more && next < end; more--)
				next = end_of(cpus, next, end, level);
			struct position *child = &topology->positions[topology->positions_used];

			if (topology->positions_used == POSITIONS_MAX)
				fail(ENVIRONMENT, "this machine has more than %d parts", POSITIONS_MAX);
			*child = (struct position){
				.first = first,
				.count = next - first,
				.parent = done,
				.level = at->level + 1,
			};
			split_at[topology->positions_used++] = halves ? level : level + 1;
			at->children++;
			first = next;
		}
	}
	for (unsigned int i = 0; i < topology->positions_used; i++) {
		const struct position *at = &topology->positions[i];

		for (unsigned int k = 0; k < at->count; k++) {
			struct place *place = &topology->places[topology->order[at->first + k]];

			place->index = at->first + k;
			place->path[place->levels++] = i;
		}
	}
}
