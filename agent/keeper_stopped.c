#include "agent/keeper_stopped.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/target/threads.h"
#include "proto/base/bytes.h"
#include "proto/wire/limits.h"

enum { EXTENDED_STATE_MAX = 16 * KIB };

void keeper_stopped_free(Goheapd__TargetStopped *stopped)
{
	goheapd__target_stopped__free_unpacked(stopped, NULL);
}

static struct error *copy_general(const struct registers *registers, ProtobufCBinaryData *ret)
{
	uint8_t *bytes = malloc(REGISTERS_GENERAL * 8);

	if (!bytes)
		return &error_nomem;
	for (size_t i = 0; i < REGISTERS_GENERAL; i++)
		store_u64le(bytes + 8 * i, registers->general[i]);
	*ret = (ProtobufCBinaryData){ REGISTERS_GENERAL * 8, bytes };
	return NULL;
}

static struct error *read_vector(const struct threads *threads, uint32_t index,
				 Goheapd__StoppedThread *ret)
{
	uint8_t buffer[EXTENDED_STATE_MAX];
	size_t size;
	struct error *err = threads_extended_state(threads, index, buffer, sizeof(buffer), &size);

	if (err)
		return err;
	ret->vector.data = malloc(size ? size : 1);
	if (!ret->vector.data)
		return &error_nomem;
	memcpy(ret->vector.data, buffer, size);
	ret->vector.len = size;
	ret->has_vector = true;
	return NULL;
}

static struct error *read_thread(const struct threads *threads, uint32_t index,
				 Goheapd__StoppedThread *ret)
{
	const struct thread *thread = threads_at(threads, index);
	struct error *err;

	ret->tid = (uint32_t)thread->tid;
	ret->target_tid = (uint32_t)thread->namespace_tid;
	ret->pc = thread->registers.pc;
	ret->sp = thread->registers.sp;
	ret->bp = thread->registers.bp;
	ret->tls = thread->registers.tls;
	err = copy_general(&thread->registers, &ret->gpr);
	return err ? err : read_vector(threads, index, ret);
}

struct error *keeper_stopped_read(const struct threads *threads, Goheapd__TargetStopped **ret)
{
	uint32_t count = threads_count(threads);
	Goheapd__TargetStopped *stopped;
	struct error *err = NULL;

	if (count > LIMIT_THREADS)
		return error_new(ERROR_LIMIT, "%" PRIu32 " threads are more than %d", count,
				 LIMIT_THREADS);
	stopped = malloc(sizeof(*stopped));
	if (!stopped)
		return &error_nomem;
	goheapd__target_stopped__init(stopped);
	stopped->threads = calloc(count ? count : 1, sizeof(*stopped->threads));
	if (!stopped->threads)
		err = &error_nomem;
	for (uint32_t i = 0; !err && i < count; i++) {
		Goheapd__StoppedThread *thread = malloc(sizeof(*thread));

		if (!thread) {
			err = &error_nomem;
			break;
		}
		goheapd__stopped_thread__init(thread);
		stopped->threads[stopped->n_threads++] = thread;
		err = read_thread(threads, i, thread);
	}
	if (err) {
		keeper_stopped_free(stopped);
		return err;
	}
	*ret = stopped;
	return NULL;
}
