#include "agent/report/memory_kind.h"

static const struct {
	const char *id, *title;
	bool counts_touched;
} kinds[MEMORY_KIND_COUNT] = {
	[MEMORY_TEXT] = { "text", "machine code of the program", false },
	[MEMORY_READONLY] = { "readonly", "constants, types and tables of the program", false },
	[MEMORY_DATA] = { "data", "initialised globals", false },
	[MEMORY_BSS] = { "bss", "zeroed globals", false },
	[MEMORY_HEAP] = { "heap", "Go heap", false },
	[MEMORY_HEAP_METADATA] = { "heap_metadata", "the Go runtime's own tables", true },
	[MEMORY_THREAD_STACKS] = { "thread_stacks", "stacks of threads in C", true },
	[MEMORY_FILE_MAPS] = { "file_maps", "mapped files", false },
	[MEMORY_C_MEMORY] = { "c_memory", "memory of C and mmap", true },
	[MEMORY_SHARED] = { "shared", "shared memory", false },
	[MEMORY_UNEXPLAINED] = { "unexplained", "unexplained", true },
};

const char *memory_kind_id(enum memory_kind kind)
{
	return kinds[kind].id;
}

const char *memory_kind_title(enum memory_kind kind)
{
	return kinds[kind].title;
}

bool memory_kind_counts_touched(enum memory_kind kind)
{
	return kinds[kind].counts_touched;
}
