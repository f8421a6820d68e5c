// Savina's CigaretteSmokers: an arbiter gives the missing ingredients to one of 200 smokers,
// chosen at random; the smoker says that it has started, and smokes for a while. The arbiter then
// goes on to the next; the input is the number of rounds.
package main

import "fmt"

func smoker(ingredients <-chan int32, started chan<- bool, ash chan<- int32) {
	var burnt int32
	for {
		size := <-ingredients
		if size < 0 {
			ash <- burnt
			return
		}
		started <- true
		for i := int32(1); i <= size; i++ {
			burnt = burnt*25173 + i
		}
	}
}

func main() {
	var rounds int32
	fmt.Scan(&rounds)
	var table [200]chan int32
	started, ash := make(chan bool), make(chan int32)
	for k := range table {
		table[k] = make(chan int32)
		go smoker(table[k], started, ash)
	}
	seed := int32(1)
	random := func(below int32) int32 {
		seed = (seed*25173 + 13849) & 65535
		return seed / 8 % below
	}
	for ; rounds > 0; rounds-- {
		chosen := random(int32(len(table)))
		table[chosen] <- random(200)
		<-started
	}
	var sum int32
	for k := range table {
		table[k] <- -1
		sum = sum*31 + <-ash
	}
	fmt.Println(sum)
}
