#include "tests/support/walked_heap.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/graph.h"
#include "agent/analysis/heap_copy.h"
#include "agent/analysis/mark.h"
#include "agent/analysis/root_set.h"
#include "agent/goruntime/object_header.h"
#include "tests/support/assertions.h"

enum { RECORD_SIZE = 48, TEXT_SIZE = 64 << 10 };

/* ---- making it ---- */

static void make_layout(struct layout *layout)
{
	layout->const_malloc_header_size = (struct layout_constant){ .value = 8, .known = true };
	layout->const_min_size_for_malloc_header =
	    (struct layout_constant){ .value = WALKED_HEADER_ABOVE, .known = true };
	layout->special_finalizer.size = RECORD_SIZE;
	layout->special_finalizer_fn = (struct layout_field){ .offset = 16, .size = 8 };
	layout->finalizer.size = 40;
	layout->finalizer_fn = (struct layout_field){ .offset = 0, .size = 8 };
	layout->finalizer_arg = (struct layout_field){ .offset = 8, .size = 8 };
	layout->finalizer_fint = (struct layout_field){ .offset = 24, .size = 8 };
	layout->finalizer_ot = (struct layout_field){ .offset = 32, .size = 8 };
}

void walked_heap_init(struct walked_heap *w)
{
	*w = (struct walked_heap){
		.heap = fake_heap_new(),
		.types = fake_types_new(),
		.variables = fake_variables_new(),
		.data = fake_memory_new(),
		.next_variable = WALKED_DATA + 64,
		.way = { .threads = 1 },
	};
	fake_memory_map(w->data, WALKED_DATA, WALKED_DATA_SIZE);
	make_layout(&w->layout);
}

void walked_heap_finish(struct walked_heap *w)
{
	fake_heap_finish(w->heap);
	assert_success(root_set_new(fake_heap_spans(w->heap), &w->roots));
}

void walked_heap_fini(struct walked_heap *w)
{
	free(w->places);
	reference_walk_free(w->walk);
	mark_free(w->mark);
	graph_free(w->graph);
	graph_free(w->noted);
	root_set_free(w->roots);
	fake_memory_free(w->data);
	variable_table_free(w->variables);
	go_types_free(w->types);
	fake_heap_free(w->heap);
}

static const struct span *span_of(const struct walked_heap *w, uint32_t object)
{
	return span_table_span_of(fake_heap_spans(w->heap), object);
}

static uint64_t header_words(const struct walked_heap *w, uint32_t object)
{
	return object_header_bytes(&w->layout, span_of(w, object)) / 8;
}

taddr walked_heap_address(const struct walked_heap *w, uint32_t object)
{
	return fake_heap_addr(w->heap, object) + header_words(w, object) * 8;
}

void walked_heap_point(struct walked_heap *w, uint32_t from, uint64_t word, uint32_t to)
{
	fake_heap_point(w->heap, from, header_words(w, from) + word, walked_heap_address(w, to));
}

void walked_heap_store(struct walked_heap *w, uint32_t object, uint64_t word, uint64_t value)
{
	fake_heap_store(w->heap, object, header_words(w, object) + word, value);
}

/* ---- roots ---- */

void walked_heap_root_at(struct walked_heap *w, enum root_kind kind, uint32_t goroutine, taddr slot,
			 uint64_t value)
{
	struct root_sink *sink = root_set_sink(w->roots);
	const struct root root = {
		.kind = kind, .goroutine = goroutine, .slot = slot, .value = value
	};

	assert_success(sink->add(sink, &root));
}

/* Zeros lie between variables, so that no word is beside another one's. */
static taddr take_room(struct walked_heap *w, uint32_t words)
{
	taddr addr = w->next_variable;

	w->next_variable += (words + 4) * UINT64_C(8);
	assert_true(w->next_variable <= WALKED_RECORDS);
	return addr;
}

taddr walked_heap_variable(struct walked_heap *w, enum root_kind kind, uint32_t goroutine,
			   const char *name, type_id type, const uint64_t *words, uint32_t count)
{
	const struct variable variable = {
		.name = name,
		.package = "main",
		.kind = kind == ROOT_DATA ? VARIABLE_GLOBAL : VARIABLE_LOCAL,
		.addr = take_room(w, count),
		.size = count * UINT64_C(8),
		.type = type,
	};

	fake_variables_add(w->variables, &variable);
	for (uint32_t i = 0; i < count; i++)
		fake_memory_store(w->data, variable.addr + i * UINT64_C(8), 8, words[i]);
	for (uint32_t i = 0; i < count; i++)
		walked_heap_root_at(w, kind, goroutine, variable.addr + i * UINT64_C(8), words[i]);
	return variable.addr;
}

