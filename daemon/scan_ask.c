#include "daemon/scan_ask.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/scan_check.h"
#include "proto/wire/limits.h"

/* Of the path, which is for the audit line. */
enum { PATH_MAX_BYTES = 4 * KIB };

static void fill(Goheapd__Scan *scan, const struct scan_question *question)
{
	size_t path_size = strlen(question->path);

	scan->pid = question->pid;
	scan->start_ticks = question->start_ticks;
	scan->mode = question->mode;
	scan->depth = question->depth;
	scan->max_pause_us = question->max_pause_us;
	scan->timeout_ms = (question->timeout_us + 999) / 1000;
	scan->has_want_memory = scan->has_want_goroutines = scan->has_want_dead_goroutines =
	    scan->has_want_mappings = scan->has_want_labels = true;
	scan->want_memory = question->parts & SCAN_MEMORY;
	scan->want_goroutines = question->parts & SCAN_GOROUTINES;
	scan->want_dead_goroutines = question->parts & SCAN_DEAD_GOROUTINES;
	scan->want_mappings = question->parts & SCAN_MAPPINGS;
	scan->want_labels = question->parts & SCAN_LABELS;
	scan->caller_uid = question->caller;
	scan->path.data = (uint8_t *)(uintptr_t)question->path;
	scan->path.len = path_size < PATH_MAX_BYTES ? path_size : PATH_MAX_BYTES;
}

/* pointers is the room for the list; it is borrowed, as are the labels. */
static void fill_labels(Goheapd__Scan *scan, const struct label_query *labels,
			Goheapd__LabelPair *pointers[LIMIT_SELECT_LABELS])
{
	for (size_t i = 0; i < labels->select_count; i++)
		pointers[i] = (Goheapd__LabelPair *)(uintptr_t)&labels->select[i];
	scan->n_select = labels->select_count;
	scan->select = pointers;
	scan->has_group_by = labels->has_by;
	scan->group_by = labels->by;
	scan->has_want_label_detail = true;
	scan->want_label_detail = labels->detail;
}

struct error *scan_ask(struct agent_client *agent, const struct scan_question *question,
		       const struct patience *patience, uint64_t grace_us, Goheapd__Answer **ret,
		       uint64_t *ret_retry_after_ms)
{
	Goheapd__Request request = GOHEAPD__REQUEST__INIT;
	Goheapd__Scan scan = GOHEAPD__SCAN__INIT;
	Goheapd__Keep keep = GOHEAPD__KEEP__INIT;
	Goheapd__LabelPair *pointers[LIMIT_SELECT_LABELS];
	Goheapd__Answer *answer;
	struct error *err;

	fill(&scan, question);
	if (question->labels)
		fill_labels(&scan, question->labels, pointers);
	if (question->keep_id) {
		keep.id.data = (uint8_t *)(uintptr_t)question->keep_id;
		keep.id.len = strlen(question->keep_id);
		keep.ms = question->keep_us / 1000;
		keep.has_implied = true;
		keep.implied = question->keep_implied;
		scan.keep = &keep;
	}
	scan.analysis = (Goheapd__Analysis *)(uintptr_t)question->analysis;
	request.body_case = GOHEAPD__REQUEST__BODY_SCAN;
	request.scan = &scan;
	err = agent_client_call(agent, &request, patience, grace_us, &answer, ret_retry_after_ms);
	if (err)
		return err;
	if (answer->body_case != GOHEAPD__ANSWER__BODY_SCAN) {
		goheapd__answer__free_unpacked(answer, NULL);
		return error_new(ERROR_SYSTEM, "the agent answered something else than a scan");
	}
	err = scan_check(answer->scan);
	if (!err)
		err = scan_check_analysis(answer->scan, question->analysis);
	if (err) {
		goheapd__answer__free_unpacked(answer, NULL);
		return err;
	}
	*ret = answer;
	return NULL;
}

struct error *scan_make_id(char id[SCAN_ID_SIZE])
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return error_system(errno, "getrandom");
	snprintf(id, SCAN_ID_SIZE, "%016" PRIx64, number);
	return NULL;
}
