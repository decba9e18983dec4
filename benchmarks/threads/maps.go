// Fills maps, whose hash seeds depend on the thread that makes them, and lets four goroutines pass values on.
package main

import (
	"fmt"
	"sync"
)

func main() {
	total := 0
	for round := 0; round < 40; round++ {
		words := map[string]int{}
		for i := 0; i < 1500; i++ {
			words[fmt.Sprintf("w%d", i*7919%1013)]++
		}
		total += len(words)
	}
	values, sums := make(chan int), make(chan int, 4)
	var group sync.WaitGroup
	for worker := 0; worker < 4; worker++ {
		group.Add(1)
		go func() {
			defer group.Done()
			sum := 0
			for value := range values {
				sum += value
			}
			sums <- sum
		}()
	}
	for i := 0; i < 2000; i++ {
		values <- i
	}
	close(values)
	group.Wait()
	for worker := 0; worker < 4; worker++ {
		total += <-sums
	}
	fmt.Println(total)
}
