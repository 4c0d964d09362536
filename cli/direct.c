#include "cli/direct.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/agent_process.h"
#include "daemon/clock.h"
#include "daemon/paths.h"
#include "daemon/process.h"
#include "daemon/profile_query.h"
#include "daemon/render_diff.h"
#include "daemon/rfc3339.h"
#include "daemon/scan_ask.h"

enum { START_PATIENCE_US = 10 * 1000000, CANCEL_GRACE_US = 5 * 1000000 };

/* One question and what it takes to answer it. */
struct direct {
	const struct options *options;
	struct agent_client *agent;
	struct patience patience;
	struct text *text;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void answer_freep(Goheapd__Answer **answer)
{
	if (*answer)
		goheapd__answer__free_unpacked(*answer, NULL);
}

/* ---- which process ---- */

static struct error *find_by_name(const struct direct *direct, const char *name, uint32_t *ret)
{
	scoped(answer_freep) Goheapd__Answer *answer = NULL;
	struct error *err = process_list(direct->agent, &direct->patience, &answer);
	Goheapd__ProcessList *list;
	size_t count = 0;

	if (err)
		return err;
	list = answer->process_list;
	for (size_t i = 0; i < list->n_processes; i++) {
		if (!process_has_name(list->processes[i], name))
			continue;
		*ret = list->processes[i]->pid;
		count++;
	}
	if (count > 1)
		return error_new(ERROR_AMBIGUOUS,
				 "%zu processes are named \"%s\"; name one by its pid: goheap pids",
				 count, name);
	if (count == 0)
		return error_new(ERROR_NO_PROCESS, "no Go process is named \"%s\"; goheap pids",
				 name);
	return NULL;
}

static struct error *check_start(const struct options *options, const Goheapd__Process *process)
{
	char have[RFC3339_SIZE];

	rfc3339_format(process->start_time_ns, have);
	if (!options->params.start || strcmp(options->params.start, have) == 0)
		return NULL;
	return error_new(ERROR_PROCESS_CHANGED, "process %" PRIu32 " started at %s, not at %s",
			 process->pid, have, options->params.start);
}

/* The caller frees *ret, whose process is set. */
static struct error *find_process(const struct direct *direct, Goheapd__Answer **ret)
{
	const char *text = direct->options->process;
	scoped(answer_freep) Goheapd__Answer *answer = NULL;
	uint32_t pid = 0;
	struct error *err;

	if (strspn(text, "0123456789") == strlen(text))
		err = process_parse_pid(text, &pid);
	else
		err = find_by_name(direct, text, &pid);
	if (!err)
		err = process_look(direct->agent, pid, &direct->patience, &answer);
	if (!err)
		err = check_start(direct->options, answer->process);
	if (!err)
		*ret = take(answer);
	return err;
}

/* ---- answers ---- */

static struct error *answer_pids(const struct direct *direct)
{
	scoped(answer_freep) Goheapd__Answer *answer = NULL;
	struct error *err = process_list(direct->agent, &direct->patience, &answer);
	Goheapd__ProcessList *list;

	if (err)
		return err;
	list = answer->process_list;
	process_sort(list->processes, list->n_processes);
	if (direct->options->json)
		render_json_pids(direct->text, list->processes, list->n_processes);
	else
		render_text_pids(direct->text, list->processes, list->n_processes, now_ns());
	return NULL;
}

static struct error *answer_overview(const struct direct *direct, const Goheapd__Process *process)
{
	scoped(answer_freep) Goheapd__Answer *answer = NULL;
	struct error *err = process_overview(direct->agent, process, &direct->patience, &answer);

	if (err)
		return err;
	if (direct->options->json)
		render_json_overview(direct->text, answer->overview);
	else
		render_text_overview(direct->text, answer->overview, now_ns());
	return NULL;
}

static struct error *ask_of_objects(const struct direct *direct, struct object_query *query,
				    const Goheapd__Analysis **ret)
{
	const struct params *params = &direct->options->params;
	const struct command *command = direct->options->command;
	object_query_maker *make = command->query;
	struct error *err;

	*ret = NULL;
	if (command->text_query && !direct->options->json)
		make = command->text_query;
	if (!make)
		return NULL;
	if (params->contents && geteuid() != 0)
		return error_new(ERROR_FORBIDDEN, "--contents is for root, as a daemon has it");
	err = make(query, params);
	if (!err && !object_query_is_empty(query))
		*ret = &query->analysis;
	return err;
}

/* One scan as the command wants it. */
struct asked {
	char id[SCAN_ID_SIZE];
	struct object_query query;
	const Goheapd__Analysis *analysis; /* query's, or NULL */
	Goheapd__Answer *answer;
};

static void asked_fini(struct asked *asked)
{
	if (asked->answer)
		goheapd__answer__free_unpacked(asked->answer, NULL);
}

static struct error *ask_scan(const struct direct *direct, const Goheapd__Process *process,
			      struct asked *ret)
{
	const struct params *params = &direct->options->params;
	char path[128];
	struct scan_question question = {
		.pid = process->pid,
		.start_ticks = process->start_ticks,
		.mode = params->mode,
		.depth = params->depth,
		.parts =
		    direct->options->command->parts | (params->dead ? SCAN_DEAD_GOROUTINES : 0),
		.labels = &params->labels,
		.max_pause_us = params->max_pause_us,
		.timeout_us = params->timeout_us,
		.caller = getuid(),
		.path = path,
	};
	struct error *err = scan_make_id(ret->id);

