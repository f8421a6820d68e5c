/* Pairs of threads; one hands the number 0 to the other over and over. */
#include "common.h"

static void send(int number, void *with)
{
    (void)number;
    for (int i = 0; i < passes; i++) give(with, 0);
}

static void receive(int number, void *with)
{
    int sum = 0;
    for (int i = 0; i < passes; i++) {
        sum += take(with);
        if (number == 1) progress("sender-receiver", i + 1, passes);
    }
    if (sum) fail("receive what was sent");
}

int main(int count, char **words)
{
    read_arguments(count, words);
    struct slot *slots = calloc(groups, sizeof *slots);
    if (!slots) fail("allocate");
    for (int i = 0; i < groups; i++) slot_init(&slots[i]);
    for (int i = 0; i < groups; i++) make(send, i + 1, &slots[i]);
    for (int i = 0; i < groups; i++) make(receive, i + 1, &slots[i]);
    join_all();
}
