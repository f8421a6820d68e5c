/* Makes threads one after another; each sends its number and ends. How many is the first line of
 * input, in hundreds. */
#include "channel.h"
#include <stdio.h>

static channel numbers = CHANNEL_INITIALIZER;

static void *one(void *number)
{
    channel_send(&numbers, (int32_t)(intptr_t)number);
    return NULL;
}

int main(void)
{
    int count;
    if (scanf("%d", &count) != 1)
        return 2;
    count *= 100;
    int32_t sum = 0;
    for (int i = 1; i <= count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, one, (void *)(intptr_t)i) != 0)
            return 3;
        pthread_detach(thread);
        sum += channel_receive(&numbers);
    }
    printf("%d\n", sum);
    return 0;
}