void walked_heap_words(struct walked_heap *w, const char *name, type_id type, uint64_t first,
		       uint64_t second, uint64_t third)
{
	const uint64_t words[] = { first, second, third };

	walked_heap_variable(w, ROOT_DATA, ROOT_NO_GOROUTINE, name, type, words,
			     (uint32_t)(go_type_at(w->types, type)->size / 8));
}

void walked_heap_root(struct walked_heap *w, enum root_kind kind, uint32_t goroutine,
		      const char *name, type_id type, uint32_t object)
{
	const uint64_t word = walked_heap_address(w, object);

	walked_heap_variable(w, kind, goroutine, name, type, &word, 1);
}

void walked_heap_global(struct walked_heap *w, const char *name, type_id type, uint32_t object)
{
	walked_heap_root(w, ROOT_DATA, ROOT_NO_GOROUTINE, name, type, object);
}

taddr walked_heap_finalizer(struct walked_heap *w, taddr taken, taddr pointer)
{
	static const taddr at = WALKED_RECORDS + 64;

	fake_memory_store(w->data, at + RECORD_SIZE - 16, 8, taken);
	fake_memory_store(w->data, at + RECORD_SIZE - 8, 8, pointer);
	return at;
}

/* ---- memory that is not what it was ---- */

struct odd_memory {
	struct memory memory;
	const struct walked_heap *w;
};

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* What stands at an address instead: the same however it is read. */
static uint64_t lie(const struct walked_heap *w, taddr addr, uint64_t truth)
{
	const struct span_table *spans = fake_heap_spans(w->heap);
	uint64_t x = mix(addr + w->way.lies);
	uint32_t object = 1 + (uint32_t)((x >> 8) % (span_table_object_end(spans) - 1));

	switch (x % 8) {
	case 0:
		return fake_heap_addr(w->heap, object);
	case 1:
		return fake_heap_addr(w->heap, object) + (x >> 40) % 512;
	case 2:
		return (x >> 8) % 32;
	case 3:
		return UINT64_C(1) << (x >> 8) % 64;
	default:
		return truth;
	}
}

static struct error *read_odd(struct memory *memory, taddr addr, void *buf, size_t size)
{
	const struct walked_heap *w = ((const struct odd_memory *)memory)->w;
	const struct walked_way *way = &w->way;
	struct error *err = memory_read_bulk(fake_heap_memory(w->heap), addr, buf, size);

	if (way->hole_size && addr < way->hole + way->hole_size && way->hole < addr + size && !err)
		err = error_new(ERROR_FAULT, "0x%" PRIx64 ": not readable", addr);
	if (err || !way->lies)
		return err;
	for (uint64_t i = -addr % 8; size >= 8 && i <= size - 8; i += 8) {
		uint64_t word;

		memcpy(&word, (uint8_t *)buf + i, sizeof(word));
		word = lie(w, addr + i, word);
		memcpy((uint8_t *)buf + i, &word, sizeof(word));
	}
	return NULL;
}

static const struct memory_ops odd_ops = { .read = read_odd, .free = memory_fini };

/* ---- walking ---- */

static void mark_once(struct walked_heap *w)
{
	struct memory *memory = fake_heap_memory(w->heap);
	const struct span_table *spans = fake_heap_spans(w->heap);

	if (w->mark)
		return;
	assert_success(graph_read(memory, &w->layout, spans, 2, 0, &w->graph));
	assert_success(graph_read_noted(memory, &w->layout, spans, 2, 0, &w->noted));
	assert_success(mark_run(w->graph, w->roots, fake_heap_specials(w->heap), 2, &w->mark));
}

static struct error *walk_over(struct walked_heap *w, struct memory *memory)
{
	const struct reference_input input = {
		.memory = fake_memory_memory(w->data),
		.layout = &w->layout,
		.graph = w->way.noted ? w->noted : w->graph,
		.roots = w->roots,
		.specials = fake_heap_specials(w->heap),
		.variables = w->variables,
		.types = w->types,
		.types_only = w->way.types_only,
		.thread_count = w->way.threads,
		.memory_limit = w->way.memory_limit,
	};
	struct error *err = reference_walk_new(&input, &w->walk);

