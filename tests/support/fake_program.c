#include "tests/support/fake_program.h"

#include <assert.h>
#include <string.h>

#include "proto/base/bytes.h"

enum {
	PCLNTAB = 0x800000,
	PCLNTAB_SIZE = 0x4000,
	GOFUNC = 0x900000,
	GOFUNC_SIZE = 0x4000,
	GLOBALS = 0xa00000,
	DATA = 0xb00000,
	ROOM = 0xc00000,
	ROOM_SIZE = 0x200000,
	GOROUTINES_MAX = 64,
	MODULEDATA_SIZE = 384,
	G_SIZE = 256,
	M_SIZE = 128,

	HEADER_WORDS = 8, /* after the prefix of 8 bytes */
	NO_FUNCDATA = -1,
};

#define PLACE(offset, size) ((struct layout_field){ offset, size })

static void lay_out_g(struct layout *l)
{
	l->g.size = G_SIZE;
	l->g_stack_lo = PLACE(0, 8);
	l->g_stack_hi = PLACE(8, 8);
	l->g_panic = PLACE(32, 8);
	l->g_defer = PLACE(40, 8);
	l->g_m = PLACE(48, 8);
	l->g_sched_sp = PLACE(56, 8);
	l->g_sched_pc = PLACE(64, 8);
	l->g_sched_ctxt = PLACE(80, 8);
	l->g_syscall_sp = PLACE(104, 8);
	l->g_syscall_pc = PLACE(112, 8);
	l->g_stack_top = PLACE(128, 8);
	l->g_status = PLACE(144, 4);
	l->g_id = PLACE(152, 8);
	l->g_wait_since = PLACE(168, 8);
	l->g_wait_reason = PLACE(176, 1);
	l->g_async_safe_point = PLACE(180, 1);
	l->g_parent_id = PLACE(184, 8);
	l->g_locked_m = PLACE(192, 8);
	l->g_created_pc = PLACE(200, 8);
	l->g_start_pc = PLACE(208, 8);
	l->g_running_cleanups = PLACE(216, 1);
	l->g_vector_state = PLACE(224, 8);
	l->vector_state.size = 64;
}

static void lay_out_m(struct layout *l)
{
	l->m.size = M_SIZE;
	l->m_g0 = PLACE(0, 8);
	l->m_procid = PLACE(64, 8);
	l->m_gsignal = PLACE(72, 8);
	l->m_curg = PLACE(80, 8);
	l->m_p = PLACE(88, 8);
	l->m_all_link = PLACE(96, 8);
	l->m_vdso_sp = PLACE(104, 8);
	l->m_vdso_pc = PLACE(112, 8);
}

static void lay_out_moduledata(struct layout *l)
{
	l->moduledata.size = MODULEDATA_SIZE;
	l->moduledata_pclntab_header = PLACE(0, 8);
	l->moduledata_funcname_slice = PLACE(8, 24);
	l->moduledata_cu_slice = PLACE(32, 24);
	l->moduledata_file_slice = PLACE(56, 24);
	l->moduledata_pc_slice = PLACE(80, 24);
	l->moduledata_pcln_slice = PLACE(104, 24);
	l->moduledata_text = PLACE(176, 8);
	l->moduledata_etext = PLACE(184, 8);
	l->moduledata_noptrdata = PLACE(192, 8);
	l->moduledata_enoptrdata = PLACE(200, 8);
	l->moduledata_data = PLACE(208, 8);
	l->moduledata_edata = PLACE(216, 8);
	l->moduledata_bss = PLACE(224, 8);
	l->moduledata_ebss = PLACE(232, 8);
	l->moduledata_noptrbss = PLACE(240, 8);
	l->moduledata_enoptrbss = PLACE(248, 8);
	l->moduledata_types = PLACE(256, 8);
	l->moduledata_etypes = PLACE(264, 8);
	l->moduledata_rodata = PLACE(272, 8);
	l->moduledata_gofunc = PLACE(280, 8);
	l->moduledata_bad = PLACE(288, 1);
	l->moduledata_data_mask_count = PLACE(296, 4);
	l->moduledata_data_mask = PLACE(304, 8);
	l->moduledata_bss_mask_count = PLACE(312, 4);
	l->moduledata_bss_mask = PLACE(320, 8);
	l->moduledata_next = PLACE(328, 8);
}

static void lay_out_stack(struct layout *l)
{
	l->defer.size = 48;
	l->defer_heap = PLACE(0, 1);
	l->defer_fn = PLACE(24, 8);
	l->defer_link = PLACE(32, 8);
	l->stack_object_record.size = 16;
	l->stack_object_record_offset = PLACE(0, 4);
	l->stack_object_record_size = PLACE(4, 4);
	l->stack_object_record_ptr_bytes = PLACE(8, 4);
	l->stack_object_record_mask_offset = PLACE(12, 4);
}

