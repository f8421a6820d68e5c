// Savina's ThreadRing: 100 goroutines in a ring pass on a token that says how many hops are left;
// the input is the first token. Whoever receives 0 prints its number; then an end mark goes round.
package main

import (
	"fmt"
	"sync"
)

// Below 0 the token is the end mark: -k has been passed on k times.
func ring(number int32, inlet <-chan int32, outlet chan<- int32) {
	for {
		token := <-inlet
		if token > 0 {
			outlet <- token - 1
			continue
		}
		if token == 0 {
			fmt.Println(number)
		}
		if token > -99 {
			outlet <- token - 1
		}
		return
	}
}

func main() {
	var token int32
	fmt.Scan(&token)
	first := make(chan int32)
	inlet := first
	var wg sync.WaitGroup
	for n := int32(1); n <= 100; n++ {
		in, out := inlet, first
		if n < 100 {
			out = make(chan int32)
		}
		wg.Go(func() { ring(n, in, out) })
		inlet = out
	}
	first <- token
	wg.Wait()
}
