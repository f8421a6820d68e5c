// Savina's Fibonacci: a goroutine that is to compute fib(n) needs two for n - 1 and n - 2, waits
// for both results and sends their sum to its parent; the input is the first n.
// As in the Insense program, it orders its children from a maker, with the channel on which it
// waits for their results.
package main

import "fmt"

type order struct {
	n      int32
	parent chan<- int32
}

func fib(n int32, child chan<- order, result chan<- int32) {
	if n <= 2 {
		result <- 1
		return
	}
	parts := make(chan int32)
	child <- order{n - 1, parts}
	child <- order{n - 2, parts}
	a, b := <-parts, <-parts
	result <- a + b
}

func maker(orders chan order) {
	for {
		o := <-orders
		if o.n < 0 {
			return
		}
		go fib(o.n, orders, o.parent)
	}
}

func main() {
	var n int32
	fmt.Scan(&n)
	orders, answer := make(chan order), make(chan int32)
	go maker(orders)
	orders <- order{n, answer}
	fmt.Println(<-answer)
	orders <- order{-1, answer}
}
