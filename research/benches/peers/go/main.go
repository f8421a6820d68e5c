// The programs in Go that Hearth's components are compared with: go-peers ROW ROUNDS [locked].
//
// Goroutines and unbuffered channels, in the same shapes as research/benches/runtime/*.isf. With
// `locked`, the goroutines of ping-pong and stream are locked to threads of their own, so that they
// use both cores.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
)

var locked bool

// Runs it concurrently with the others.
func beside(run func()) {
	go func() {
		if locked {
			runtime.LockOSThread()
		}
		run()
	}()
}

func pingPong(rounds int) int32 {
	ball, back := make(chan int32), make(chan int32)
	beside(func() {
		for i := 0; i < rounds; i++ {
			back <- <-ball + 1
		}
	})
	value := int32(0)
	for i := 0; i < rounds; i++ {
		ball <- value
		value = <-back
	}
	return value
}

func source(rounds int, next chan<- int32) {
	for i := 1; i <= rounds; i++ {
		next <- int32(i)
	}
}

func stream(rounds int) int32 {
	next := make(chan int32)
	beside(func() { source(rounds, next) })
	sum := int32(0)
	for i := 0; i < rounds; i++ {
		sum += <-next
	}
	return sum
}

func ring(laps int) int32 {
	first := make(chan int32)
	last := first
	for i := 2; i <= 503; i++ {
		before, onward := last, make(chan int32)
		go func() {
			for lap := 0; lap < laps; lap++ {
				onward <- <-before + 1
			}
		}()
		last = onward
	}
	value := int32(0)
	for lap := 0; lap < laps; lap++ {
		first <- value + 1
		value = <-last
	}
	return value
}

func fanIn(rounds int) int32 {
	a, b, c, d := make(chan int32), make(chan int32), make(chan int32), make(chan int32)
	for _, next := range []chan int32{a, b, c, d} {
		next := next
		go source(rounds, next)
	}
	sum := int32(0)
	for i := 0; i < 4*rounds; i++ {
		select {
		case value := <-a:
			sum += value
		case value := <-b:
			sum += value
		case value := <-c:
			sum += value
		case value := <-d:
			sum += value
		}
	}
	return sum
}

func create(thousands int) int32 {
	made := int32(0)
	for i := 0; i < thousands; i++ {
		var ended sync.WaitGroup
		ended.Add(1000)
		for j := 0; j < 1000; j++ {
			go ended.Done()
		}
		ended.Wait()
		made += 1000
	}
	return made
}

func blocked(count int) int32 {
	start := make(chan int32)
	last := start
	for i := 0; i < count; i++ {
		before, onward := last, make(chan int32)
		go func() { onward <- <-before + 1 }()
		last = onward
	}
	// Each has its turn to come to its receive.
	runtime.Gosched()
	start <- 0
	return <-last
}

func copies(length int) func(int) int32 {
	return func(rounds int) int32 {
		next := make(chan []int32)
		go func() {
			block := make([]int32, length)
			for i := range block {
				block[i] = 1
			}
			for i := 1; i <= rounds; i++ {
				block[i%length] = int32(i)
				next <- append([]int32(nil), block...)
			}
		}()
		sum := int32(0)
		for i := 1; i <= rounds; i++ {
			block := <-next
			sum += block[i%length] + block[length-1]
		}
		return sum
	}
}

// A slice is not copied; the sender does not touch it afterwards.
func moves(length int) func(int) int32 {
	return func(rounds int) int32 {
		there, back := make(chan []int32), make(chan []int32)
		go func() {
			for i := 0; i < rounds; i++ {
				block := <-there
				block[0]++
				back <- block
			}
		}()
		block := make([]int32, length)
		for i := 0; i < rounds; i++ {
			there <- block
			block = <-back
			block[0]++
		}
		return block[0]
	}
}

// Two halves of a computation at the same time.
func halves(run func(half int) int32) int32 {
	sums := make(chan int32)
	for half := 0; half < 2; half++ {
		half := half
		go func() { sums <- run(half) }()
	}
	return <-sums + <-sums
}

