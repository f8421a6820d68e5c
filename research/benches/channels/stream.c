/* One thread sends integers, another adds them up. The number of integers is the first line of
 * input, in thousands. */
#include "channel.h"
#include <stdio.h>

static channel next = CHANNEL_INITIALIZER;
static int count;

static void *source(void *unused)
{
    for (int i = 1; i <= count; i++)
        channel_send(&next, i);
    return unused;
}

int main(void)
{
    if (scanf("%d", &count) != 1)
        return 2;
    count *= 1000;
    pthread_t other;
    if (pthread_create(&other, NULL, source, NULL) != 0)
        return 3;
    uint32_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += (uint32_t)channel_receive(&next);
    pthread_join(other, NULL);
    printf("%d\n", (int32_t)sum);
    return 0;
}
