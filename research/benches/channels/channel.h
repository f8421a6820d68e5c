/* A rendezvous channel as a C programmer writes it with POSIX threads: unbuffered, the sender
 * continues when its value has been taken. Any number of senders, one receiver. */
#ifndef CHANNEL_H
#define CHANNEL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t filled, taken;
    bool full;
    int32_t value;
    uint32_t sent, received;
} channel;

#define CHANNEL_INITIALIZER \
    { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, \
      false, 0, 0, 0 }

static inline void channel_send(channel *c, int32_t value)
{
    pthread_mutex_lock(&c->lock);
    while (c->full)
        pthread_cond_wait(&c->taken, &c->lock);
    c->value = value;
    c->full = true;
    uint32_t mine = ++c->sent;
    pthread_cond_signal(&c->filled);
    while ((int32_t)(c->received - mine) < 0)
        pthread_cond_wait(&c->taken, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

static inline int32_t channel_receive(channel *c)
{
    pthread_mutex_lock(&c->lock);
    while (!c->full)
        pthread_cond_wait(&c->filled, &c->lock);
    int32_t value = c->value;
    c->full = false;
    c->received++;
    pthread_cond_broadcast(&c->taken);
    pthread_mutex_unlock(&c->lock);
    return value;
}

#endif