static void lay_out_globals(struct layout *l)
{
	l->global_firstmoduledata = (struct layout_global){ GLOBALS, MODULEDATA_SIZE };
	l->global_allgs = (struct layout_global){ GLOBALS + 0x400, 24 };
	l->global_allglen = (struct layout_global){ GLOBALS + 0x440, 8 };
	l->global_allgptr = (struct layout_global){ GLOBALS + 0x448, 8 };
	l->global_allm = (struct layout_global){ GLOBALS + 0x450, 8 };
	l->global_sched = (struct layout_global){ GLOBALS + 0x460, 16 };
	l->sched_m_next = PLACE(0, 8);
	l->sched_m_freed = PLACE(8, 8);
	l->global_fing_status = (struct layout_global){ GLOBALS + 0x458, 4 };
	l->global_wait_reason_strings = (struct layout_global){ GLOBALS + 0x480, 48 };
}

taddr fake_program_pc(unsigned function, unsigned offset)
{
	return FAKE_TEXT + function * FAKE_FUNCTION_SIZE + offset;
}

taddr fake_program_room(struct fake_program *program, size_t size)
{
	taddr addr = program->next;

	program->next += (size + 63) / 64 * 64;
	assert(program->next <= ROOM + ROOM_SIZE);
	return addr;
}

static void store(struct fake_program *program, taddr addr, size_t width, uint64_t value)
{
	fake_memory_store(program->memory, addr, width, value);
}

void fake_program_set(struct fake_program *program, taddr addr, struct layout_field field,
		      uint64_t value)
{
	store(program, addr + field.offset, field.size, value);
}

/* Writes one thing after the other. */
struct writer {
	struct fake_program *program;
	taddr base, next, end;
};

static uint32_t put(struct writer *writer, size_t width, uint64_t value)
{
	taddr at = writer->next;

	assert(at + width <= writer->end);
	store(writer->program, at, width, value);
	writer->next += width;
	return (uint32_t)(at - writer->base);
}

static uint32_t put_text(struct writer *writer, const char *text)
{
	uint32_t at = (uint32_t)(writer->next - writer->base);

	for (size_t i = 0; i <= strlen(text); i++)
		put(writer, 1, (uint8_t)text[i]);
	return at;
}

static void put_varint(struct writer *writer, uint32_t value)
{
	for (; value >= 0x80; value >>= 7)
		put(writer, 1, (value & 0x7f) | 0x80);
	put(writer, 1, value);
}

/* A pc-value table of one value for a whole function. */
static uint32_t put_value(struct writer *writer, int32_t value)
{
	uint32_t at = (uint32_t)(writer->next - writer->base);
	int32_t change = value + 1;

	if (!change) {
		put_varint(writer, 0);
	} else {
		put_varint(writer, (uint32_t)(change < 0 ? -2 * change - 1 : 2 * change));
	}
	put_varint(writer, FAKE_FUNCTION_SIZE);
	put(writer, 1, 0);
	return at;
}

static void put_bits(struct writer *writer, const char *bits)
{
	for (size_t i = 0; i < strlen(bits); i += 8) {
		uint8_t byte = 0;

		for (size_t j = i; j < i + 8 && j < strlen(bits); j++)
			byte |= (uint8_t)((bits[j] == '1') << (j - i));
		put(writer, 1, byte);
	}
}

static void align(struct writer *writer, size_t size)
{
	while (writer->next % size)
		put(writer, 1, 0);
}

/* A stackmap with one map. */
static uint32_t put_map(struct writer *writer, const char *bits)
{
	uint32_t at;

	if (!bits)
		return (uint32_t)NO_FUNCDATA;
	align(writer, 8);
	at = put(writer, 4, 1);
	put(writer, 4, strlen(bits));
	put_bits(writer, bits);
	return at;
}

/* rodata is gofunc: masks lie among the funcdata. */
static uint32_t put_objects(struct writer *writer, const struct fake_function *function)
{
	uint32_t masks[8], at;

	if (!function->object_count)
		return (uint32_t)NO_FUNCDATA;
	assert(function->object_count <= 8);
	for (unsigned i = 0; i < function->object_count; i++) {
		masks[i] = (uint32_t)(writer->next - writer->base);
		put_bits(writer, function->objects[i].mask);
	}
	align(writer, 8);
	at = put(writer, 8, function->object_count);
	for (unsigned i = 0; i < function->object_count; i++) {
		const struct fake_object *object = &function->objects[i];

		put(writer, 4, (uint32_t)object->offset);
		put(writer, 4, object->size);
		put(writer, 4, 8 * strlen(object->mask));
		put(writer, 4, masks[i]);
	}
	return at;
}

