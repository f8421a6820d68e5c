// Savina's ConcurrentDictionary: 20 workers read and write the entries of one dictionary, one
// write in ten operations; the input is the number of operations of each worker.
// A request carries the channel for its answer, and the dictionary selects between the two kinds.
// Keys belong to workers, so that the answers do not depend on the order of requests.
package main

import "fmt"

type write struct {
	key, value int32
	reply      chan<- int32
}

type read struct {
	key   int32
	reply chan<- int32
}

func dictionary(writes <-chan write, reads <-chan read) {
	var values [2000]int32
	for {
		select {
		case w := <-writes:
			w.reply <- values[w.key]
			values[w.key] = w.value
		case r := <-reads:
			if r.key < 0 {
				var total int32
				for _, v := range values {
					total = total*31 + v
				}
				r.reply <- total
				return
			}
			r.reply <- values[r.key]
		}
	}
}

func worker(number, count int32, writes chan<- write, reads chan<- read, result chan<- int32) {
	seed := number
	random := func(below int32) int32 {
		seed = (seed*25173 + 13849) & 65535
		return seed / 8 % below
	}
	answer := make(chan int32)
	var sum int32
	for i := int32(1); i <= count; i++ {
		key := random(100)*20 + number
		if random(100) < 10 {
			writes <- write{key, i, answer}
		} else {
			reads <- read{key, answer}
		}
		sum += <-answer
	}
	result <- sum
}

func main() {
	var count int32
	fmt.Scan(&count)
	writes, reads := make(chan write), make(chan read)
	go dictionary(writes, reads)
	results := make(chan int32)
	for k := range int32(20) {
		go worker(k, count, writes, reads, results)
	}
	var sum int32
	for range 20 {
		sum += <-results
	}
	rest := make(chan int32)
	reads <- read{-1, rest}
	fmt.Println(sum, <-rest)
}
