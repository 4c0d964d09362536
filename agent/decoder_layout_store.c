/*
 * What the index of a binary holds: how the layout is known (a byte), whether it is that of the
 * very version (a byte), the version whose it is (a string), the layout.
 */
#include <stdio.h>

#include "agent/decoder_layout.h"
#include "agent/goruntime/layout.h"
#include "proto/base/bytes.h"
#include "proto/base/cursor.h"

static struct error *store_text(const char *text, struct bytes *out)
{
	return bytes_append(out, text, strlen(text) + 1);
}

struct error *decoder_layout_store(const struct decoder_layout *layout, struct bytes *out)
{
	const uint8_t flags[] = { (uint8_t)layout->known_by, layout->exact };
	struct error *err = bytes_append(out, flags, sizeof(flags));

	if (!err)
		err = store_text(layout->table_version, out);
	return err ? err : layout_store(layout->layout, out);
}

static struct error *load_text(struct cursor *in, char ret[LAYOUT_VERSION_SIZE])
{
	const char *text;
	struct error *err = cursor_string(in, &text);

	if (err)
		return err;
	if (strlen(text) >= LAYOUT_VERSION_SIZE)
		return error_new(ERROR_FORMAT, "a version of %zu bytes", strlen(text));
	snprintf(ret, LAYOUT_VERSION_SIZE, "%s", text);
	return NULL;
}

struct error *decoder_layout_load(struct cursor *in, struct decoder_layout *ret)
{
	const uint8_t *flags;
	struct error *err = cursor_take(in, 2, &flags);

	if (err)
		return err;
	if ((flags[0] != LAYOUT_BY_DWARF && flags[0] != LAYOUT_BY_TABLE) || flags[1] > 1)
		return error_new(ERROR_FORMAT, "a layout that is known by %d, %d", flags[0],
				 flags[1]);
	err = load_text(in, ret->table_version);
	if (!err)
		err = layout_load(in, &ret->layout);
	if (err)
		return err;
	ret->known_by = flags[0];
	ret->exact = flags[1];
	return NULL;
}
