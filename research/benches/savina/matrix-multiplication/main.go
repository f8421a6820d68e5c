// Savina's RecMatMul: 20 workers multiply matrices of 128 x 128 integers for a master; the input is
// how often. As in the Insense program, a task carries two blocks of 16 x 16 elements, the worker
// sends back their product, and the master adds it up. Blocks are slices, which are not copied on
// the way.
package main

import "fmt"

const (
	size  = 128
	block = 16
)

type matrix [size][size]int32

type task struct {
	row, column int
	a, b        []int32
}

type product struct {
	row, column int
	c           []int32
}

func worker(ask chan<- bool, tasks <-chan task, products chan<- product) {
	for {
		ask <- true
		t := <-tasks
		if t.row < 0 {
			return
		}
		c := make([]int32, block*block)
		for i := 0; i < block*block; i += block {
			line := c[i : i+block]
			for k := range block {
				factor := t.a[i+k]
				for j, v := range t.b[k*block : k*block+block] {
					line[j] += factor * v
				}
			}
		}
		products <- product{t.row, t.column, c}
	}
}

func cut(m *matrix, row, column int) []int32 {
	cells := make([]int32, 0, block*block)
	for i := range block {
		cells = append(cells, m[row+i][column:column+block]...)
	}
	return cells
}

func add(m *matrix, p product) {
	for i := range block {
		line := m[p.row+i][p.column : p.column+block]
		for j, v := range p.c[i*block : i*block+block] {
			line[j] += v
		}
	}
}

func main() {
	var rounds int
	fmt.Scan(&rounds)
	var a, b, c matrix
	for i := range size {
		for j := range size {
			a[i][j] = int32((i*7 + j*3) % 10)
			b[i][j] = int32((i*5 + j*9) % 10)
		}
	}
	asks, tasks, products := make(chan bool), make(chan task), make(chan product)
	for range 20 {
		go worker(asks, tasks, products)
	}
	left := rounds * 512 // tasks to hand out
	open := left         // products to come
	for workers := 20; workers > 0 || open > 0; {
		select {
		case <-asks:
			if left > 0 {
				left--
				row, column, middle := left/64%8*block, left/8%8*block, left%8*block
				tasks <- task{row, column, cut(&a, row, middle), cut(&b, middle, column)}
			} else {
				tasks <- task{row: -1}
				workers--
			}
		case p := <-products:
			add(&c, p)
			open--
		}
	}
	var sum int32
	for i := range c {
		for _, v := range c[i] {
			sum = sum*31 + v
		}
	}
	fmt.Println(sum)
}