	return err ? err : reference_walk_run(w->walk, w->mark, memory);
}

struct error *walked_heap_try(struct walked_heap *w)
{
	struct odd_memory odd = { .w = w };
	struct memory *copy scoped(memory_freep) = NULL;
	struct error *err;

	mark_once(w);
	reference_walk_free(w->walk);
	w->walk = NULL;
	memory_init(&odd.memory, &odd_ops);
	if (w->way.from_copy)
		assert_success(heap_copy_new(&odd.memory, fake_heap_spans(w->heap), 1, 0, &copy));
	err = walk_over(w, copy ? copy : &odd.memory);
	memory_fini(&odd.memory);
	return err;
}

/* ---- checks of any walk ---- */

static void check_place(struct walked_heap *w, uint32_t place)
{
	uint32_t object = reference_walk_object(w->walk, place);
	struct reference reference = reference_walk_at(w->walk, place);

	assert_true(mark_is_live(w->mark, object));
	assert_int_equal(w->places[object], 0);
	w->places[object] = place + 1;
	assert_int_equal(reference.bytes, span_of(w, object)->elem_size);
	assert_true(reference.used_bytes <= reference.bytes);
	if (reference.parent == REFERENCE_ROOT)
		assert_true(reference.root < reference_walk_root_count(w->walk));
	else
		assert_true(reference.parent < place);
}

/* What the object at a place leads to, of all that was met from it. */
static uint32_t count_children(const struct walked_heap *w, uint32_t place, bool *confirmed)
{
	uint32_t edge_count, count = 0;
	const uint32_t *edges =
	    graph_edges(w->graph, reference_walk_object(w->walk, place), &edge_count);

	for (uint32_t i = 0; i < edge_count; i++) {
		uint32_t child = edges[i] ? w->places[edges[i]] : 0;

		if (!child || confirmed[child - 1] ||
		    reference_walk_at(w->walk, child - 1).parent != place)
			continue;
		confirmed[child - 1] = true;
		count++;
	}
	return count;
}

static void check_edges(const struct walked_heap *w)
{
	uint32_t count = reference_walk_count(w->walk), confirmed_count = 0, not_roots = 0;
	bool *confirmed = calloc(count + 1, sizeof(*confirmed));

	assert_non_null(confirmed);
	for (uint32_t place = 0; place < count; place++) {
		confirmed_count += count_children(w, place, confirmed);
		not_roots += reference_walk_at(w->walk, place).parent != REFERENCE_ROOT;
	}
	assert_int_equal(confirmed_count, not_roots);
	free(confirmed);
}

struct walked_totals walked_heap_totals(const struct walked_heap *w)
{
	uint32_t end = span_table_object_end(fake_heap_spans(w->heap));
	struct walked_totals totals = { 0 };

	for (uint32_t object = 1; object < end; object++) {
		uint64_t size = span_of(w, object)->elem_size;
		bool is_array;

		if (!mark_is_live(w->mark, object))
			continue;
		totals.objects++;
		totals.bytes += size;
		if (reference_walk_type(w->walk, object, &is_array) == TYPE_UNKNOWN)
			continue;
		totals.typed_objects++;
		totals.typed_bytes += size;
	}
	return totals;
}

/* Objects run by run are the same as one by one. */
static void check_runs(const struct walked_heap *w)
{
	uint32_t end = span_table_object_end(fake_heap_spans(w->heap)), run;

	for (uint32_t object = 1; object < end; object += run) {
		bool is_live, is_array, is_one_array;
		type_id type;

		run = reference_walk_run_of(w->walk, object, end, &is_live, &type, &is_array);
		assert_in_range(run, 1, end - object);
		for (uint32_t i = object; i < object + run; i++) {
			assert_int_equal(mark_is_live(w->mark, i), is_live);
			if (!is_live)
				continue;
			assert_int_equal(reference_walk_type(w->walk, i, &is_one_array), type);
			assert_int_equal(is_one_array, is_array);
		}
	}
}

void walked_heap_run(struct walked_heap *w)
{
	uint32_t end = span_table_object_end(fake_heap_spans(w->heap));

	assert_success(walked_heap_try(w));
	free(w->places);
	w->places = calloc(end, sizeof(*w->places));
	assert_non_null(w->places);
	check_runs(w);
	if (w->way.types_only)
		return;
	assert_int_equal(reference_walk_count(w->walk), mark_totals(w->mark)->live_objects);
	for (uint32_t place = 0; place < reference_walk_count(w->walk); place++)
		check_place(w, place);
	check_edges(w);
}

