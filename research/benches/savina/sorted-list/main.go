// Savina's ConcurrentSortedLinkedList: 20 workers put numbers into one sorted list and look for
// numbers in it, one insertion and one question for the size in ten operations each; the input is
// the number of operations of each worker. A request carries the channel for its answer.
// The list has room for all numbers that can come, and its links are indices.
// Numbers belong to workers, so that answers do not depend on the order.
package main

import "fmt"

type operation int

const (
	insert operation = iota
	contains
	size
)

type request struct {
	what   operation
	number int32
	reply  chan<- int32
}

// Entry 0 stands before the first number; a link of 0 ends the list.
type list struct {
	numbers, links [1001]int32
	used           int32
}

// The last entry whose number is less.
func (l *list) before(number int32) int32 {
	at := int32(0)
	for next := l.links[0]; next != 0 && l.numbers[next] < number; next = l.links[next] {
		at = next
	}
	return at
}

func (l *list) has(number int32) int32 {
	next := l.links[l.before(number)]
	if next != 0 && l.numbers[next] == number {
		return 1
	}
	return 0
}

func (l *list) put(number int32) int32 {
	at := l.before(number)
	next := l.links[at]
	if next != 0 && l.numbers[next] == number {
		return 0
	}
	l.used++
	l.numbers[l.used] = number
	l.links[l.used] = next
	l.links[at] = l.used
	return 1
}

func (l *list) sum() int32 {
	var total int32
	for next := l.links[0]; next != 0; next = l.links[next] {
		total = total*31 + l.numbers[next]
	}
	return total
}

func keeper(requests <-chan request) {
	var l list
	for {
		r := <-requests
		switch r.what {
		case insert:
			r.reply <- l.put(r.number)
		case contains:
			r.reply <- l.has(r.number)
		default:
			if r.number < 0 {
				r.reply <- l.sum()
				return
			}
			r.reply <- l.used
		}
	}
}

func worker(number, count int32, requests chan<- request, result chan<- int32) {
	seed := number
	random := func(below int32) int32 {
		seed = (seed*25173 + 13849) & 65535
		return seed / 8 % below
	}
	answer := make(chan int32)
	var sum int32
	for ; count > 0; count-- {
		dice := random(100)
		n := random(50)*20 + number
		what := contains
		if dice < 10 {
			what = insert
		} else if dice < 20 {
			what = size
		}
		requests <- request{what, n, answer}
		value := <-answer
		if what != size {
			sum = sum*31 + value
		}
	}
	result <- sum
}

func main() {
	var count int32
	fmt.Scan(&count)
	requests := make(chan request)
	go keeper(requests)
	results := make(chan int32)
	for k := range int32(20) {
		go worker(k, count, requests, results)
	}
	var sum int32
	for range 20 {
		sum += <-results
	}
	rest := make(chan int32)
	requests <- request{size, -1, rest}
	fmt.Println(sum, <-rest)
}
