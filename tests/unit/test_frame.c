/*
 * Frames over a socketpair: every message of every kind comes back as it went, and whatever is not
 * one of ours ends the connection without a descriptor left behind.
 */
#include "proto/wire/frame.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/goheapd.pb-c.h"
#include "proto/wire/check.h"
#include "proto/wire/frame_queue.h"
#include "tests/support/assertions.h"

static const struct frame_kind *const kinds[] = {
	&frame_request,      &frame_answer,     &frame_keeper_order,  &frame_keeper_event,
	&frame_target_event, &frame_plan_event, &frame_decoder_order, &frame_decoder_event,
};
enum { KIND_COUNT = sizeof(kinds) / sizeof(kinds[0]) };

/* ---- messages with every field filled, made from their descriptors ---- */

enum { FILL_DEPTH = 6 };

static ProtobufCMessage *fill_message(const ProtobufCMessageDescriptor *descriptor, unsigned one_of,
				      unsigned depth);

static void *zalloc(size_t size)
{
	void *p = calloc(1, size);

	assert_non_null(p);
	return p;
}

static void fill_value(void *to, const ProtobufCFieldDescriptor *field, unsigned depth)
{
	const ProtobufCEnumDescriptor *words = field->descriptor;
	ProtobufCBinaryData bytes = { .len = 3 };
	uint32_t u32 = 0xfffffff0u ^ field->id;
	uint64_t u64 = 0x8000000000000001u ^ field->id;
	int32_t word;
	protobuf_c_boolean yes = 1;
	double number = 0.5;

	switch (field->type) {
	case PROTOBUF_C_TYPE_UINT32:
		memcpy(to, &u32, sizeof(u32));
		break;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		memcpy(to, &u64, sizeof(u64));
		break;
	case PROTOBUF_C_TYPE_DOUBLE:
		memcpy(to, &number, sizeof(number));
		break;
	case PROTOBUF_C_TYPE_BOOL:
		memcpy(to, &yes, sizeof(yes));
		break;
	case PROTOBUF_C_TYPE_ENUM:
		word = words->values[words->n_values - 1].value;
		memcpy(to, &word, sizeof(word));
		break;
	case PROTOBUF_C_TYPE_STRING:
		*(char **)to = strdup("word");
		break;
	case PROTOBUF_C_TYPE_BYTES:
		bytes.data = zalloc(bytes.len); /* NULs are fine in bytes */
		memcpy(to, &bytes, sizeof(bytes));
		break;
	case PROTOBUF_C_TYPE_MESSAGE:
		*(ProtobufCMessage **)to = fill_message(field->descriptor, 0, depth + 1);
		break;
	default:
		fail_msg("%s has a type that this test does not fill", field->name);
	}
}

static size_t value_size(const ProtobufCFieldDescriptor *field)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_UINT32:
		return 4;
	case PROTOBUF_C_TYPE_FIXED64:
		return 8;
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_MESSAGE:
		return sizeof(void *);
	default:
		fail_msg("%s repeats a type that this test does not fill", field->name);
		return 0;
	}
}

static void fill_field(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
		       unsigned depth)
{
	uint8_t *base = (uint8_t *)message;

	if (field->label == PROTOBUF_C_LABEL_REPEATED) {
		size_t count = 2, size = value_size(field);
		uint8_t *array;

		if (depth == FILL_DEPTH)
			return;
		array = zalloc(count * size);
		for (size_t i = 0; i < count; i++)
			fill_value(array + i * size, field, depth);
		memcpy(base + field->offset, &array, sizeof(array));
		memcpy(base + field->quantifier_offset, &count, sizeof(count));
		return;
	}
	if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
		memcpy(base + field->quantifier_offset, &field->id, sizeof(uint32_t));
	} else if (field->label == PROTOBUF_C_LABEL_OPTIONAL && field->quantifier_offset) {
		protobuf_c_boolean yes = 1;

		memcpy(base + field->quantifier_offset, &yes, sizeof(yes));
	}
	fill_value(base + field->offset, field, depth);
}

/* Every field filled; of a oneof the member number one_of. */
static ProtobufCMessage *fill_message(const ProtobufCMessageDescriptor *descriptor, unsigned one_of,
				      unsigned depth)
{
	ProtobufCMessage *message = zalloc(descriptor->sizeof_message);
	unsigned member = 0;

	protobuf_c_message_init(descriptor, message);
	for (unsigned i = 0; i < descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &descriptor->fields[i];

		if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) && member++ != one_of)
			continue;
		fill_field(message, field, depth);
	}
	return message;
}