	snprintf(path, sizeof(path), "/pid/%" PRIu32 "%s%s%s", process->pid,
		 direct->options->command->endpoint, direct->options->address ? "/" : "",
		 direct->options->address ? direct->options->address : "");
	if (!err)
		err = ask_of_objects(direct, &ret->query, &ret->analysis);
	question.analysis = ret->analysis;
	if (!err)
		err = scan_ask(direct->agent, &question, &direct->patience, CANCEL_GRACE_US,
			       &ret->answer, NULL);
	return err;
}

static struct scan_view view_of(const struct direct *direct, const struct asked *asked)
{
	const struct params *params = &direct->options->params;

	return (struct scan_view){ .result = asked->answer->scan,
				   .id = asked->id,
				   .dead = params->dead,
				   .labels = &params->labels,
				   .top = params->top,
				   .analysis = asked->analysis };
}

static struct error *answer_scan(const struct direct *direct, const Goheapd__Process *process)
{
	const struct command *command = direct->options->command;
	bool json = direct->options->json || command->is_census;
	struct asked asked scoped(asked_fini) = { 0 };
	struct error *err = ask_scan(direct, process, &asked);
	struct scan_view view;

	if (err)
		return err;
	view = view_of(direct, &asked);
	(json ? command->json : command->text)(direct->text, &view);
	return NULL;
}

/* ---- two scans ---- */

static struct error *let_time_pass(uint64_t us)
{
	const struct patience pause = { .deadline_us = clock_now_us() + us,
					.client = -1,
					.stop = -1 };
	struct error *err = patience_wait(&pause, -1);

	if (error_code(err) != ERROR_TIMEOUT)
		return err;
	error_free(err);
	return NULL;
}

static struct error *answer_diff(const struct direct *direct, const Goheapd__Process *process)
{
	struct asked from scoped(asked_fini) = { 0 };
	struct asked to scoped(asked_fini) = { 0 };
	Goheapd__ProfileQuery shown;
	struct diff_question question = { .query = &shown };
	struct error *err = profile_query(&direct->options->params, &shown);

	if (!err)
		err = ask_scan(direct, process, &from);
	if (!err)
		err = let_time_pass(direct->options->params.over_us);
	if (!err)
		err = ask_scan(direct, process, &to);
	if (err)
		return err;
	question.from = (struct diff_scan){ view_of(direct, &from), from.answer->scan };
	question.to = (struct diff_scan){ view_of(direct, &to), to.answer->scan };
	(direct->options->json ? render_json_diff : render_text_diff)(direct->text, &question);
	return NULL;
}

static struct error *answer_command(const struct direct *direct)
{
	scoped(answer_freep) Goheapd__Answer *answer = NULL;
	struct error *err;

	if (!direct->options->command->endpoint)
		return answer_pids(direct);
	err = find_process(direct, &answer);
	if (err)
		return err;
	if (direct->options->command->form == FORM_DIFF)
		return answer_diff(direct, answer->process);
	if (!direct->options->command->json)
		return answer_overview(direct, answer->process);
	return answer_scan(direct, answer->process);
}

/* ---- the agent ---- */

static struct error *run_agent(const struct agent_spec *spec, const struct options *options,
			       struct text *text)
{
	scoped(agent_client_freep) struct agent_client *agent = NULL;
	struct agent_source *source;
	struct direct direct = { .options = options, .text = text };
	struct error *err = agent_source_process(spec, &source);

	if (!err)
		err = agent_client_new(source, &agent);
	if (!err)
		err = agent_client_wait_ready(agent, START_PATIENCE_US);
	if (err)
		return err;
	direct.agent = agent;
	direct.patience =
	    (struct patience){ .deadline_us = clock_now_us() + options->params.timeout_us +
					      options->params.over_us,
			       .client = -1,
			       .stop = -1 };
	return answer_command(&direct);
}

struct error *direct_ask(const struct options *options, struct text *text)
{
	char *program scoped(freep) = options->agent ? strdup(options->agent) : NULL;
	char *run_dir scoped(freep) = NULL;
	char *cache_dir scoped(freep) = NULL;
	struct agent_spec spec;
	struct error *err = options_check_direct(options);

	if (err)
		return err;
	if (options->agent && !program)
		return &error_nomem;
	if (!program)
		err = agent_program_find(&program);
	if (!err)
		err = path_default(PATH_RUN, &run_dir);
	if (!err)
		err = path_default(PATH_CACHE, &cache_dir);
	if (err)
		return err;
	spec = (struct agent_spec){ .program = program,
				    .run_dir = run_dir,
				    .cache_dir = cache_dir,
				    .max_scan_memory = options->max_scan_memory };
	err = run_agent(&spec, options, text);
	return err ? err : text_finish(text);
}