void walked_heap_run_both(struct walked_heap *w)
{
	struct walked_answer noted;

	w->way.noted = true;
	walked_heap_run(w);
	noted = walked_heap_answer(w);
	w->way.noted = false;
	walked_heap_run(w);
	walked_heap_check_answer(w, &noted);
	free(noted.text);
}

/* ---- asking ---- */

static struct reference reference_of(const struct walked_heap *w, uint32_t object)
{
	assert_true(w->places[object]);
	return reference_walk_at(w->walk, w->places[object] - 1);
}

static void put_frames(FILE *out, const struct walked_heap *w, uint32_t step)
{
	const char *const *frames;
	uint32_t count = reference_walk_step_frames(w->walk, step, &frames);

	for (uint32_t i = 0; i < count; i++)
		fprintf(out, " / %s", frames[i]);
}

static void put_root(FILE *out, const struct walked_heap *w, uint32_t number)
{
	struct reference_root root = reference_walk_root(w->walk, number);

	fputs(root.name, out);
	if (root.goroutine != ROOT_NO_GOROUTINE)
		fprintf(out, " of %" PRIu32, root.goroutine);
}

static void put_chain(FILE *out, const struct walked_heap *w, uint32_t object)
{
	struct reference reference = reference_of(w, object);

	if (reference.parent == REFERENCE_ROOT)
		put_root(out, w, reference.root);
	else
		put_chain(out, w, reference_walk_object(w->walk, reference.parent));
	put_frames(out, w, reference.step);
}

const char *walked_heap_chain(const struct walked_heap *w, uint32_t object)
{
	static char text[TEXT_SIZE];
	FILE *out = fmemopen(text, sizeof(text), "w");

	assert_non_null(out);
	put_chain(out, w, object);
	assert_int_equal(fclose(out), 0);
	return text;
}

const char *walked_heap_type(const struct walked_heap *w, uint32_t object)
{
	static char text[256];
	bool is_array;
	type_id type = reference_walk_type(w->walk, object, &is_array);

	snprintf(text, sizeof(text), "%s%s", is_array ? "[]" : "",
		 go_type_at(w->types, type)->name);
	return text;
}

uint64_t walked_heap_used(const struct walked_heap *w, uint32_t object)
{
	return reference_of(w, object).used_bytes;
}

uint32_t walked_heap_parent(const struct walked_heap *w, uint32_t object)
{
	struct reference reference = reference_of(w, object);

	return reference.parent == REFERENCE_ROOT
		   ? (uint32_t)OBJECT_NONE
		   : reference_walk_object(w->walk, reference.parent);
}

struct walked_answer walked_heap_answer(const struct walked_heap *w)
{
	struct walked_answer answer = { 0 };
	FILE *out = open_memstream(&answer.text, &answer.size);

	assert_non_null(out);
	for (uint32_t place = 0; place < reference_walk_count(w->walk); place++) {
		struct reference reference = reference_walk_at(w->walk, place);
		uint32_t object = reference_walk_object(w->walk, place);

		fprintf(out, "%" PRIu32 " %s %" PRIu64 " ", object, walked_heap_type(w, object),
			reference.used_bytes);
		if (reference.parent == REFERENCE_ROOT)
			put_root(out, w, reference.root);
		else
			fprintf(out, "%" PRIu32, reference_walk_object(w->walk, reference.parent));
		put_frames(out, w, reference.step);
		fputc('\n', out);
	}
	assert_int_equal(fclose(out), 0);
	return answer;
}

void walked_heap_check_answer(const struct walked_heap *w, const struct walked_answer *expected)
{
	struct walked_answer answer = walked_heap_answer(w);
	const char *line = answer.text, *wanted = expected->text;

	/* The line where they differ tells more than that they do. */
	for (size_t size; *line && *wanted; line += size + 1, wanted += size + 1) {
		size = strcspn(line, "\n");
		if (strncmp(line, wanted, size + 1) != 0)
			fail_msg("%.*s, expected %.*s", (int)size, line, (int)strcspn(wanted, "\n"),
				 wanted);
	}
	assert_int_equal(answer.size, expected->size);
	free(answer.text);
}
