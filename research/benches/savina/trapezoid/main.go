// Savina's Trapezoidal: 20 workers integrate 4 / (1 + x * x) from 0 to 1, each over its own part,
// and send what they get to a master. The input is the number of intervals of each worker, in
// thousands, each of which is added up on its own first.
// Values are in single precision; what meets a literal is computed in double, as in Insense. The
// conversions of products keep Go from fusing them with the addition that follows.
package main

import "fmt"

type part struct {
	number int32
	area   float32
}

func f(x float32) float32 {
	square := float32(x * x)
	return float32(4 / (1 + float64(square)))
}

func worker(number, rows int32, parts chan<- part) {
	rowWidth := float32(0.05 / float64(rows))
	width := float32(float64(rowWidth) / 1000)
	start := float32(0.05 * float64(number))
	var area float32
	for r := range rows {
		offset := float32(rowWidth * float32(r))
		rowStart := start + offset
		var sum float32
		for i := range 1000 {
			step := float32(width * float32(i))
			x := rowStart + step
			both := f(x) + f(x+width)
			sum = float32(float64(sum) + float64(both)/2)
		}
		area += sum
	}
	parts <- part{number, area * width}
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
	var rows int32
	fmt.Scan(&rows)
	parts := make(chan part)
	var areas [20]float32
	for k := range areas {
		go worker(int32(k), rows, parts)
	}
	for range areas {
		p := <-parts
		areas[p.number] = p.area
	}
	var sum float32
	for _, a := range areas {
		sum += a
	}
	fmt.Println(realToInt(float32(float64(sum) * 1000000)))
}
