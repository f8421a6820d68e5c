// Savina's LogisticMap: 10 series of x := r * x * (1 - x), each advanced term by term by a master.
// A series has a computer for its own rate r: it sends x there and gets the next x back.
// The input is the number of terms. Values are in single precision; what meets a literal is
// computed in double, as in Insense.
package main

import "fmt"

func computer(rate float32, terms <-chan float32, nexts chan<- float32) {
	for {
		x := <-terms
		if x < 0 {
			return
		}
		y := rate * x
		nexts <- float32(float64(y) * (1 - float64(x)))
	}
}

func series(x float32, next <-chan bool, term chan<- float32, computed <-chan float32,
	last chan<- int32) {
	for <-next {
		term <- x
		x = <-computed
	}
	term <- -1
	last <- realToInt(float32(float64(x) * 1000000))
}

// Insense's: truncated, plus 1 if the fraction exceeds 0.5.
func realToInt(r float32) int32 {
	n := int32(r)
	if r-float32(n) > 0.5 {
		n++
	}
	return n
}

func main() {
	var count int
	fmt.Scan(&count)
	var nexts [10]chan bool
	lasts := make(chan int32)
	for k := range nexts {
		nexts[k] = make(chan bool)
		terms, computed := make(chan float32), make(chan float32)
		start := float32(0.01 * float64(k+1))
		rate := float32(3.86 + float64(0.0025*float64(k)))
		go series(start, nexts[k], terms, computed, lasts)
		go computer(rate, terms, computed)
	}
	for range count {
		for k := range nexts {
			nexts[k] <- true
		}
	}
	var sum int32
	for k := range nexts {
		nexts[k] <- false
		sum = sum*31 + <-lasts
	}
	fmt.Println(sum)
}
