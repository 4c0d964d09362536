/*
 * A scan from the target's bytes to the messages of proto/goheapd.proto: what the decoder does
 * between the stop and its answer. Everything is read first (spans, roots, graph, stacks), then
 * the caller is told that the memory is needed no more, then comes marking and reporting.
 */
#ifndef AGENT_REPORT_DECODE_H
#define AGENT_REPORT_DECODE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/report/label_selection.h"
#include "agent/target/memory.h"
#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct build_info;
struct decoded;
struct elf_symbols;
struct layout;
struct stopped_thread;
struct type_index;

/* All borrowed for the call, and for the life of what was decoded. */
struct decode_request {
	struct memory *memory;       /* of the snapshot, or of the stopped target */
	const struct layout *layout; /* relocated */
	const struct stopped_thread *threads;
	uint32_t thread_count;

	/* Of the target itself, opened before the stop; -1: none. */
	int maps_fd, pagemap_fd, status_fd;
	const char *exe; /* the executable as maps names it */

	/*
	 * The target stays stopped until done_reading: its page tables are walked after that call,
	 * and otherwise at once, while the target runs on.
	 */
	bool stopped;
	bool census; /* spans, goroutines and stacks only: no graph */
	bool want_memory, want_goroutines, want_dead_goroutines, want_mappings;
	/* Usage per label set, of what is selected, and by group if there is a key. */
	bool want_labels, want_label_detail;
	struct label_selection selection;
	bool has_group_by;
	struct label_text group_by;
	const struct build_info *build; /* for the modules of goroutines; NULL: not known */
	unsigned worker_count;
	uint64_t memory_limit; /* bytes; 0: none */

	const Goheapd__Analysis *analysis; /* NULL: nothing beyond the rest is asked for */
	bool keeps;                        /* questions come later: decode_run_kept */
	/* Of the program: what DWARF and symbols tell; NULL: nothing. And what is to be added. */
	const struct type_index *type_index;
	const struct elf_symbols *symbols;
	uint64_t type_bias;

	/* Called exactly once by a decode_run that succeeds: memory is not read any more. */
	struct error *(*done_reading)(void *arg);
	void *arg;
};

/*
 * Fills memory, heap, stacks, goroutines, mappings, labels, gc and rss_bytes, and of scan: depth,
 * bytes_read, gc_phase, gc_cycles, trust and warnings. The rest of scan, and identity (NULL), are
 * the caller's to fill with memory of malloc. The caller frees *ret with
 * goheapd__scan_result__free_unpacked(ret, NULL).
 */
must_check struct error *decode_run(const struct decode_request *request,
				    Goheapd__ScanResult **ret);

/* The same, and all that was decoded stays for later questions. The caller frees it. */
must_check struct error *decode_run_kept(const struct decode_request *request,
					 struct decoded **ret_decoded, Goheapd__ScanResult **ret);
void decoded_free(struct decoded *decoded);

/*
 * Gives back what only the first answer needs, and what reads the memory. The request's memory and
 * files are not used from now on.
 */
void decoded_trim(struct decoded *decoded);

/*
 * Adds what analysis asks for to a result, out of what is held since decoded_trim.
 * ERROR_UNSUPPORTED for what was not kept.
 */
must_check struct error *decode_answer(struct decoded *decoded, const Goheapd__Analysis *analysis,
				       Goheapd__ScanResult *result);

#endif