/* A function's parts in the tables that records point into. */
struct parts {
	uint32_t name, frame, map_index, arg_map, locals, objects;
};

static void put_record(struct writer *writer, const struct fake_function *function, unsigned index,
		       const struct parts *parts)
{
	const uint32_t numbers[] = { index * FAKE_FUNCTION_SIZE,
				     parts->name,
				     (uint32_t)function->args,
				     function->deferreturn,
				     parts->frame,
				     0,
				     0,
				     2,
				     0,
				     0 };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		put(writer, 4, numbers[i]);
	put(writer, 1, 0);
	put(writer, 1, function->flag);
	put(writer, 1, 0);
	put(writer, 1, 3);
	put(writer, 4, 0);
	put(writer, 4, parts->map_index);
	put(writer, 4, parts->arg_map);
	put(writer, 4, parts->locals);
	put(writer, 4, parts->objects);
}

static void put_header(struct writer *writer, unsigned count, taddr names, taddr pctab, taddr funcs)
{
	const uint64_t words[HEADER_WORDS] = { count,
					       0,
					       0,
					       names - PCLNTAB,
					       names - PCLNTAB,
					       names - PCLNTAB,
					       pctab - PCLNTAB,
					       funcs - PCLNTAB };

	put(writer, 8, UINT64_C(0x08010000fffffff1));
	for (int i = 0; i < HEADER_WORDS; i++)
		put(writer, 8, words[i]);
}

static struct writer part(struct fake_program *program, taddr from, size_t size)
{
	return (struct writer){ program, from, from, from + size };
}

static void make_pclntab(struct fake_program *program, const struct fake_function *functions,
			 unsigned count)
{
	struct writer header = part(program, PCLNTAB, 0x100);
	struct writer names = part(program, PCLNTAB + 0x100, 0xf00);
	struct writer pctab = part(program, PCLNTAB + 0x1000, 0x1000);
	struct writer funcs = part(program, PCLNTAB + 0x2000, 0x2000);
	struct writer funcdata = part(program, GOFUNC, GOFUNC_SIZE);
	taddr functab = funcs.next;

	put_header(&header, count, names.base, pctab.base, funcs.base);
	put(&pctab, 1, 0);
	funcs.next += 8 * (taddr)count + 4;
	for (unsigned i = 0; i < count; i++) {
		const struct fake_function *function = &functions[i];
		const struct parts parts = {
			put_text(&names, function->name),
			put_value(&pctab, function->frame),
			put_value(&pctab, 0),
			put_map(&funcdata, function->arg_map),
			put_map(&funcdata, function->locals),
			put_objects(&funcdata, function),
		};

		align(&funcs, 4);
		store(program, functab + 8 * i, 4, i * FAKE_FUNCTION_SIZE);
		store(program, functab + 8 * i + 4, 4, funcs.next - functab);
		put_record(&funcs, function, i, &parts);
	}
	store(program, functab + 8 * (taddr)count, 4, count * FAKE_FUNCTION_SIZE);
}

static void set_slice(struct fake_program *program, struct layout_field field, taddr start,
		      uint64_t count)
{
	store(program, program->moduledata + field.offset, 8, start);
	store(program, program->moduledata + field.offset + 8, 8, count);
	store(program, program->moduledata + field.offset + 16, 8, count);
}

static void make_module(struct fake_program *program, unsigned count)
{
	const struct layout *l = &program->layout;
	const taddr m = program->moduledata = l->global_firstmoduledata.addr;
	const taddr mask = fake_program_room(program, FAKE_DATA_WORDS / 8);

	fake_program_set(program, m, l->moduledata_pclntab_header, PCLNTAB);
	set_slice(program, l->moduledata_pcln_slice, PCLNTAB + 0x2000, 0x2000);
	fake_program_set(program, m, l->moduledata_text, FAKE_TEXT);
	fake_program_set(program, m, l->moduledata_etext,
			 FAKE_TEXT + (uint64_t)count * FAKE_FUNCTION_SIZE);
	fake_program_set(program, m, l->moduledata_rodata, GOFUNC);
	fake_program_set(program, m, l->moduledata_gofunc, GOFUNC);
	fake_program_set(program, m, l->moduledata_data, DATA);
	fake_program_set(program, m, l->moduledata_edata, DATA + 8 * FAKE_DATA_WORDS);
	fake_program_set(program, m, l->moduledata_data_mask, mask);
	fake_program_set(program, m, l->moduledata_data_mask_count, FAKE_DATA_WORDS);
	fake_program_set(program, m, l->moduledata_bss, DATA + 8 * FAKE_DATA_WORDS);
	fake_program_set(program, m, l->moduledata_ebss, DATA + 16 * FAKE_DATA_WORDS);
	/* bss has no mask, as in a module that is being loaded */
}

