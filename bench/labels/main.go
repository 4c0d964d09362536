// Labels is the heap of the other benchmark, 19.4 million objects in 1 GiB, held by many label sets:
//
//	labels private  10,000 sets with a tree each, and a dictionary of a million objects for all
//	labels random   1,000 sets, each with pointers to anywhere in one tree
//
// It prints one JSON line when it is ready and ends with its standard input.
package main

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
)

type node struct {
	left, right *node
	name        string
	data        []byte
}

const (
	nodes           = 6470000 // of three objects each
	dictionaryNodes = 333333
	privateSets     = 10000
	randomSets      = 1000
	randomPointers  = 10000 // of each set
)

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

// all lists the nodes of a tree.
func all(tree *node, list []*node) []*node {
	if tree == nil {
		return list
	}
	return all(tree.right, all(tree.left, append(list, tree)))
}

var never = make(chan int)

//go:noinline
func hold(what []*node, ready chan<- int) {
	ready <- 1
	<-never
	runtime.KeepAlive(what)
}

func start(number int, what []*node, ready chan<- int) {
	labels := pprof.Labels("tenant", fmt.Sprintf("tenant number %06d", number))
	pprof.Do(context.Background(), labels, func(context.Context) { go hold(what, ready) })
}

// Every set enters the dictionary at its root and at some place of its own.
func startPrivate(ready chan<- int) int {
	dictionary := newTree(dictionaryNodes)
	entries := all(dictionary, nil)
	for i := 0; i < privateSets; i++ {
		tree := newTree((nodes - dictionaryNodes) / privateSets)
		start(i, []*node{tree, dictionary, entries[rand.Intn(len(entries))]}, ready)
	}
	return privateSets
}

func startRandom(ready chan<- int) int {
	list := all(newTree(nodes), nil)
	for i := 0; i < randomSets; i++ {
		what := make([]*node, randomPointers)
		for k := range what {
			what[k] = list[rand.Intn(len(list))]
		}
		start(i, what, ready)
	}
	return randomSets
}

func main() {
	modes := map[string]func(chan<- int) int{"private": startPrivate, "random": startRandom}
	if len(os.Args) != 2 || modes[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: labels private | random")
		os.Exit(2)
	}
	debug.SetGCPercent(-1)
	ready := make(chan int)
	sets := modes[os.Args[1]](ready)
	for i := 0; i < sets; i++ {
		<-ready
	}
	runtime.GC()
	fmt.Printf(`{"event":"ready","pid":%d,"sets":%d}`+"\n", os.Getpid(), sets)
	os.Stdin.Read(make([]byte, 1))
}
