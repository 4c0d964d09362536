package main

import "math/rand"

const (
	tableLength = 1023 // with its header 8 KiB
	reach       = 256  // tables
)

type table [tableLength]*table

// makePointers makes tables that are full of pointers to tables nearby: no heap has more pointers.
func makePointers(size int) interface{} {
	tables := make([]*table, size*mib/(8*(tableLength+1)))
	for i := range tables {
		tables[i] = new(table)
	}
	random := rand.New(rand.NewSource(1))
	for at, from := range tables {
		for i := range from {
			from[i] = tables[(at+random.Intn(reach))%len(tables)]
		}
	}
	return tables
}
