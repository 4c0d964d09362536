/*
 * Messages of an agent that was taken over, as far as the wire lets them through, rendered in every
 * form.
 */
#include "daemon/render.h"
#include "proto/wire/check.h"
#include "tests/fuzz/fuzz.h"

typedef void renderer(struct text *text, const struct scan_view *view);

static renderer *const renderers[] = {
	render_json_memusage,   render_text_memusage, render_json_goroutines,
	render_text_goroutines, render_json_mappings, render_text_mappings,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const ProtobufCMessageDescriptor *descriptor = &goheapd__scan_result__descriptor;
	struct error *err = wire_check(descriptor, data, size, 1 << 20);
	struct scan_view view = { .id = "0", .dead = true };
	Goheapd__ScanResult *result;

	if (err) {
		error_free(err);
		return 0;
	}
	result = goheapd__scan_result__unpack(NULL, size, data);
	if (!result)
		return 0;
	view.result = result;
	for (size_t i = 0; i < sizeof(renderers) / sizeof(*renderers); i++) {
		struct text text;

		text_init(&text);
		renderers[i](&text, &view);
		error_free(text_finish(&text));
		text_fini(&text);
	}
	goheapd__scan_result__free_unpacked(result, NULL);
	return 0;
}
