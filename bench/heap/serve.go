package main

import (
	"errors"
	"fmt"
	"math/rand"
	"runtime"
	"sort"
	"sync"
	"time"
)

const (
	latenciesMax = 1 << 21 // of one worker in one run
	looksUp      = 24      // nodes that one request looks up
)

// serve serves requests out of a tree for some seconds, RATE of them a second or, if that is 0, as many
// as can be, and says how long they took.
func serve(held interface{}, arguments string) error {
	var rate, seconds float64
	root, _ := held.(*node)
	if root == nil {
		return errors.New("requests are served out of a tree")
	}
	if _, err := fmt.Sscanf(arguments, "%g %g", &rate, &seconds); err != nil {
		return err
	}
	found := newService(root).run(rate, time.Duration(seconds*float64(time.Second)))
	fmt.Printf(`{"rate":%f,"median":%g,"p99":%g,"p999":%g,"worst":%g}`+"\n",
		found.rate, found.at(0.5), found.at(0.99), found.at(0.999), found.at(1))
	runtime.GC()
	return nil
}

type worker struct {
	root      *node // of a part of the tree that is its own, so that it needs no lock
	random    *rand.Rand
	latencies []time.Duration
}

type service struct {
	workers []*worker
}

type findings struct {
	rate      float64 // requests a second
	latencies []time.Duration
}

// at gives the latency that this part of all requests did not pass, in seconds.
func (f *findings) at(part float64) float64 {
	if len(f.latencies) == 0 {
		return 0
	}
	return f.latencies[int(part*float64(len(f.latencies)-1))].Seconds()
}

func newService(root *node) *service {
	s := &service{}
	parts := []*node{root}
	for len(parts) < runtime.GOMAXPROCS(0) {
		parts = append(parts[1:], parts[0].left, parts[0].right)
	}
	for i := 0; i < runtime.GOMAXPROCS(0); i++ {
		s.workers = append(s.workers, &worker{parts[i], rand.New(rand.NewSource(int64(i))),
			make([]time.Duration, 0, latenciesMax)})
	}
	return s
}

// serve looks up some nodes and gives each new contents, as a cache would.
func (w *worker) serve() {
	for i := 0; i < looksUp; i++ {
		at := w.root
		for bits := w.random.Uint64(); at.left != nil && at.right != nil; bits >>= 1 {
			if bits&1 == 0 {
				at = at.left
			} else {
				at = at.right
			}
		}
		at.data = append(make([]byte, 0, 48), at.name...)
	}
}

// paced starts a request every so often. One that begins late, because the one before took long, has
// been waiting since it was due.
func (w *worker) paced(every time.Duration, until time.Time) {
	for due := time.Now(); due.Before(until); due = due.Add(every) {
		if wait := time.Until(due); wait > 0 {
			time.Sleep(wait)
		}
		w.serve()
		w.note(time.Since(due))
	}
}

func (w *worker) flatOut(until time.Time) {
	for begun := time.Now(); begun.Before(until); {
		w.serve()
		now := time.Now()
		w.note(now.Sub(begun))
		begun = now
	}
}

func (w *worker) note(latency time.Duration) {
	if len(w.latencies) < cap(w.latencies) {
		w.latencies = append(w.latencies, latency)
	}
}

func (s *service) run(rate float64, length time.Duration) *findings {
	var done sync.WaitGroup
	begun := time.Now()
	for _, w := range s.workers {
		w.latencies = w.latencies[:0]
		done.Add(1)
		go func(w *worker) {
			defer done.Done()
			if rate == 0 {
				w.flatOut(begun.Add(length))
			} else {
				every := float64(len(s.workers)) / rate * float64(time.Second)
				w.paced(time.Duration(every), begun.Add(length))
			}
		}(w)
	}
	done.Wait()
	return s.sum(time.Since(begun))
}

func (s *service) sum(length time.Duration) *findings {
	found := &findings{}
	for _, w := range s.workers {
		found.latencies = append(found.latencies, w.latencies...)
	}
	sort.Slice(found.latencies, func(i, k int) bool { return found.latencies[i] < found.latencies[k] })
	found.rate = float64(len(found.latencies)) / length.Seconds()
	return found
}
