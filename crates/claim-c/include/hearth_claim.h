/* Claims on cores, and the CPUs that a program can really have. See docs/claims.md and
 * docs/cores.md.
 *
 * Link with -lhearth_claim. A program that links it also sees its own CPUs as the machine's:
 * sysconf(_SC_NPROCESSORS_ONLN), get_nprocs() and OpenMP count those that the thread may use. That
 * number changes, and is no bound on CPUs' numbers; _SC_NPROCESSORS_CONF stays the machine's. */
#ifndef HEARTH_CLAIM_H
#define HEARTH_CLAIM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A process's claim on cores. Not to be used by two threads at the same time. The child of a fork
 * has none: calls with its parent's fail there, but for hearth_claim_end, which frees memory. */
typedef struct hearth_claim hearth_claim;

/* A wish. All parts hold together. Zero it, then set what matters. */
struct hearth_claim_wish {
    unsigned least;         /* fewest cores; 0 counts as 1 */
    unsigned most;          /* most cores; less than `least` counts as `least` */
    int scatter;            /* not 0: far from each other; otherwise near */
    const unsigned *nodes;  /* nodes that the cores may be of; none: all */
    size_t node_count;
    unsigned cache_level;   /* not 0: all share a cache of this level … */
    unsigned cache_cpu;     /* … with this CPU */
    int has_memory;         /* not 0: as near as possible … */
    unsigned memory_node;   /* … to this node's memory */
};

/* Begins a claim without cores. The name is for people. NULL if the registry cannot be used, or if
 * the process has a claim already: it has one at a time, which libraries share with the program. */
hearth_claim *hearth_claim_begin(const char *name);

/* Asks for cores in addition to those that the claim has, up to the most, waiting for the least for
 * up to so many milliseconds. 0: the claim has the least at least. A positive number: so many are
 * missing to the least, and the claim is as it was. -1: the wish contradicts itself, or the
 * registry cannot be used. */
int hearth_claim_invade(hearth_claim *claim, const struct hearth_claim_wish *wish,
                        unsigned milliseconds);

/* Gives cores back until so many are left. 0, or -1 if the registry cannot be used. */
int hearth_claim_retreat(hearth_claim *claim, unsigned left);

/* Writes the numbers of the claim's CPUs, ascending, as far as there is room. Their count. */
size_t hearth_claim_cpus(hearth_claim *claim, int *cpus, size_t room);

/* Lets all threads of the process run on the claim's CPUs only. Number of threads moved. */
size_t hearth_claim_pin_threads(hearth_claim *claim);

/* Has a thread look after the claim from now on: it takes cores that become free, up to the most of
 * the last wish, and gives back those that others ask for, down to the least. `resize` is called
 * with the claim's CPUs: at once, after cores were got, and before cores are given back; by its
 * return the program must have left the others. It must not call functions of the claim, nor end by
 * an exception. NULL: the threads of the process are moved; not those of programs that it started,
 * which may have claims of their own. 0, or -1: the claim has lost its cores, and is only to be
 * ended. -1 also if somebody looks after it already, and nothing changes. */
int hearth_claim_tend(hearth_claim *claim,
                      void (*resize)(const int *cpus, size_t count, void *context), void *context);

/* Ends the claim; its cores are free. NULL is allowed. */
void hearth_claim_end(hearth_claim *claim);

/* Why the calling thread's last call failed. Valid until its next failure. */
const char *hearth_claim_error(void);

/* CPUs that a program can have. */
struct hearth_cores {
    unsigned allowed;   /* on which it may run */
    unsigned threads;   /* most threads that harm nobody else */
    double obtainable;  /* CPU time that a thread on each allowed CPU gets together, in CPUs */
    double idle;        /* CPU time that nobody else wants, in CPUs */
};

/* Looks for so many milliseconds at who uses the CPUs; 200 are good. 0: reads limits only. */
struct hearth_cores hearth_cores(unsigned milliseconds);

#ifdef __cplusplus
}
#endif

#endif
