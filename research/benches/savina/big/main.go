// Savina's Big: 120 vertices send pings to each other at random and wait for each answer; the
// input is the number of pings each sends. A vertex is two goroutines: a pinger, which knows the
// channel of every ponger, and a ponger, which answers over the channel that came with the ping.
package main

import (
	"fmt"
	"sync"
)

const vertices = 120

type ping struct {
	value int32
	reply chan<- int32
}

func ponger(number int32, pings <-chan ping) {
	for {
		p := <-pings
		if p.value < 0 {
			return
		}
		p.reply <- p.value*25173 + number
	}
}

func pinger(seed, count int32, asks []chan ping, result chan<- int32) {
	pong := make(chan int32)
	var sum int32
	for ; count > 0; count-- {
		seed = (seed*25173 + 13849) & 65535
		asks[seed%vertices] <- ping{seed, pong}
		sum += <-pong
	}
	result <- sum
}

func main() {
	var count int32
	fmt.Scan(&count)
	asks := make([]chan ping, vertices)
	results := make(chan int32)
	var wg sync.WaitGroup
	for k := range asks {
		asks[k] = make(chan ping)
		wg.Go(func() { ponger(int32(k), asks[k]) })
	}
	for k := range asks {
		go pinger(int32(k), count, asks, results)
	}
	var sum int32
	for range asks {
		sum += <-results
	}
	fmt.Println(sum)
	for k := range asks {
		asks[k] <- ping{-1, nil}
	}
	wg.Wait()
}
