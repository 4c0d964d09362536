package main

import "runtime"

type request struct {
	number int
	body   []byte
}

var never = make(chan *request)

// makeGoroutines starts goroutines that wait for ever, some calls deep, with an object each.
func makeGoroutines(size int) interface{} {
	ready := make(chan bool)
	for i := 0; i < size; i++ {
		go handle(&request{i, make([]byte, 64)}, ready)
		<-ready
	}
	return ready
}

//go:noinline
func handle(request *request, ready chan<- bool) {
	ready <- true
	wait(request, len(request.body))
}

//go:noinline
func wait(request *request, size int) {
	other := <-never
	runtime.KeepAlive(other)
	runtime.KeepAlive(request)
}
