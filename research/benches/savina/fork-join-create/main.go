// Savina's ForkJoinCreate: as many workers as the input says are made; each gets one message,
// does a small step and ends. The forker hands each worker its job over a channel of its own,
// and the worker sends the result to a collector.
package main

import (
	"fmt"
	"sync"
)

func worker(job <-chan int32, result chan<- int32) {
	result <- <-job*25173 + 13849
}

func collector(left int32, results <-chan int32) {
	var sum int32
	for ; left > 0; left-- {
		sum += <-results
	}
	fmt.Println(sum)
}

func forker(count int32, results chan<- int32) {
	for i := int32(1); i <= count; i++ {
		job := make(chan int32)
		go worker(job, results)
		job <- i
	}
}

func main() {
	var n int32
	fmt.Scan(&n)
	results := make(chan int32)
	var wg sync.WaitGroup
	wg.Go(func() { collector(n, results) })
	wg.Go(func() { forker(n, results) })
	wg.Wait()
}
