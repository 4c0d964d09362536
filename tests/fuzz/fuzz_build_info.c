/* Build info: bytes from the header on; pointers of the older form lead into the same bytes. */
#include <string.h>

#include "agent/binary/build_info.h"
#include "proto/base/bytes.h"
#include "tests/fuzz/fuzz.h"

struct input {
	const uint8_t *data;
	size_t size;
};

static struct error *read_input(void *arg, taddr addr, void *buf, size_t size)
{
	const struct input *input = arg;

	if (addr > input->size || size > input->size - addr)
		return error_new(ERROR_FAULT, "outside");
	memcpy(buf, input->data + addr, size);
	return NULL;
}

static struct error *read_pointer(void *arg, taddr addr, taddr *ret)
{
	uint8_t raw[8];
	struct error *err = read_input(arg, addr, raw, sizeof(raw));

	if (!err)
		*ret = load_u64le(raw);
	return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };
	const struct build_info_reader reader = { read_input, read_pointer, &input };
	struct build_info *info = NULL;
	struct error *err = build_info_parse(data, size, &reader, &info);

	error_free(err);
	build_info_free(info);
	return 0;
}
