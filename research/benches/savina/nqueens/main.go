// Savina's NQueens: 20 workers place queens; the input is the size of the board, 4 to 16. A board
// with fewer than 4 queens is split: the worker sends back to the master what can follow. Others
// are solved by recursion. A worker asks for work, and the master, which keeps the boards on a
// stack, is always ready to hear.
package main

import "fmt"

type board struct {
	queens, columns, left, right int32
}

type worker struct {
	number, all int32 // all: a bit for each column
	ask, found  chan<- int32
	work        <-chan board
	more        chan<- board
}

func (w *worker) solve(columns, left, right int32) int32 {
	if columns == w.all {
		return 1
	}
	var count int32
	for free := w.all &^ (columns | left | right); free != 0; free &= free - 1 {
		bit := free & -free
		count += w.solve(columns|bit, (left|bit)<<1&w.all, (right|bit)>>1)
	}
	return count
}

func (w *worker) split(b board) {
	for free := w.all &^ (b.columns | b.left | b.right); free != 0; free &= free - 1 {
		bit := free & -free
		w.more <- board{b.queens + 1, b.columns | bit, (b.left | bit) << 1 & w.all, (b.right | bit) >> 1}
	}
}

func (w *worker) run() {
	for {
		w.ask <- w.number
		b := <-w.work
		if b.queens < 0 {
			return
		}
		if b.queens < 4 {
			w.split(b)
			w.found <- 0
		} else {
			w.found <- w.solve(b.columns, b.left, b.right)
		}
	}
}

func main() {
	var size int32
	fmt.Scan(&size)
	asks, founds, boards := make(chan int32), make(chan int32), make(chan board)
	var answers [20]chan board
	for k := range answers {
		answers[k] = make(chan board)
		w := worker{int32(k), 1<<size - 1, asks, founds, answers[k], boards}
		go w.run()
	}
	stack := []board{{}}
	open := 1 // boards on the stack or with workers
	var sum int32
	for running := len(answers); running > 0; {
		var ready <-chan int32
		if len(stack) > 0 || open == 0 {
			ready = asks
		}
		select {
		case number := <-ready:
			if top := len(stack) - 1; top >= 0 {
				b := stack[top]
				stack = stack[:top]
				answers[number] <- b
			} else {
				answers[number] <- board{queens: -1}
				running--
			}
		case b := <-boards:
			stack = append(stack, b)
			open++
		case count := <-founds:
			sum += count
			open--
		}
	}
	fmt.Println(sum)
}
