// Tree is what the benchmarks look at: about 1 GiB of heap in 19.4 million objects, a balanced tree of
// nodes with two children, a string and a small byte slice each.
//
// It prints one JSON line when it is ready and one for every line of its standard input:
// "gc" forces a collection and says how long it took.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"
)

type node struct {
	left, right *node
	name        string
	data        []byte
}

const nodes = 6470000

var root *node

// newTree makes a balanced tree of count nodes.
func newTree(count int) *node {
	if count == 0 {
		return nil
	}
	left := (count - 1) / 2
	return &node{newTree(left), newTree(count - 1 - left), newName(count), make([]byte, 48)}
}

func newName(number int) string {
	name := make([]byte, 0, 64)
	name = append(name, "node of a tree with many others, of "...)
	return string(strconv.AppendInt(name, int64(number), 10))
}

func collect() float64 {
	start := time.Now()
	runtime.GC()
	return time.Since(start).Seconds()
}

func report(seconds float64) {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	fmt.Printf(`{"event":"ready","pid":%d,"heap_objects":%d,"heap_alloc":%d,"gc_seconds":%f}`+"\n",
		os.Getpid(), stats.HeapObjects, stats.HeapAlloc, seconds)
}

func main() {
	debug.SetGCPercent(-1)
	root = newTree(nodes)
	report(collect())
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		report(collect())
	}
	runtime.KeepAlive(root)
}
