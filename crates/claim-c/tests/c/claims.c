/* Claims and cores from C. */
#include "hearth_claim.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t told = 0;

static void resize(const int *cpus, size_t count, void *context) {
    told = count;
    if (count > 0)
        *(int *)context = cpus[0];
}

int main(void) {
    struct hearth_cores cores = hearth_cores(0);
    if (cores.threads < 1 || cores.threads > cores.allowed || cores.obtainable > cores.allowed)
        return 1;
    hearth_claim *claim = hearth_claim_begin("from C");
    if (claim == NULL) {
        printf("%s\n", hearth_claim_error());
        return 2;
    }
    struct hearth_claim_wish wish = {.least = 1, .most = 1};
    int cpus[64];
    if (hearth_claim_invade(claim, &wish, 0) != 0 || hearth_claim_cpus(claim, cpus, 64) < 1)
        return 3;
    if (hearth_claim_pin_threads(claim) != 1)
        return 4;
    if (hearth_claim_begin("a second one") != NULL)
        return 10;
    printf("%s\n", hearth_claim_error());
    struct hearth_claim_wish unfit = {.least = 1, .most = 1, .node_count = 1};
    if (hearth_claim_invade(claim, &unfit, 0) != -1)
        return 11;
    unfit = (struct hearth_claim_wish){.least = 1, .most = 1, .cache_level = 256};
    if (hearth_claim_invade(claim, &unfit, 0) != -1)
        return 12;
    const unsigned nowhere[] = {4095};
    struct hearth_claim_wish more = {.least = 2, .most = 9, .nodes = nowhere, .node_count = 1};
    if (hearth_claim_invade(claim, &more, 10) != 1)
        return 5;
    int first = -1;
    if (hearth_claim_tend(claim, resize, &first) != 0 || first != cpus[0] || told < 1)
        return 6;
    if (hearth_claim_tend(claim, NULL, NULL) != -1)
        return 7;
    printf("%s\n", hearth_claim_error());
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        /* Neither the claim nor the thread that looks after it is the child's. */
        if (hearth_claim_invade(claim, &wish, 0) != -1 || hearth_claim_cpus(claim, cpus, 64) != 0)
            _exit(1);
        hearth_claim_end(claim);
        claim = hearth_claim_begin("of the child");
        if (claim == NULL)
            _exit(2);
        hearth_claim_end(claim);
        _exit(0);
    }
    int ending = 0;
    if (waitpid(child, &ending, 0) != child || ending != 0)
        return 13;
    if (hearth_claim_cpus(claim, NULL, 0) < 1)
        return 14;
    if (hearth_claim_retreat(claim, 0) != 0 || hearth_claim_cpus(claim, NULL, 0) != 0)
        return 8;
    hearth_claim_end(claim);
    hearth_claim_end(NULL);
    if (hearth_claim_invade(NULL, &wish, 0) != -1)
        return 9;
    return 0;
}
