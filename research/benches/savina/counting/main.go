// Savina's Counting: a producer sends as many increments as the input says, then asks for the
// total and prints it. The counter selects between increments and the question.
package main

import (
	"fmt"
	"sync"
)

func producer(count int32, increment chan<- int32, retrieve chan<- bool, total <-chan int32) {
	for i := int32(1); i <= count; i++ {
		increment <- i
	}
	retrieve <- true
	fmt.Println(<-total)
}

func counter(increment <-chan int32, retrieve <-chan bool, total chan<- int32) {
	var sum int32
	for {
		select {
		case by := <-increment:
			sum += by
		case <-retrieve:
			total <- sum
			return
		}
	}
}

func main() {
	var n int32
	fmt.Scan(&n)
	increment, retrieve, total := make(chan int32), make(chan bool), make(chan int32)
	var wg sync.WaitGroup
	wg.Go(func() { producer(n, increment, retrieve, total) })
	wg.Go(func() { counter(increment, retrieve, total) })
	wg.Wait()
}