static unsigned one_of_count(const ProtobufCMessageDescriptor *descriptor)
{
	unsigned count = 0;

	for (unsigned i = 0; i < descriptor->n_fields; i++)
		count += (descriptor->fields[i].flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
	return count;
}

/* ---- sockets ---- */

struct pair {
	int ours, theirs;
};

static int setup_pair(void **state)
{
	struct pair *pair = zalloc(sizeof(*pair));
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	*pair = (struct pair){ fds[0], fds[1] };
	*state = pair;
	return 0;
}

static int teardown_pair(void **state)
{
	struct pair *pair = *state;

	closep(&pair->ours);
	closep(&pair->theirs);
	free(pair);
	return 0;
}

static unsigned open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static void write_raw(int fd, const void *bytes, size_t size)
{
	assert_int_equal(write(fd, bytes, size), size);
}

/* Writes a frame of these bytes; reading it fails with that code. */
static void assert_refused(struct pair *pair, const struct frame_kind *kind, const void *bytes,
			   uint32_t size, enum error_code expected)
{
	struct frame_reader reader;
	struct frame frame = { 0 };
	enum frame_state state;
	uint8_t header[4];

	store_u32le(header, size);
	write_raw(pair->theirs, header, sizeof(header));
	write_raw(pair->theirs, bytes, size);
	frame_reader_init(&reader, pair->ours, kind);
	assert_error(frame_read(&reader, &frame, &state), expected);
	frame_reader_fini(&reader);
}

/* ---- tests ---- */

/* From one end of the pair to the other, through a queue since a frame may fill the socket. */
static void round_trip(struct pair *pair, const struct frame_kind *kind,
		       const ProtobufCMessage *message)
{
	struct frame_queue queue;
	struct frame_reader reader;
	struct frame frame = { 0 };
	enum frame_state state = FRAME_PARTIAL;
	size_t size = protobuf_c_message_get_packed_size(message);
	uint8_t *sent = zalloc(size + 1), *got = zalloc(size + 1);

	frame_queue_init(&queue, pair->theirs, kind, 0);
	frame_reader_init(&reader, pair->ours, kind);
	assert_success(frame_queue_add(&queue, message, NULL, 0));
	while (state == FRAME_PARTIAL) {
		assert_success(frame_queue_flush(&queue));
		assert_success(frame_read(&reader, &frame, &state));
	}
	assert_int_equal(state, FRAME_COMPLETE);
	assert_true(frame_queue_is_empty(&queue));
	assert_int_equal(protobuf_c_message_get_packed_size(frame.message), size);
	protobuf_c_message_pack(message, sent);
	protobuf_c_message_pack(frame.message, got);
	assert_memory_equal(sent, got, size);
	free(sent);
	free(got);
	frame_fini(&frame);
	frame_reader_fini(&reader);
	frame_queue_fini(&queue);
}

static void every_message_comes_back_as_it_went(void **state)
{
	struct pair *pair = *state;

	fcntl(pair->ours, F_SETFL, O_NONBLOCK);
	fcntl(pair->theirs, F_SETFL, O_NONBLOCK);
	for (unsigned k = 0; k < KIND_COUNT; k++) {
		unsigned members = one_of_count(kinds[k]->descriptor);

		assert_true(members > 0);
		for (unsigned i = 0; i < members; i++) {
			ProtobufCMessage *message = fill_message(kinds[k]->descriptor, i, 0);

			round_trip(pair, kinds[k], message);
			protobuf_c_message_free_unpacked(message, NULL);
		}
	}
}

static void every_truncation_is_refused(void **state)
{
	enum {
		ID_BYTES = 6
	}; /* the id alone is a request without a body: the session's to refuse */
	struct pair *pair = *state;
	ProtobufCMessage *message = fill_message(&goheapd__request__descriptor, 4, 0);
	size_t size = protobuf_c_message_get_packed_size(message);
	uint8_t *bytes = zalloc(size);

	protobuf_c_message_pack(message, bytes);
	for (uint32_t cut = 0; cut < size; cut++)
		if (cut != ID_BYTES)
			assert_refused(pair, &frame_request, bytes, cut, ERROR_FORMAT);
	free(bytes);
	protobuf_c_message_free_unpacked(message, NULL);
}

static void bytes_of_no_message_are_refused(void **state)
{
	static const struct {
		const char *what;
		const char *bytes;
		uint32_t size;
		enum error_code expected;
	} cases[] = {
		{ "trailing zero", "\x08\x01\x12\x02\x08\x01\x00", 7, ERROR_FORMAT },
		{ "unknown field", "\x08\x01\x12\x02\x08\x01\x7a\x00", 8, ERROR_FORMAT },
		{ "unknown field inside", "\x08\x01\x12\x04\x08\x01\x78\x01", 8, ERROR_FORMAT },
		{ "field twice", "\x08\x01\x08\x01\x12\x02\x08\x01", 8, ERROR_FORMAT },
		{ "out of order", "\x12\x02\x08\x01\x08\x01", 6, ERROR_FORMAT },
		{ "another wire type", "\x0d\x01\x00\x00\x00\x12\x02\x08\x01", 9, ERROR_FORMAT },
		{ "number too wide", "\x08\x80\x80\x80\x80\x10\x12\x02\x08\x01", 10, ERROR_FORMAT },
		{ "inner message too long", "\x08\x01\x12\x7f\x08\x01", 6, ERROR_FORMAT },
		{ "required field missing", "\x12\x02\x08\x01", 4, ERROR_FORMAT },
		{ "key too wide", "\x88\x80\x80\x80\x10\x01", 6, ERROR_FORMAT },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("# %s\n", cases[i].what);
		assert_refused(*state, &frame_request, cases[i].bytes, cases[i].size,
			       cases[i].expected);
	}
}

static void unknown_enum_values_are_refused(void **state)
{
	/* failure { code: 99 message: "" } in an answer */
	static const char answer[] = "\x08\x01\x3a\x04\x08\x63\x12\x00";

	assert_refused(*state, &frame_answer, answer, sizeof(answer) - 1, ERROR_FORMAT);
}

static void strings_hold_no_nul(void **state)
{
	/* hello { protocol: 1 version: "a\0" } in an answer */
	static const char answer[] = "\x08\x01\x12\x06\x08\x01\x12\x02"
				     "a\0";

	assert_refused(*state, &frame_answer, answer, sizeof(answer) - 1, ERROR_FORMAT);
}

static void a_long_length_is_refused_before_its_bytes_come(void **state)
{
	struct pair *pair = *state;
	struct frame_reader reader;
	struct frame frame;
	enum frame_state frame_state;
	uint8_t header[4];

	store_u32le(header, LIMIT_REQUEST_BYTES + 1);
	write_raw(pair->theirs, header, sizeof(header));
	frame_reader_init(&reader, pair->ours, &frame_request);
	assert_error(frame_read(&reader, &frame, &frame_state), ERROR_LIMIT);
	assert_null(reader.body);
	frame_reader_fini(&reader);
}

/* Memory nodes, each the only child of the one around it. */
static size_t nest(uint8_t *bytes, size_t size, unsigned depth)
{
	for (; depth; depth--) {
		size_t prefix = 1;
		uint8_t header[6] = { 5 << 3 | 2 };

		for (size_t left = size; prefix == 1 || left; left >>= 7)
			header[prefix++] = (uint8_t)((left & 0x7f) | (left >> 7 ? 0x80 : 0));
		memmove(bytes + prefix, bytes, size);
		memcpy(bytes, header, prefix);
		size += prefix;
	}
	return size;
}

static void deep_nesting_is_refused(void **state)
{
	enum { DEPTH = 20000 };
	uint8_t *bytes = zalloc((size_t)DEPTH * 6);
	const ProtobufCMessageDescriptor *node = &goheapd__memory_node__descriptor;

	(void)state;
	assert_success(wire_check(node, bytes, nest(bytes, 0, LIMIT_MESSAGE_DEPTH - 1), 1 << 20));
	assert_error(wire_check(node, bytes, nest(bytes, 0, LIMIT_MESSAGE_DEPTH), 1 << 20),
		     ERROR_LIMIT);
	assert_error(wire_check(node, bytes, nest(bytes, 0, DEPTH), 1 << 30), ERROR_LIMIT);
	free(bytes);
}

static void memory_is_counted_before_it_is_taken(void **state)
{
	/* 1,000 empty processes take two bytes each on the wire */
	uint8_t bytes[2000];
	const ProtobufCMessageDescriptor *list = &goheapd__process_list__descriptor;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i += 2)
		memcpy(bytes + i, "\x0a\x00", 2);
	assert_success(wire_check(list, bytes, sizeof(bytes), 1 << 20));
	assert_error(wire_check(list, bytes, sizeof(bytes), 100000), ERROR_LIMIT);
}

