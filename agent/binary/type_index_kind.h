/* Kinds of types, as in internal/abi/type.go; the same numbers since go1.15. */
#ifndef AGENT_BINARY_TYPE_INDEX_KIND_H
#define AGENT_BINARY_TYPE_INDEX_KIND_H

enum {
	KIND_UINTPTR = 12,
	KIND_ARRAY = 17,
	KIND_CHAN,
	KIND_FUNC,
	KIND_INTERFACE,
	KIND_MAP,
	KIND_POINTER,
	KIND_SLICE,
	KIND_STRING,
	KIND_STRUCT,
	KIND_UNSAFE_POINTER,
};

#endif
