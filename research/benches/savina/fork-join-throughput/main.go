// Savina's ForkJoinThroughput: a master sends to each of 60 workers, in turn, as many messages as
// the input says; a worker does a small step for each and reports its result in the end.
package main

import "fmt"

func worker(left int32, jobs <-chan int32, result chan<- int32) {
	var value int32
	for ; left > 0; left-- {
		value = value*25173 + <-jobs
	}
	result <- value
}

func main() {
	var rounds int32
	fmt.Scan(&rounds)
	var lines [60]chan int32
	results := make(chan int32)
	for k := range lines {
		lines[k] = make(chan int32)
		go worker(rounds, lines[k], results)
	}
	for i := int32(1); i <= rounds; i++ {
		for k := range lines {
			lines[k] <- i + int32(k)
		}
	}
	var sum int32
	for range lines {
		sum += <-results
	}
	fmt.Println(sum)
}