static void an_end_between_frames_is_no_error(void **state)
{
	struct pair *pair = *state;
	struct frame_reader reader;
	struct frame frame;
	enum frame_state frame_state;

	closep(&pair->theirs);
	pair->theirs = -1;
	frame_reader_init(&reader, pair->ours, &frame_request);
	assert_success(frame_read(&reader, &frame, &frame_state));
	assert_int_equal(frame_state, FRAME_END);
	frame_reader_fini(&reader);
}

static void an_end_within_a_frame_is_refused(void **state)
{
	struct pair *pair = *state;
	struct frame_reader reader;
	struct frame frame;
	enum frame_state frame_state;

	write_raw(pair->theirs, "\x06\0\0\0\x08", 5);
	closep(&pair->theirs);
	pair->theirs = -1;
	frame_reader_init(&reader, pair->ours, &frame_request);
	assert_error(frame_read(&reader, &frame, &frame_state), ERROR_FORMAT);
	frame_reader_fini(&reader);
}

static void frames_come_byte_by_byte(void **state)
{
	static const char bytes[] = "\x06\0\0\0\x08\x01\x12\x02\x08\x01";
	struct pair *pair = *state;
	struct frame_reader reader;
	struct frame frame = { 0 };
	enum frame_state frame_state = FRAME_PARTIAL;

	fcntl(pair->ours, F_SETFL, O_NONBLOCK);
	frame_reader_init(&reader, pair->ours, &frame_request);
	for (size_t i = 0; i < sizeof(bytes) - 1; i++) {
		assert_success(frame_read(&reader, &frame, &frame_state));
		assert_int_equal(frame_state, FRAME_PARTIAL);
		write_raw(pair->theirs, bytes + i, 1);
	}
	assert_success(frame_read(&reader, &frame, &frame_state));
	assert_int_equal(frame_state, FRAME_COMPLETE);
	assert_int_equal(((Goheapd__Request *)frame.message)->hello->protocol, 1);
	frame_fini(&frame);
	frame_reader_fini(&reader);
}

