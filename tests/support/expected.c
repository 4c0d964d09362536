#include "tests/support/expected.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "tests/support/assertions.h"

enum { FILE_MAX_BYTES = 1 << 16 };

static void expected_path(const char *name, char *path, size_t size)
{
	const char *folder = getenv("srcdir");

	snprintf(path, size, "%s/tests/unit/expected/%s", folder ? folder : ".", name);
}

void write_expected(const char *name, const struct text *text)
{
	char path[512];
	FILE *file;

	expected_path(name, path, sizeof(path));
	file = fopen(path, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(text->bytes.data, 1, text->bytes.size, file), text->bytes.size);
	fclose(file);
}

static char *read_expected(const char *name)
{
	char path[512];
	char *data = calloc(1, FILE_MAX_BYTES);
	FILE *file;

	assert_non_null(data);
	expected_path(name, path, sizeof(path));
	file = fopen(path, "re");
	if (!file)
		fail_msg("%s: %s", path, strerror(errno));
	assert_true(fread(data, 1, FILE_MAX_BYTES - 1, file) > 0);
	fclose(file);
	return data;
}

void check_text(struct text *text, const char *name)
{
	char *expected;

	assert_success(text_finish(text));
	if (getenv("UPDATE_EXPECTED"))
		write_expected(name, text);
	expected = read_expected(name);
	text_append(text, "", 1);
	assert_string_equal((const char *)text->bytes.data, expected);
	free(expected);
	text_fini(text);
}

void check_json(struct text *text, const char *name)
{
	struct text pretty;
	json_t *parsed;
	char *dumped;

	assert_success(text_finish(text));
	assert_int_equal(text->bytes.data[text->bytes.size - 1], '\n');
	assert_ptr_equal(memchr(text->bytes.data, '\n', text->bytes.size),
			 text->bytes.data + text->bytes.size - 1);
	parsed = json_loadb((const char *)text->bytes.data, text->bytes.size, JSON_ALLOW_NUL, NULL);
	assert_non_null(parsed);
	dumped = json_dumps(parsed, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
	text_init(&pretty);
	text_string(&pretty, dumped);
	text_string(&pretty, "\n");
	free(dumped);
	json_decref(parsed);
	text_fini(text);
	check_text(&pretty, name);
}
