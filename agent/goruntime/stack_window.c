#include "agent/goruntime/stack_window.h"

#include <inttypes.h>
#include <stdlib.h>

#include "proto/base/bytes.h"

void stack_window_init(struct stack_window *window, struct memory *memory)
{
	*window = (struct stack_window){ .memory = memory };
}

void stack_window_fini(struct stack_window *window)
{
	free(window->bytes);
	*window = (struct stack_window){ 0 };
}

void stack_window_open(struct stack_window *window, taddr lo, taddr hi, size_t read_ahead)
{
	window->lo = lo;
	window->hi = hi;
	window->read_ahead = read_ahead < STACK_READ_AHEAD ? read_ahead : STACK_READ_AHEAD;
	window->size = 0;
}

void stack_window_narrow(struct stack_window *window, size_t read_ahead)
{
	if (read_ahead < window->read_ahead)
		window->read_ahead = read_ahead;
}

static struct error *load(struct stack_window *window, taddr addr, size_t size)
{
	uint64_t left = window->hi - addr;
	size_t wanted = size > window->read_ahead ? size : window->read_ahead;
	struct error *err;

	if (!window->bytes) {
		window->bytes = malloc(STACK_READ_AHEAD);
		if (!window->bytes)
			return &error_nomem;
	}
	if (wanted > left)
		wanted = (size_t)left;
	window->size = 0;
	err = memory_read_bulk(window->memory, addr, window->bytes, wanted);
	if (err)
		return err;
	window->base = addr;
	window->size = wanted;
	return NULL;
}

struct error *stack_window_view(struct stack_window *window, taddr addr, size_t size,
				const uint8_t **ret)
{
	if (addr < window->lo || addr > window->hi || size > window->hi - addr ||
	    size > STACK_VIEW_MAX)
		return error_new(ERROR_CORRUPT_TARGET,
				 "0x%" PRIx64 "+%zu is not in the stack from 0x%" PRIx64
				 " to 0x%" PRIx64,
				 addr, size, window->lo, window->hi);
	if (addr < window->base || addr - window->base > window->size ||
	    size > window->size - (addr - window->base)) {
		struct error *err = load(window, addr, size);

		if (err)
			return err;
	}
	*ret = window->bytes + (addr - window->base);
	return NULL;
}

struct error *stack_window_word(struct stack_window *window, taddr addr, uint64_t *ret)
{
	const uint8_t *bytes;
	struct error *err = stack_window_view(window, addr, 8, &bytes);

	if (err)
		return err;
	*ret = load_u64le(bytes);
	return NULL;
}
