// Savina's PingPong: ping sends a number, pong answers with one more, as often as the input says.
// One message each way a round, over two unbuffered channels.
package main

import (
	"fmt"
	"sync"
)

func ping(rounds int32, ping chan<- int32, pong <-chan int32) {
	var sum int32
	for i := int32(1); i <= rounds; i++ {
		ping <- i
		sum += <-pong
	}
	ping <- 0 // the end
	fmt.Println(sum)
}

func pong(ping <-chan int32, pong chan<- int32) {
	for {
		n := <-ping
		if n == 0 {
			return
		}
		pong <- n + 1
	}
}

func main() {
	var n int32
	fmt.Scan(&n)
	there, back := make(chan int32), make(chan int32)
	var wg sync.WaitGroup
	wg.Go(func() { ping(n, there, back) })
	wg.Go(func() { pong(there, back) })
	wg.Wait()
}
