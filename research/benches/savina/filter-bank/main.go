// Savina's FilterBank: a source sends samples to 8 channels; in each they run through a filter, a
// stage that keeps one of 8, a stage that puts 7 zeros behind each, and a second filter. A combiner
// takes one sample of each channel and adds them. The input is the number of samples, in eights.
package main

import "fmt"

func filter(channel, left int32, inlet <-chan int32, outlet chan<- int32) {
	var weights, history [16]int32
	for k := range weights {
		weights[k] = (channel+3)*(int32(k)+1)%17 - 8
	}
	for at := 0; left > 0; left-- {
		history[at] = <-inlet
		var sum int32
		for k, w := range weights {
			sum += w * history[(at+k)&15]
		}
		at = (at + 15) & 15
		outlet <- sum
	}
}

func down(left int32, inlet <-chan int32, outlet chan<- int32) {
	for ; left > 0; left -= 8 {
		outlet <- <-inlet
		for range 7 {
			<-inlet
		}
	}
}

func up(left int32, inlet <-chan int32, outlet chan<- int32) {
	for ; left > 0; left -= 8 {
		outlet <- <-inlet
		for range 7 {
			outlet <- 0
		}
	}
}

func source(left int32, outlets []chan int32) {
	for seed := int32(1); left > 0; left-- {
		seed = (seed*25173 + 13849) & 65535
		for _, c := range outlets {
			c <- seed
		}
	}
}

func combiner(left int32, inlets []chan int32) {
	var checksum int32
	for ; left > 0; left-- {
		var sum int32
		for _, c := range inlets {
			sum += <-c
		}
		checksum = checksum*31 + sum
	}
	fmt.Println(checksum)
}

func main() {
	var samples int32
	fmt.Scan(&samples)
	samples *= 8
	outlets, inlets := make([]chan int32, 8), make([]chan int32, 8)
	for k := range outlets {
		var c [5]chan int32
		for i := range c {
			c[i] = make(chan int32)
		}
		outlets[k], inlets[k] = c[0], c[4]
		go filter(int32(k), samples, c[0], c[1])
		go down(samples, c[1], c[2])
		go up(samples, c[2], c[3])
		go filter(int32(k)+8, samples, c[3], c[4])
	}
	go source(samples, outlets)
	combiner(samples, inlets)
}
