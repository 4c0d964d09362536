// Heap is a program with a heap of one kind, of which the benchmarks make scans:
//
//	heap KIND SIZE    SIZE being MiB, or goroutines for the kind of that name
//
// It prints one JSON line when it is ready and answers every line of its standard input with another:
// "gc" forces a collection, "dump" has the runtime write its own heap dump to nowhere, and each says
// how long it took; "serve RATE SECONDS" serves requests out of a tree. It ends with its input.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

const mib = 1 << 20

var kinds = map[string]func(size int) interface{}{
	"tree":       makeTree,
	"hugetree":   makeHugeTree,
	"buffers":    makeBuffers,
	"huge":       makeHugeBuffers,
	"maps":       makeMaps,
	"pointers":   makePointers,
	"goroutines": makeGoroutines,
}

var commands = map[string]func(held interface{}, arguments string) error{
	"gc":    collect,
	"dump":  dump,
	"serve": serve,
}

func answerSeconds(begun time.Time) {
	fmt.Printf(`{"seconds":%f}`+"\n", time.Since(begun).Seconds())
}

func collect(interface{}, string) error {
	begun := time.Now()
	runtime.GC()
	answerSeconds(begun)
	return nil
}

// dump stops the world for as long as the whole heap takes to be written, which costs nothing here.
func dump(interface{}, string) error {
	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer nowhere.Close()
	begun := time.Now()
	debug.WriteHeapDump(nowhere.Fd())
	answerSeconds(begun)
	return nil
}

func obey(held interface{}, line string) error {
	name, arguments := line, ""
	if space := strings.IndexByte(line, ' '); space >= 0 {
		name, arguments = line[:space], line[space+1:]
	}
	command := commands[name]
	if command == nil {
		return fmt.Errorf("no command %q", name)
	}
	return command(held, arguments)
}

func run(kind, size string) error {
	count, err := strconv.Atoi(size)
	if err != nil || count <= 0 || kinds[kind] == nil {
		return fmt.Errorf("no heap of the kind %q and the size %q", kind, size)
	}
	debug.SetGCPercent(-1) // collections come when they are asked for
	held := kinds[kind](count)
	runtime.GC()
	fmt.Printf(`{"event":"ready","pid":%d}`+"\n", os.Getpid())
	lines := bufio.NewScanner(os.Stdin)
	for err == nil && lines.Scan() {
		err = obey(held, lines.Text())
	}
	runtime.KeepAlive(held)
	return err
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: heap KIND SIZE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "heap:", err)
		os.Exit(1)
	}
}
