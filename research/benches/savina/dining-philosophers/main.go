// Savina's DiningPhilosophers: 20 philosophers ask an arbitrator for their two forks, eat, and
// give them back; the input is the number of meals of each. A philosopher waits for its answer,
// which the arbitrator sends once both forks are free.
package main

import "fmt"

const seats = 20

func philosopher(number, count int32, hungry, full, meals chan<- int32, eat <-chan bool) {
	var eaten int32
	for ; count > 0; count-- {
		hungry <- number
		<-eat
		eaten += number
		full <- number
	}
	meals <- eaten
}

func main() {
	var count int32
	fmt.Scan(&count)
	hungry, full, meals := make(chan int32), make(chan int32), make(chan int32)
	var answers [seats]chan bool
	var taken, waiting [seats]bool
	for k := range answers {
		answers[k] = make(chan bool)
		go philosopher(int32(k), count, hungry, full, meals, answers[k])
	}
	// Lets a philosopher eat if it waits and both of its forks are free.
	serve := func(p int32) {
		q := (p + 1) % seats
		if waiting[p] && !taken[p] && !taken[q] {
			taken[p], taken[q] = true, true
			waiting[p] = false
			answers[p] <- true
		}
	}
	var sum int32
	for left := seats; left > 0; {
		select {
		case p := <-hungry:
			waiting[p] = true
			serve(p)
		case p := <-full:
			taken[p], taken[(p+1)%seats] = false, false
			serve((p + seats - 1) % seats)
			serve((p + 1) % seats)
		case eaten := <-meals:
			sum += eaten
			left--
		}
	}
	fmt.Println(sum)
}
