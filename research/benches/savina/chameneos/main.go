// Savina's Chameneos: 100 creatures of three colours ask a mall to meet another; who has met takes
// on the colour that neither of the two had. The input is the number of meetings.
// A creature sends its number and colour to the mall and waits; the mall answers two at a time,
// each over its own channel. The sum of all encounters is printed.
package main

import "fmt"

type visit struct {
	creature, colour int32
}

func creature(number int32, visits chan<- visit, other <-chan int32, count chan<- int32) {
	colour, met := number%3, int32(0)
	for {
		visits <- visit{number, colour}
		c := <-other
		if c < 0 {
			count <- met
			return
		}
		met++
		if c != colour {
			colour = 3 - c - colour
		}
	}
}

func main() {
	var meetings int32
	fmt.Scan(&meetings)
	visits, counts := make(chan visit), make(chan int32)
	var answers [100]chan int32
	for k := range answers {
		answers[k] = make(chan int32)
		go creature(int32(k), visits, answers[k], counts)
	}
	for ; meetings > 0; meetings-- {
		a, b := <-visits, <-visits
		answers[a.creature] <- b.colour
		answers[b.creature] <- a.colour
	}
	var sum int32
	for range answers {
		v := <-visits
		answers[v.creature] <- -1
		sum += <-counts
	}
	fmt.Println(sum)
}