func escape(cr, ci int32) int32 {
	const limit = 1000
	zr, zi := int32(0), int32(0)
	for n := int32(0); n < limit; n++ {
		r2, i2 := zr*zr/4096, zi*zi/4096
		if r2+i2 > 16384 {
			return n
		}
		zi = zr*zi/2048 + ci
		zr = r2 - i2 + cr
	}
	return limit
}

func mandelbrot(pictures int) int32 {
	return halves(func(half int) int32 {
		sum := int32(0)
		for line := half; line < pictures*16; line += 2 {
			ci := int32(line/2%8*500 - 2000)
			for x := int32(0); x < 1024; x++ {
				sum += escape(x*12-9011, ci)
			}
		}
		return sum
	})
}

func matrix(rounds int) int32 {
	const size = 384
	type square [size][size]float32
	return halves(func(half int) int32 {
		a, b, c := new(square), new(square), new(square)
		for i := range a {
			for j := range a[i] {
				a[i][j] = float32((i*7 + j*3) % 10)
				b[i][j] = float32((i*5 + j*9) % 10)
			}
		}
		first, end := half*size/2, (half+1)*size/2
		for round := 0; round < rounds; round++ {
			for i := first; i < end; i++ {
				row := &c[i]
				*row = [size]float32{}
				for k := range b {
					factor := a[i][k]
					for j := range row {
						row[j] += factor * b[k][j]
					}
				}
			}
		}
		sum := int32(0)
		for i := first; i < end; i++ {
			for j := range c[i] {
				sum += int32(i+1) * int32(j+1) * int32(c[i][j])
			}
		}
		return sum
	})
}

// Rounds as Insense does: truncates, and adds 1 if the fraction exceeds a half.
func realToInt(real float32) int32 {
	whole := int32(real)
	if real-float32(whole) > 0.5 {
		whole++
	}
	return whole
}

func nBody(steps int) int32 {
	const count = 512
	type places struct{ x, y [count / 2]float32 }
	channels := [2]chan *places{make(chan *places), make(chan *places)}
	return halves(func(half int) int32 {
		var x, y, vx, vy [count]float32
		for i := range x {
			x[i] = float32(i * 37 % count)
			y[i] = float32(i * 101 % count)
		}
		first, other := half*count/2, (1-half)*count/2
		for step := 0; step < steps; step++ {
			for i := first; i < first+count/2; i++ {
				ax, ay := float32(0), float32(0)
				for j := range x {
					dx, dy := x[j]-x[i], y[j]-y[i]
					near := dx*dx + dy*dy + 1
					pull := 1 / (near * near)
					ax += dx * pull
					ay += dy * pull
				}
				vx[i] += ax
				vy[i] += ay
			}
			mine := new(places)
			for i := range mine.x {
				x[first+i] += vx[first+i]
				y[first+i] += vy[first+i]
				mine.x[i], mine.y[i] = x[first+i], y[first+i]
			}
			var theirs *places
			if half == 0 {
				channels[0] <- mine
				theirs = <-channels[1]
			} else {
				theirs = <-channels[0]
				channels[1] <- mine
			}
			copy(x[other:], theirs.x[:])
			copy(y[other:], theirs.y[:])
		}
		sum := int32(0)
		for i := first; i < first+count/2; i++ {
			sum += realToInt(x[i]*16) + realToInt(y[i]*16)
		}
		return sum
	})
}

func main() {
	rows := map[string]func(int) int32{
		"ping-pong": pingPong, "stream": stream, "ring": ring, "fan-in": fanIn, "create": create,
		"blocked": blocked, "copy-1k": copies(256), "copy-1m": copies(262144),
		"move-1k": moves(256), "move-1m": moves(262144), "mandelbrot": mandelbrot,
		"matrix": matrix, "n-body": nBody,
	}
	if len(os.Args) >= 3 {
		rounds, err := strconv.Atoi(os.Args[2])
		run, known := rows[os.Args[1]]
		if err == nil && known {
			locked = len(os.Args) == 4 && os.Args[3] == "locked"
			if locked {
				runtime.LockOSThread()
			}
			fmt.Println(run(rounds))
			return
		}
	}
	fmt.Fprintln(os.Stderr, "usage: go-peers ROW ROUNDS [locked]")
	os.Exit(2)
}