/* A release order for the keeper's agent: any message whose kind takes descriptors. */
static Goheapd__TargetEvent opened_event(Goheapd__TargetOpened *opened)
{
	Goheapd__TargetEvent event = GOHEAPD__TARGET_EVENT__INIT;

	goheapd__target_opened__init(opened);
	event.body_case = GOHEAPD__TARGET_EVENT__BODY_OPENED;
	event.opened = opened;
	return event;
}

static void descriptors_arrive_close_on_exec(void **state)
{
	struct pair *pair = *state;
	unsigned before = open_descriptors();
	Goheapd__TargetOpened opened;
	Goheapd__TargetEvent event = opened_event(&opened);
	struct frame_reader reader;
	struct frame frame = { 0 };
	enum frame_state frame_state;
	int fds[LIMIT_FRAME_FDS], taken;

	for (unsigned i = 0; i < LIMIT_FRAME_FDS; i++)
		fds[i] = pair->theirs;
	assert_success(
	    frame_send(pair->theirs, &frame_target_event, &event.base, fds, LIMIT_FRAME_FDS));
	frame_reader_init(&reader, pair->ours, &frame_target_event);
	assert_success(frame_read(&reader, &frame, &frame_state));
	assert_int_equal(frame.fd_count, LIMIT_FRAME_FDS);
	for (unsigned i = 0; i < frame.fd_count; i++)
		assert_int_equal(fcntl(frame.fds[i], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	taken = frame_take_fd(&frame, 3);
	frame_fini(&frame);
	assert_int_equal(open_descriptors(), before + 1);
	close(taken);
	assert_int_equal(frame_take_fd(&frame, 0), -1);
	frame_reader_fini(&reader);
}

static void more_descriptors_than_expected_are_refused_and_closed(void **state)
{
	struct pair *pair = *state;
	unsigned before = open_descriptors();
	int fds[LIMIT_FRAME_FDS];
	static const struct {
		const struct frame_kind *kind;
		unsigned count;
	} cases[] = { { &frame_request, 1 }, { &frame_keeper_event, 2 }, { &frame_answer, 16 } };

	for (unsigned i = 0; i < LIMIT_FRAME_FDS; i++)
		fds[i] = pair->theirs;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct frame_reader reader;
		struct frame frame;
		enum frame_state frame_state;
		uint8_t header[4] = { 0 };

		assert_int_equal(
		    frame_send_part(pair->theirs, header, sizeof(header), fds, cases[i].count), 4);
		frame_reader_init(&reader, pair->ours, cases[i].kind);
		assert_error(frame_read(&reader, &frame, &frame_state), ERROR_FORMAT);
		frame_reader_fini(&reader);
		assert_int_equal(open_descriptors(), before);
	}
}

static void descriptors_in_the_middle_are_refused(void **state)
{
	struct pair *pair = *state;
	unsigned before = open_descriptors();
	struct frame_reader reader;
	struct frame frame;
	enum frame_state frame_state;

	write_raw(pair->theirs, "\x06\0\0\0\x08", 5);
	assert_int_equal(
	    frame_send_part(pair->theirs, (const uint8_t *)"\x01\x12", 2, &pair->theirs, 1), 2);
	frame_reader_init(&reader, pair->ours, &frame_target_event);
	assert_error(frame_read(&reader, &frame, &frame_state), ERROR_FORMAT);
	frame_reader_fini(&reader);
	assert_int_equal(open_descriptors(), before);
}

static void a_message_over_its_limit_is_not_sent(void **state)
{
	struct pair *pair = *state;
	Goheapd__Request request = GOHEAPD__REQUEST__INIT;
	Goheapd__Scan scan = GOHEAPD__SCAN__INIT;

	scan.path.len = LIMIT_REQUEST_BYTES;
	scan.path.data = zalloc(scan.path.len);
	request.body_case = GOHEAPD__REQUEST__BODY_SCAN;
	request.scan = &scan;
	assert_error(frame_send(pair->theirs, &frame_request, &request.base, NULL, 0), ERROR_LIMIT);
	assert_error(frame_send(pair->theirs, &frame_request, &request.base, &pair->ours, 1),
		     ERROR_LIMIT);
	free(scan.path.data);
}

static void a_peer_that_is_gone_is_an_error_and_no_signal(void **state)
{
	struct pair *pair = *state;
	Goheapd__Request request = GOHEAPD__REQUEST__INIT;

	closep(&pair->ours);
	pair->ours = -1;
	assert_error(frame_send(pair->theirs, &frame_request, &request.base, NULL, 0),
		     ERROR_SYSTEM);
}

static void a_reader_that_does_not_read_fills_the_queue(void **state)
{
	enum { QUEUE_MAX = 1 << 16 };
	struct pair *pair = *state;
	struct frame_queue queue;
	Goheapd__TargetOpened opened;
	Goheapd__TargetEvent event = opened_event(&opened);
	struct error *err = NULL;
	unsigned before = open_descriptors(), count = 0;

	fcntl(pair->theirs, F_SETFL, O_NONBLOCK);
	opened.comm.len = 4096;
	opened.comm.data = zalloc(opened.comm.len);
	frame_queue_init(&queue, pair->theirs, &frame_target_event, QUEUE_MAX);
	for (; !err && count < 10000; count++) {
		err = frame_queue_add(&queue, &event.base, &pair->ours, 1);
		if (!err)
			err = frame_queue_flush(&queue);
	}
	assert_in_range(count, QUEUE_MAX / 4096, 9999);
	assert_error(err, ERROR_LIMIT);
	assert_in_range(queue.bytes_left, 1, QUEUE_MAX);
	frame_queue_fini(&queue);
	assert_int_equal(open_descriptors(), before);
	free(opened.comm.data);
}

int main(void)
{
#define WITH_PAIR(test) cmocka_unit_test_setup_teardown(test, setup_pair, teardown_pair)
	const struct CMUnitTest tests[] = {
		WITH_PAIR(every_message_comes_back_as_it_went),
		WITH_PAIR(every_truncation_is_refused),
		WITH_PAIR(bytes_of_no_message_are_refused),
		WITH_PAIR(unknown_enum_values_are_refused),
		WITH_PAIR(strings_hold_no_nul),
		WITH_PAIR(a_long_length_is_refused_before_its_bytes_come),
		cmocka_unit_test(deep_nesting_is_refused),
		cmocka_unit_test(memory_is_counted_before_it_is_taken),
		WITH_PAIR(an_end_between_frames_is_no_error),
		WITH_PAIR(an_end_within_a_frame_is_refused),
		WITH_PAIR(frames_come_byte_by_byte),
		WITH_PAIR(descriptors_arrive_close_on_exec),
		WITH_PAIR(more_descriptors_than_expected_are_refused_and_closed),
		WITH_PAIR(descriptors_in_the_middle_are_refused),
		WITH_PAIR(a_message_over_its_limit_is_not_sent),
		WITH_PAIR(a_peer_that_is_gone_is_an_error_and_no_signal),
		WITH_PAIR(a_reader_that_does_not_read_fills_the_queue),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
