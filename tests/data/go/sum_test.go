// Package sums has benchmarks whose iterations are not alike, or that prepare within their clock.
package sums

import (
	"os"
	"strconv"
	"testing"
)

func variable(name string, value int) int {
	if text := os.Getenv(name); text != "" {
		value, _ = strconv.Atoi(text)
	}
	return value
}

var rounds, size = variable("WORK", 1000), variable("SETUP", 10)

//go:noinline
func work(rounds int) int {
	total := 0
	for i := 0; i < rounds; i++ {
		total += i ^ total
	}
	return total
}

//go:noinline
func prepared() []int {
	data := make([]int, size)
	for i := range data {
		data[i] = i
	}
	return data
}

func BenchmarkReset(b *testing.B) {
	b.Run("sub/100", func(b *testing.B) {
		prepared()
		b.ResetTimer()
		for i := 0; i < b.N; i++ {
			work(rounds)
		}
	})
}

func BenchmarkUnreset(b *testing.B) {
	data := prepared()
	for i := 0; i < b.N; i++ {
		data[i%len(data)] += work(rounds)
	}
}

func BenchmarkMap(b *testing.B) {
	m := map[int]int{}
	for i := 0; i < b.N; i++ {
		m[i] = work(rounds)
	}
}

func BenchmarkLoop(b *testing.B) {
	data := prepared()
	for b.Loop() {
		data[0] += work(rounds)
	}
}

func BenchmarkPaused(b *testing.B) {
	for i := 0; i < b.N; i++ {
		b.StopTimer()
		kept := prepared()
		b.StartTimer()
		kept[0] += work(rounds)
	}
}

func BenchmarkParallel(b *testing.B) {
	prepared()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			work(rounds)
		}
	})
}
