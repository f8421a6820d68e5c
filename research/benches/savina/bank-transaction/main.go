// Savina's BankTransaction: money moves between 1000 accounts. A teller tells one account to pay
// another; the payer sends the amount there and then answers the teller. The input is the number
// of transactions of each of 10 tellers, who wait for each to be done. The payer always has the
// lower number, so that no two accounts can wait for each other.
package main

import "fmt"

type order struct {
	amount        int32
	payee, answer chan<- int32
}

func account(number int32, orders <-chan order, deposits <-chan int32, balance chan<- int32) {
	money := int32(10000)
	for {
		select {
		case o := <-orders:
			if o.amount < 0 {
				balance <- money * number
				return
			}
			money -= o.amount
			o.payee <- o.amount
			o.answer <- o.amount
		case amount := <-deposits:
			money += amount
		}
	}
}

func teller(seed, left int32, orders []chan order, deposits []chan int32, paid chan<- int32) {
	random := func(below int32) int32 {
		seed = (seed*25173 + 13849) & 65535
		return seed % below
	}
	done := make(chan int32)
	var sum int32
	for ; left > 0; left-- {
		payer := random(800)
		payee := payer + 1 + random(999-payer)
		orders[payer] <- order{random(100), deposits[payee], done}
		sum += <-done
	}
	paid <- sum
}

func main() {
	var count int32
	fmt.Scan(&count)
	orders := make([]chan order, 1000)
	deposits := make([]chan int32, 1000)
	balances, paid := make(chan int32), make(chan int32)
	for k := range orders {
		orders[k], deposits[k] = make(chan order), make(chan int32)
		go account(int32(k), orders[k], deposits[k], balances)
	}
	for t := int32(1); t <= 10; t++ {
		go teller(t, count, orders, deposits, paid)
	}
	var sum int32
	for range 10 {
		sum += <-paid
	}
	fmt.Print(sum)
	sum = 0
	for k := range orders {
		orders[k] <- order{-1, nil, nil}
		sum += <-balances
	}
	fmt.Println("", sum)
}
