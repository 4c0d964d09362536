// Heap is a program with a heap of one kind, of which the benchmarks make scans:
//
//	heap KIND SIZE    SIZE being MiB, or goroutines for the kind of that name
//
// It prints one JSON line when it is ready and answers every line of its standard input with another:
// "gc" forces a collection, "dump" has the runtime write its own heap dump to nowhere, and each says
// how long it took. It ends with its input.
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

const mib = 1 << 20

var kinds = map[string]func(size int) any{
	"tree":       makeTree,
	"buffers":    makeBuffers,
	"huge":       makeHugeBuffers,
	"maps":       makeMaps,
	"pointers":   makePointers,
	"goroutines": makeGoroutines,
}

func collect() {
	runtime.GC()
}

// dump stops the world for as long as the whole heap takes to be written, here at no cost.
func dump() {
	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	debug.WriteHeapDump(nowhere.Fd())
	nowhere.Close()
}

func timed(what func()) float64 {
	start := time.Now()
	what()
	return time.Since(start).Seconds()
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: heap tree|buffers|huge|maps|pointers|goroutines SIZE")
	os.Exit(2)
}

func main() {
	if len(os.Args) != 3 || kinds[os.Args[1]] == nil {
		usage()
	}
	size, err := strconv.Atoi(os.Args[2])
	if err != nil || size <= 0 {
		usage()
	}
	debug.SetGCPercent(-1)
	held := kinds[os.Args[1]](size)
	collect()
	fmt.Printf(`{"event":"ready","pid":%d}`+"\n", os.Getpid())

	commands := map[string]func(){"gc": collect, "dump": dump}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Printf(`{"seconds":%f}`+"\n", timed(commands[lines.Text()]))
	}
	runtime.KeepAlive(held)
}
