// Savina's Sieve of Eratosthenes: numbers run through a chain of filters, each of which keeps 50
// primes and passes on what none of them divides. The input is the last number tried.
// A filter that is full sends its outlet to a maker, which starts the next filter at its far end.
package main

import (
	"fmt"
	"sync"
)

func isDivided(n int32, primes []int32) bool {
	for _, p := range primes {
		if n%p == 0 {
			return true
		}
	}
	return false
}

func filter(inlet <-chan int32, sum chan<- int32, grow chan<- chan int32) {
	primes := make([]int32, 0, 50)
	var outlet chan int32
	for {
		n := <-inlet
		if n == 0 {
			if outlet != nil {
				outlet <- 0
			}
			var total int32
			for _, p := range primes {
				total += p
			}
			sum <- total
			return
		}
		if isDivided(n, primes) {
			continue
		}
		if len(primes) < cap(primes) {
			primes = append(primes, n)
			continue
		}
		if outlet == nil {
			outlet = make(chan int32)
			grow <- outlet
		}
		outlet <- n
	}
}

func maker(grow chan chan int32) {
	sums := make(chan int32)
	var total int32
	for running := 0; ; {
		select {
		case outlet := <-grow:
			go filter(outlet, sums, grow)
			running++
		case s := <-sums:
			total += s
			running--
			if running == 0 {
				fmt.Println(total)
				return
			}
		}
	}
}

func main() {
	var limit int32
	fmt.Scan(&limit)
	source, grow := make(chan int32), make(chan chan int32)
	var wg sync.WaitGroup
	wg.Go(func() { maker(grow) })
	grow <- source
	for n := int32(2); n <= limit; n++ {
		source <- n
	}
	source <- 0
	wg.Wait()
}
