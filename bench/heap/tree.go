package main

import "strconv"

type node struct {
	left, right *node
	name        string
	data        []byte
}

const nodesPerGiB = 6470000 // of three objects each

// makeTree makes a balanced tree whose nodes have a string and a small byte slice each.
func makeTree(size int) interface{} {
	return newTree(nodesPerGiB / 1024 * size)
}

// makeHugeTree is the same in huge pages.
func makeHugeTree(size int) interface{} {
	prepareHugePages((size + size/4) * mib)
	return makeTree(size)
}

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