void fake_program_init(struct fake_program *program, const struct fake_function *functions,
		       unsigned count)
{
	*program = (struct fake_program){ .memory = fake_memory_new(), .next = ROOM };
	lay_out_g(&program->layout);
	lay_out_m(&program->layout);
	lay_out_moduledata(&program->layout);
	lay_out_stack(&program->layout);
	lay_out_globals(&program->layout);
	fake_memory_map(program->memory, PCLNTAB, PCLNTAB_SIZE);
	fake_memory_map(program->memory, GOFUNC, GOFUNC_SIZE);
	fake_memory_map(program->memory, GLOBALS, 0x1000);
	fake_memory_map(program->memory, DATA, 16 * FAKE_DATA_WORDS);
	fake_memory_map(program->memory, ROOM, ROOM_SIZE);
	make_pclntab(program, functions, count);
	make_module(program, count);
	store(program, program->layout.global_allgs.addr, 8,
	      fake_program_room(program, 8 * GOROUTINES_MAX));
}

void fake_program_fini(struct fake_program *program)
{
	fake_memory_free(program->memory);
}

static taddr make_g(struct fake_program *program)
{
	const taddr g = fake_program_room(program, G_SIZE);
	const taddr stack = fake_program_room(program, FAKE_STACK_SIZE);

	fake_program_set(program, g, program->layout.g_stack_lo, stack);
	fake_program_set(program, g, program->layout.g_stack_hi, stack + FAKE_STACK_SIZE);
	return g;
}

static uint64_t load(struct fake_program *program, taddr addr)
{
	return load_u64le(fake_memory_bytes(program->memory, addr, 8));
}

taddr fake_program_stack(struct fake_program *program, taddr g)
{
	return load(program, g + program->layout.g_stack_hi.offset);
}

taddr fake_program_g(struct fake_program *program, uint64_t pc, uint64_t sp_below_top)
{
	const struct layout *l = &program->layout;
	const taddr g = make_g(program);
	const taddr array = load(program, l->global_allgs.addr);
	const taddr hi = fake_program_stack(program, g);

	assert(program->g_count < GOROUTINES_MAX);
	store(program, array + 8 * program->g_count++, 8, g);
	store(program, l->global_allgs.addr + 8, 8, program->g_count);
	store(program, l->global_allglen.addr, 8, program->g_count);
	store(program, l->global_allgptr.addr, 8, array);
	fake_program_set(program, g, l->g_status, GOROUTINE_WAITING);
	fake_program_set(program, g, l->g_id, program->g_count);
	fake_program_set(program, g, l->g_sched_pc, pc);
	fake_program_set(program, g, l->g_sched_sp, hi - sp_below_top);
	fake_program_set(program, g, l->g_stack_top, hi - 8);
	return g;
}

taddr fake_program_push(struct fake_program *program, taddr g, const uint64_t *words,
			unsigned count)
{
	taddr first = fake_program_stack(program, g) - 8 * (taddr)count;

	for (unsigned i = 0; i < count; i++)
		store(program, first + 8 * (taddr)i, 8, words[i]);
	return first;
}

taddr fake_program_m(struct fake_program *program, taddr g, uint32_t thread)
{
	const struct layout *l = &program->layout;
	const taddr m = fake_program_room(program, M_SIZE);

	fake_program_set(program, m, l->m_g0, make_g(program));
	fake_program_set(program, m, l->m_gsignal, make_g(program));
	fake_program_set(program, m, l->m_procid, thread);
	fake_program_set(program, m, l->m_p, 1);
	fake_program_set(program, m, l->m_curg, g);
	fake_program_set(program, m, l->m_all_link, program->last_m);
	if (g)
		fake_program_set(program, g, l->g_m, m);
	store(program, l->global_allm.addr, 8, m);
	store(program, l->global_sched.addr, 8, load(program, l->global_sched.addr) + 1);
	program->last_m = m;
	return m;
}

static struct error *add_root(struct root_sink *sink, const struct root *root)
{
	struct fake_sink *fake = (struct fake_sink *)sink;

	if (fake->count == fake->limit)
		return error_new(ERROR_OUT_OF_MEMORY, "the sink is full");
	fake->roots[fake->count++] = *root;
	return NULL;
}

void fake_sink_init(struct fake_sink *sink)
{
	sink->sink.add = add_root;
	sink->count = 0;
	sink->limit = sizeof(sink->roots) / sizeof(sink->roots[0]);
}

unsigned fake_sink_count(const struct fake_sink *sink, enum root_kind kind, uint64_t value)
{
	unsigned found = 0;

	for (unsigned i = 0; i < sink->count; i++)
		found += sink->roots[i].kind == kind && sink->roots[i].value == value;
	return found;
}
