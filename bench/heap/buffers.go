package main

import (
	"syscall"
	"unsafe"
)

const bufferSize = 64 * mib

func newBuffers(size int, prepare func([]byte)) any {
	buffers := make([][]byte, size*mib/bufferSize)
	for i := range buffers {
		buffer := make([]byte, bufferSize)
		prepare(buffer)
		for at := range buffer {
			buffer[at] = byte(at)
		}
		buffers[i] = buffer
	}
	return buffers
}

// makeBuffers makes few large objects without pointers.
func makeBuffers(size int) any {
	return newBuffers(size, func([]byte) {})
}

// makeHugeBuffers is the same in huge pages, which the kernel gives to who asks before the first write.
func makeHugeBuffers(size int) any {
	const madvHugePage = 14
	return newBuffers(size, func(buffer []byte) {
		syscall.Syscall(syscall.SYS_MADVISE, uintptr(unsafe.Pointer(&buffer[0])), bufferSize,
			madvHugePage)
	})
}
