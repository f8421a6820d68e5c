// Savina's SleepingBarber: customers enter a waiting room of 100 chairs; a barber takes one after
// another, tells each when the cut begins and ends. The input is the number of customers, each a
// goroutine. A customer hands its own channel to the room, which hands it to the barber.
// A full room keeps its door shut, and customers wait in front of it.
package main

import (
	"fmt"
	"sync"
)

func customer(enter chan<- chan int32, leave chan<- int32) {
	barber := make(chan int32)
	enter <- barber
	begin := <-barber
	hair := <-barber
	leave <- hair - begin
}

func room(left int32, door <-chan chan int32, next <-chan bool, customers chan<- chan int32) {
	var chairs [100]chan int32
	first, used := 0, 0
	for left > 0 {
		var open <-chan chan int32
		if used < len(chairs) {
			open = door
		}
		var ready <-chan bool
		if used > 0 {
			ready = next
		}
		select {
		case c := <-open:
			chairs[(first+used)%len(chairs)] = c
			used++
		case <-ready:
			customers <- chairs[first]
			first = (first + 1) % len(chairs)
			used--
			left--
		}
	}
}

func barber(left int32, next chan<- bool, customers <-chan chan int32) {
	for ; left > 0; left-- {
		next <- true
		scissors := <-customers
		scissors <- left
		hair := left
		for cut := int32(1); cut <= 100; cut++ {
			hair = hair*25173 + cut
		}
		scissors <- hair
	}
}

func factory(count int32, door chan<- chan int32) {
	results := make(chan int32)
	for range count {
		go customer(door, results)
	}
	var sum int32
	for range count {
		sum += <-results
	}
	fmt.Println(sum)
}

func main() {
	var count int32
	fmt.Scan(&count)
	door, next, customers := make(chan chan int32), make(chan bool), make(chan chan int32)
	var wg sync.WaitGroup
	wg.Go(func() { room(count, door, next, customers) })
	wg.Go(func() { barber(count, next, customers) })
	wg.Go(func() { factory(count, door) })
	wg.Wait()
}
