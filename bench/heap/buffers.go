package main

const bufferSize = 64 * mib

func newBuffers(size int, prepare func([]byte)) interface{} {
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
func makeBuffers(size int) interface{} {
	return newBuffers(size, func([]byte) {})
}

// makeHugeBuffers is the same in huge pages.
func makeHugeBuffers(size int) interface{} {
	return newBuffers(size, wishHugePages)
}
