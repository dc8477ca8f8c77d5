// Sends numbers through channels between goroutines, and allocates maps that the collector frees.
package main

import (
	"fmt"
	"runtime"
	"sort"
	"strings"
)

func main() {
	numbers, squares := make(chan int), make(chan int, 4)
	go func() {
		for i := 0; i < 200; i++ {
			numbers <- i
		}
		close(numbers)
	}()
	for worker := 0; worker < 3; worker++ {
		go func() {
			for number := range numbers {
				squares <- number * number
			}
		}()
	}
	sum := 0
	for i := 0; i < 200; i++ {
		sum += <-squares
	}
	words := map[string]int{}
	for i := 0; i < 1000; i++ {
		words[strings.Repeat("ab", i%50)] += i
	}
	runtime.GC()
	keys := make([]string, 0, len(words))
	for key := range words {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	defer func() { fmt.Println(recover() != nil) }()
	fmt.Println(sum, len(keys), words[keys[7]])
	fmt.Println(keys[len(keys)])
}
