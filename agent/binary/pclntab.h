/*
 * The pc-line table of one module: functions by pc and by name, files, lines, inlined calls, stack
 * maps. Every form in use: magic 0xfffffffb (go1.2 to 1.15), 0xfffffffa (1.16, 1.17), 0xfffffff0
 * (1.18, 1.19) and 0xfffffff1 (since 1.20). Sources: debug/gosym/pclntab.go, runtime/symtab.go,
 * cmd/link/internal/ld/pcln.go of each version.
 *
 * The table borrows its bytes, which come from the ELF section or from a copy of the target's
 * memory, and trusts none of them.
 */
#ifndef AGENT_BINARY_PCLNTAB_H
#define AGENT_BINARY_PCLNTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct pclntab;

/*
 * size bytes from the header on. text is where the module's text begins at run time
 * (moduledata.text; the header's own textStart is 0 since go1.26), load_bias what must be added to
 * absolute addresses in the bytes (magic 0xfffffffb read from a file), 0 for bytes from memory.
 * The caller frees *ret before the bytes.
 */
must_check struct error *pclntab_open(const void *bytes, size_t size, taddr text,
				      uint64_t load_bias, struct pclntab **ret);
void pclntab_free(struct pclntab *table);
DEFINE_FREEP(pclntab, pclntab_free)

/* Magic, text ranges of split sections: see the .c. Number of functions. */
uint32_t pclntab_func_count(const struct pclntab *table);

/* A function; names borrow from the table. */
struct pclntab_func {
	taddr entry, end;
	const char *name;
	int32_t args;         /* bytes of arguments; PCLNTAB_ARGS_UNKNOWN */
	uint32_t deferreturn; /* offset from entry, 0 if none */
	uint8_t func_id;      /* numbers differ by version: prefer names */
	uint8_t flag;         /* PCLNTAB_FLAG_*; 0 where the format has none */
	uint32_t start_line;  /* 0 where the format has none */
	uint64_t record;      /* private: where its record lies */
	uint32_t pcsp, pcfile, pcln, cu_offset, npcdata;
	uint8_t nfuncdata;
};

enum {
	PCLNTAB_ARGS_UNKNOWN = INT32_MIN,
	PCLNTAB_FLAG_TOP_FRAME = 1,
	PCLNTAB_FLAG_SP_WRITE = 2,
	PCLNTAB_FLAG_ASM = 4,
};

/* False if no function of the table holds pc. Records that do not parse are errors. */
must_check struct error *pclntab_find(const struct pclntab *table, taddr pc, bool *ret_found,
				      struct pclntab_func *ret);
must_check struct error *pclntab_at(const struct pclntab *table, uint32_t index,
				    struct pclntab_func *ret);
/* By exact name, the first; a walk over all functions. */
must_check struct error *pclntab_find_name(const struct pclntab *table, const char *name,
					   bool *ret_found, struct pclntab_func *ret);

/* Tables by meaning; their indices differ by format. */
enum pclntab_pcdata { PCDATA_UNSAFE_POINT, PCDATA_STACK_MAP, PCDATA_INLINE_TREE };
enum pclntab_funcdata {
	FUNCDATA_ARGS_MAPS,
	FUNCDATA_LOCALS_MAPS,
	FUNCDATA_STACK_OBJECTS,
	FUNCDATA_INLINE_TREE,
};

/* Bytes between sp and the return address at pc (the pcsp table). */
must_check struct error *pclntab_frame_size(const struct pclntab *table,
					    const struct pclntab_func *func, taddr pc,
					    int32_t *ret);

/* Value of a pcdata table at pc; -1 where the function has none. */
must_check struct error *pclntab_pcdata(const struct pclntab *table,
					const struct pclntab_func *func, enum pclntab_pcdata which,
					taddr pc, int32_t *ret);

/*
 * Where the bytes of a funcdata lie in the target, 0 if there are none. gofunc is
 * moduledata.gofunc (ignored by the formats that store absolute pointers).
 */
must_check struct error *pclntab_funcdata(const struct pclntab *table,
					  const struct pclntab_func *func,
					  enum pclntab_funcdata which, taddr gofunc, taddr *ret);

/* One line of a call chain at a pc. */
struct pclntab_line {
	const char *function;
	const char *file; /* NULL if unknown */
	uint32_t line;    /* 0 if unknown */
	bool inlined;
};

enum { PCLNTAB_LINES_MAX = 64 };

/*
 * The source lines of pc, inlined calls first, the function itself last. is_call: pc is a return
 * address, so that the call before it is meant. inline_tree is the content of the inline tree's
 * funcdata, inline_tree_size 0 if there is none or it is not wanted. At most PCLNTAB_LINES_MAX.
 */
must_check struct error *pclntab_lines(const struct pclntab *table, const struct pclntab_func *func,
				       taddr pc, bool is_call, const uint8_t *inline_tree,
				       size_t inline_tree_size, struct pclntab_line *ret_lines,
				       uint32_t *ret_count);

#endif
