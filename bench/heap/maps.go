package main

import (
	"fmt"
	"strconv"
)

type address struct {
	street string
	number int
}

func (a *address) String() string { return a.street + strconv.Itoa(a.number) }

const sessionsPerGiB = 1300000

// makeMaps makes a map of sessions, each a map of interfaces to values of many types.
func makeMaps(size int) interface{} {
	sessions := map[string]map[string]interface{}{}
	for i := 0; i < sessionsPerGiB/1024*size; i++ {
		name := "session number " + strconv.Itoa(i)
		sessions[name] = map[string]interface{}{
			"id":      i,
			"name":    name,
			"weight":  float64(i) / 7,
			"address": fmt.Stringer(&address{"street of the bench ", i}),
			"tags":    []string{name, "second", "third"},
			"visits":  map[int]interface{}{i: name, i + 1: &address{name, i}},
		}
	}
	return sessions
}
