// Savina's PiPrecision: a manager hands out the terms of a series for pi to 8 workers, one at a
// time to whoever is free. As in the Insense program, the unit of work is a hexadecimal digit of
// pi, by the formula of Bailey, Borwein and Plouffe; the input is how many, up to 5000.
// A worker asks for a place and sends the digit; the manager adds up place times digit.
package main

import "fmt"

type digit struct {
	place, value int32
}

// 16 to the power of n, modulo m, for m below 2^15.5.
func power(n, m int32) int32 {
	result, base := 1%m, 16%m
	for ; n > 0; n /= 2 {
		if n%2 == 1 {
			result = result * base % m
		}
		base = base * base % m
	}
	return result
}

// r / m in units of 2^-32, for r < m < 2^16.
func fraction(r, m uint32) uint32 {
	shifted := r << 16
	return shifted/m<<16 + shifted%m<<16/m
}

// The fraction of the sum over k of 16^(n - k) / (8k + j).
func series(n, j int32) uint32 {
	var sum uint32
	for k := int32(0); k <= n; k++ {
		m := 8*k + j
		sum += fraction(uint32(power(n-k, m)), uint32(m))
	}
	scale := uint32(1) << 28 // 1/16 in units of 2^-32
	for k := n + 1; k <= n+7; k++ {
		sum += scale / uint32(8*k+j)
		scale /= 16
	}
	return sum
}

func worker(ask chan<- bool, place <-chan int32, digits chan<- digit) {
	for {
		ask <- true
		n := <-place
		if n < 0 {
			return
		}
		x := series(n, 1)*4 - series(n, 4)*2 - series(n, 5) - series(n, 6)
		digits <- digit{n, int32(x >> 28)}
	}
}

func main() {
	var count int32
	fmt.Scan(&count)
	asks, places, digits := make(chan bool), make(chan int32), make(chan digit)
	for range 8 {
		go worker(asks, places, digits)
	}
	var next, sum int32
	for workers, left := 8, count; workers > 0 || left > 0; {
		select {
		case <-asks:
			if next < count {
				places <- next
				next++
			} else {
				places <- -1
				workers--
			}
		case d := <-digits:
			sum += (d.place + 1) * d.value
			left--
		}
	}
	fmt.Println(sum)
}
