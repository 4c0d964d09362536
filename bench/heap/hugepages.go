package main

import (
	"runtime"
	"syscall"
	"unsafe"
)

const madvHugePage = 14

// wishHugePages asks for huge pages, which the kernel gives at the first write.
func wishHugePages(memory []byte) {
	syscall.Syscall(syscall.SYS_MADVISE, uintptr(unsafe.Pointer(&memory[0])), uintptr(len(memory)),
		madvHugePage)
}

// prepareHugePages makes the next size bytes of heap huge pages: those of a large object that is freed,
// which the allocator takes before others.
func prepareHugePages(size int) {
	room := make([]byte, size)
	wishHugePages(room)
	for at := 0; at < size; at += 4096 {
		room[at] = 1
	}
	runtime.KeepAlive(room)
	room = nil
	runtime.GC()
}
