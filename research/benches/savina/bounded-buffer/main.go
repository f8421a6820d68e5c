// Savina's ProducerConsumer: 40 producers put items into a buffer of 50 places, 40 consumers take
// them out; the input is the number of items of each producer. The buffer is a goroutine that
// takes items while it has room and wishes while it has items. A consumer sends a wish before it
// receives.
package main

import "fmt"

func producer(seed, count int32, put chan<- int32) {
	for ; count > 0; count-- {
		seed = (seed*25173 + 13849) & 65535
		put <- seed
	}
}

func consumer(wish chan<- bool, item <-chan int32, result chan<- int32) {
	var sum int32
	for {
		wish <- true
		n := <-item
		if n < 0 {
			result <- sum
			return
		}
		sum += n * n
	}
}

func buffer(left, consumers int32, put <-chan int32, wishes <-chan bool, items chan<- int32) {
	var places [50]int32
	first, used := 0, 0
	for consumers > 0 {
		var room <-chan int32
		if used < len(places) {
			room = put
		}
		var ready <-chan bool
		if used > 0 || left == 0 {
			ready = wishes
		}
		select {
		case item := <-room:
			places[(first+used)%len(places)] = item
			used++
			left--
		case <-ready:
			if used > 0 {
				items <- places[first]
				first = (first + 1) % len(places)
				used--
			} else {
				items <- -1 // the end
				consumers--
			}
		}
	}
}

func main() {
	var count int32
	fmt.Scan(&count)
	put, wishes, items := make(chan int32), make(chan bool), make(chan int32)
	results := make(chan int32)
	go buffer(40*count, 40, put, wishes, items)
	for k := int32(1); k <= 40; k++ {
		go producer(k, count, put)
		go consumer(wishes, items, results)
	}
	var sum int32
	for range 40 {
		sum += <-results
	}
	fmt.Println(sum)
}
