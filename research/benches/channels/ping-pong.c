/* Two threads send one integer to and fro. The number of round trips is the first line of input,
 * in thousands. */
#include "channel.h"
#include <stdio.h>

static channel ball = CHANNEL_INITIALIZER, back = CHANNEL_INITIALIZER;
static int rounds;

static void *pong(void *unused)
{
    for (int i = 0; i < rounds; i++)
        channel_send(&back, channel_receive(&ball) + 1);
    return unused;
}

int main(void)
{
    if (scanf("%d", &rounds) != 1)
        return 2;
    rounds *= 1000;
    pthread_t other;
    if (pthread_create(&other, NULL, pong, NULL) != 0)
        return 3;
    int32_t value = 0;
    for (int i = 0; i < rounds; i++) {
        channel_send(&ball, value);
        value = channel_receive(&back);
    }
    pthread_join(other, NULL);
    printf("%d\n", value);
    return 0;
}
