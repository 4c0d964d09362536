/* pclntab: the size of an inline tree in one byte, its content, and the table. */
#include "agent/binary/pclntab.h"
#include "tests/fuzz/fuzz.h"

enum { FUNCTIONS_MAX = 16, PCS_MAX = 64 };

static void ask_pc(const struct pclntab *table, const struct pclntab_func *func, taddr pc,
		   const uint8_t *tree, size_t tree_size)
{
	struct pclntab_line lines[PCLNTAB_LINES_MAX];
	struct pclntab_func found;
	bool is_found;
	uint32_t count;
	int32_t value;

	error_free(pclntab_frame_size(table, func, pc, &value));
	error_free(pclntab_pcdata(table, func, PCDATA_STACK_MAP, pc, &value));
	error_free(pclntab_lines(table, func, pc, true, tree, tree_size, lines, &count));
	error_free(pclntab_find(table, pc, &is_found, &found));
}

static void ask_function(const struct pclntab *table, uint32_t index, const uint8_t *tree,
			 size_t tree_size)
{
	struct pclntab_func func;
	taddr addr;
	struct error *err = pclntab_at(table, index, &func);

	if (err) {
		error_free(err);
		return;
	}
	error_free(pclntab_funcdata(table, &func, FUNCDATA_INLINE_TREE, 0x900000, &addr));
	for (taddr pc = func.entry; pc - func.entry < PCS_MAX; pc++)
		ask_pc(table, &func, pc, tree, tree_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pclntab *table = NULL;
	struct pclntab_func func;
	bool found;
	size_t tree_size;

	if (!size || data[0] > size - 1)
		return 0;
	tree_size = data[0];
	error_free(pclntab_open(data + 1 + tree_size, size - 1 - tree_size, 0x401000, 0, &table));
	if (!table)
		return 0;
	for (uint32_t i = 0; i < pclntab_func_count(table) && i < FUNCTIONS_MAX; i++)
		ask_function(table, i, data + 1, tree_size);
	error_free(pclntab_find_name(table, "main.none", &found, &func));
	pclntab_free(table);
	return 0;
}
