// Savina's RadixSort: numbers of 16 bits run through a chain of 16 sorters, one for each bit, the
// lowest first. A sorter passes on at once the numbers without its bit, and the others after the
// last number of the batch. The input is the number of batches of 1000 numbers each. A source
// feeds the chain; a sink checks the order and prints a checksum.
package main

import "fmt"

const batch = 1000

func source(batches int32, numbers chan<- int32) {
	seed := int32(1)
	for i := int32(1); i <= batches*batch; i++ {
		seed = (seed*25173 + 13849 + i) & 65535
		numbers <- seed
	}
}

func sorter(bit, batches int32, inlet <-chan int32, outlet chan<- int32) {
	var kept [batch]int32
	for ; batches > 0; batches-- {
		used := 0
		for range batch {
			n := <-inlet
			if n&bit == 0 {
				outlet <- n
			} else {
				kept[used] = n
				used++
			}
		}
		for _, n := range kept[:used] {
			outlet <- n
		}
	}
}

func sink(batches int32, numbers <-chan int32) {
	var sum int32
	for ; batches > 0; batches-- {
		last := int32(0)
		for range batch {
			n := <-numbers
			if n < last {
				fmt.Println("not sorted")
			}
			sum = sum*31 + n
			last = n
		}
	}
	fmt.Println(sum)
}

func main() {
	var batches int32
	fmt.Scan(&batches)
	outlet := make(chan int32)
	go source(batches, outlet)
	for k := range 16 {
		inlet := outlet
		outlet = make(chan int32)
		go sorter(1<<k, batches, inlet, outlet)
	}
	sink(batches, outlet)
}
