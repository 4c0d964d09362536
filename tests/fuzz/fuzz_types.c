/* Type indexes, and whatever may be asked of them. */
#include "agent/binary/type_index.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/ask_types.h"

enum { ENTRY = 0x401000 }; /* of the function in the seed */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct type_index *index = NULL;
	struct error *err = type_index_open(data, size, &index);

	if (!err)
		ask_types(index, ENTRY);
	error_free(err);
	type_index_free(index);
	return 0;
}
