#include "cli/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "daemon/quantity.h"
#include "daemon/render.h"
#include "daemon/scan_ask.h"

const struct command commands[] = {
	{ .name = "pids",
	  .params = PARAM_TIMEOUT,
	  .summary = "list the Go processes that you may ask about",
	  .example = "goheap pids" },
	{ .name = "show",
	  .endpoint = "",
	  .params = PARAM_TIMEOUT | PARAM_START,
	  .summary = "what is known of a process without stopping it, and what a scan would cost",
	  .example = "goheap show 1234" },
	{ .name = "memusage",
	  .endpoint = "/memusage",
	  .params = (PARAMS_SCAN | PARAMS_LABELS) & ~PARAM_FORMAT,
	  .parts = SCAN_MEMORY | SCAN_LABELS,
	  .query = object_query_memusage,
	  .text_query = object_query_memusage_text,
	  .json = render_json_memusage,
	  .text = render_text_memusage,
	  .summary = "what a process's memory is used for, and who holds it",
	  .example = "goheap memusage 1234 --label tenant=acme --by job" },
	{ .name = "labels",
	  .endpoint = "/memusage",
	  .params = PARAMS_SCAN & ~(PARAM_FORMAT | PARAM_DEPTH | PARAM_KEEP),
	  .parts = SCAN_MEMORY | SCAN_LABELS,
	  .json = render_json_memusage,
	  .is_census = true,
	  .summary = "how many goroutines each label set has, without a walk of the heap",
	  .example = "goheap labels 1234" },
	{ .name = "goroutines",
	  .endpoint = "/goroutines",
	  .params = (PARAMS_SCAN | PARAM_DEAD | PARAM_RETAINED) & ~PARAM_FORMAT,
	  .parts = SCAN_GOROUTINES,
	  .query = object_query_goroutines,
	  .json = render_json_goroutines,
	  .text = render_text_goroutines,
	  .summary = "its goroutines with their stacks",
	  .example = "goheap goroutines checkout" },
	{ .name = "mappings",
	  .endpoint = "/mappings",
	  .params = PARAMS_SCAN & ~PARAM_FORMAT,
	  .parts = SCAN_MAPPINGS,
	  .json = render_json_mappings,
	  .text = render_text_mappings,
	  .summary = "its memory mappings and what each holds",
	  .example = "goheap mappings 1234 --format json" },
	{ .name = "histogram",
	  .endpoint = "/histogram",
	  .params = (PARAMS_SCAN | PARAM_TOP | PARAM_RETAINED | PARAM_GARBAGE) & ~PARAM_FORMAT,
	  .query = object_query_histogram,
	  .json = render_json_histogram,
	  .text = render_text_histogram,
	  .summary = "its objects by type",
	  .example = "goheap histogram 1234 --top 20 --retained" },
	{ .name = "objects",
	  .endpoint = "/objects",
	  .params = (PARAMS_SCAN | PARAM_TYPE | PARAM_MIN_BYTES | PARAM_LIMIT | PARAM_CURSOR |
		     PARAM_RETAINED) &
		    ~PARAM_FORMAT,
	  .query = object_query_objects,
	  .json = render_json_objects,
	  .text = render_text_objects,
	  .summary = "its live objects, page by page",
	  .example = "goheap objects 1234 --type main.Order --min-bytes 4096" },
	{ .name = "object",
	  .endpoint = "/object",
	  .params = (PARAMS_SCAN | PARAM_CONTENTS) & ~PARAM_FORMAT,
	  .has_address = true,
	  .query = object_query_object,
	  .json = render_json_object,
	  .text = render_text_object,
	  .summary = "one object: its fields, who points to it, and what keeps it alive",
	  .example = "goheap object 1234 0xc000123000" },
	{ .name = "dominators",
	  .endpoint = "/dominators",
	  .params = (PARAMS_SCAN | PARAM_OBJECT | PARAM_LIMIT | PARAM_CURSOR) & ~PARAM_FORMAT,
	  .query = object_query_dominators,
	  .json = render_json_dominators,
	  .text = render_text_dominators,
	  .summary = "what would be freed with what, from the roots or from an object on",
	  .example = "goheap dominators 1234 --object 0xc000123000" },
	{ .name = "profile",
	  .endpoint = "/profile",
	  .params = (PARAMS_SCAN | PARAMS_PROFILE) & ~(PARAM_FORMAT | PARAM_DEPTH),
	  .query = object_query_profile,
	  .json = render_pprof_profile,
	  .text = render_pprof_profile,
	  .form = FORM_FILE,
	  .summary = "who keeps its memory alive, as a file for go tool pprof",
	  .example = "goheap profile 1234 -o before.pb.gz" },
	{ .name = "top",
	  .endpoint = "/profile",
	  .params = (PARAMS_SCAN | PARAMS_PROFILE | PARAM_TOP) & ~(PARAM_FORMAT | PARAM_DEPTH),
	  .own_params = PARAM_TOP,
	  .query = object_query_profile,
	  .json = render_pprof_profile,
	  .text = render_pprof_profile,
	  .form = FORM_TOP,
	  .summary = "what holds the most of its memory: roots, types, chains of references",
	  .example = "goheap top 1234 --top 20" },
	{ .name = "why",
	  .endpoint = "/profile",
	  .params = (PARAMS_SCAN | PARAMS_PROFILE | PARAM_TOP) & ~(PARAM_FORMAT | PARAM_DEPTH),
	  .own_params = PARAM_TOP,
	  .query = object_query_profile,
	  .json = render_pprof_profile,
	  .text = render_pprof_profile,
	  .form = FORM_WHY,
	  .has_subject = true,
	  .summary = "what keeps a type alive, or what a variable keeps alive",
	  .example = "goheap why 1234 main.Session" },
	{ .name = "diff",
	  .endpoint = "/diff",
	  .params = (PARAMS_SCAN | PARAMS_PROFILE | PARAM_SINCE | PARAM_OVER) &
		    ~(PARAM_FORMAT | PARAM_DEPTH),
	  .parts = SCAN_LABELS,
	  .query = object_query_diff,
	  .form = FORM_DIFF,
	  .summary = "what has grown: over some time, or since a scan that is kept",
	  .example = "goheap diff 1234 --over 30s" },
	{ .name = "scans",
	  .endpoint = "/scans",
	  .params = PARAM_TIMEOUT | PARAM_START,
	  .summary = "the scans that are kept of it, which --scan asks again without a stop",
	  .example = "goheap scans 1234" },
	{ 0 },
};

enum option_id {
	OPT_FORMAT = 256,
	OPT_SOCKET,
	OPT_AGENT,
	OPT_DIRECT,
	OPT_MAX_SCAN_MEMORY,
	OPT_OUTPUT,
	OPT_HELP,
	OPT_VERSION,
	OPT_PARAMS, /* what follows are the daemon's parameters */
	OPT_MODE = OPT_PARAMS,
	OPT_DEPTH,
	OPT_MAX_PAUSE,
	OPT_MAX_AGE,
	OPT_TIMEOUT,
	OPT_START,
	OPT_DEAD,
	OPT_LABEL,
	OPT_BY,
	OPT_DETAIL,
	OPT_SCAN,
	OPT_KEEP,
	OPT_TYPE,
	OPT_MIN_BYTES,
	OPT_LIMIT,
	OPT_CURSOR,
	OPT_TOP,
	OPT_RETAINED,
	OPT_GARBAGE,
	OPT_CONTENTS,
	OPT_OBJECT,
	OPT_MAX_DEPTH,
	OPT_MAX_SAMPLES,
	OPT_SAMPLE,
	OPT_WITH_LABELS,
	OPT_SINCE,
	OPT_OVER,
};

static const struct option long_options[] = {
	{ "format", required_argument, NULL, OPT_FORMAT },
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "agent", required_argument, NULL, OPT_AGENT },
	{ "direct", no_argument, NULL, OPT_DIRECT },
	{ "max-scan-memory", required_argument, NULL, OPT_MAX_SCAN_MEMORY },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "mode", required_argument, NULL, OPT_MODE },
	{ "depth", required_argument, NULL, OPT_DEPTH },
	{ "max-pause", required_argument, NULL, OPT_MAX_PAUSE },
	{ "max-age", required_argument, NULL, OPT_MAX_AGE },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "start", required_argument, NULL, OPT_START },
	{ "dead", no_argument, NULL, OPT_DEAD },
	{ "label", required_argument, NULL, OPT_LABEL },
	{ "by", required_argument, NULL, OPT_BY },
	{ "detail", no_argument, NULL, OPT_DETAIL },
	{ "scan", required_argument, NULL, OPT_SCAN },
	{ "keep", required_argument, NULL, OPT_KEEP },
	{ "type", required_argument, NULL, OPT_TYPE },
	{ "min-bytes", required_argument, NULL, OPT_MIN_BYTES },
	{ "limit", required_argument, NULL, OPT_LIMIT },
	{ "cursor", required_argument, NULL, OPT_CURSOR },
	{ "top", required_argument, NULL, OPT_TOP },
	{ "retained", no_argument, NULL, OPT_RETAINED },
	{ "garbage", no_argument, NULL, OPT_GARBAGE },
	{ "contents", no_argument, NULL, OPT_CONTENTS },
	{ "object", required_argument, NULL, OPT_OBJECT },
	{ "max-depth", required_argument, NULL, OPT_MAX_DEPTH },
	{ "max-samples", required_argument, NULL, OPT_MAX_SAMPLES },
	{ "sample", required_argument, NULL, OPT_SAMPLE },
	{ "labels", no_argument, NULL, OPT_WITH_LABELS },
	{ "since", required_argument, NULL, OPT_SINCE },
	{ "over", required_argument, NULL, OPT_OVER },
	{ "output", required_argument, NULL, OPT_OUTPUT },
	{ NULL, 0, NULL, 0 },
};

/* By option, from OPT_PARAMS on. */
static const struct {
	unsigned bit;
	const char *name, *help;
} parameters[] = {
	{ PARAM_MODE, "mode",
	  "  --mode MODE        auto, fork (stopped only for a snapshot) or stop (stopped while\n"
	  "                     memory is copied); default auto\n" },
	{ PARAM_DEPTH, "depth",
	  "  --depth DEPTH      full, or census: no object graph, cheap, for huge processes\n" },
	{ PARAM_MAX_PAUSE, "max_pause",
	  "  --max-pause SEC    how long it may stand still in all; default 0.25\n" },
	{ PARAM_MAX_AGE, "max_age",
	  "  --max-age SEC      an earlier answer no older than this will do\n" },
	{ PARAM_TIMEOUT, "timeout", "  --timeout SEC      give up after this time; default 60\n" },
	{ PARAM_START, "start",
	  "  --start TIME       only if the process started then, as show --format json says\n" },
	{ PARAM_DEAD, "dead", "  --dead             list dead goroutines too\n" },
	{ PARAM_LABEL, "label",
	  "  --label KEY=VALUE  say what the goroutines with this label hold; given several "
	  "times,\n"
	  "                     those with all of them\n" },
	{ PARAM_BY, "by",
	  "  --by KEY           say it for each value of that label, or by @created_by, @entry or\n"
	  "                     @module where nobody sets labels; chains by @module alone\n" },
	{ PARAM_DETAIL, "detail",
	  "  --detail           and how many of them are parked, and what globals keep; in JSON\n"
	  "                     what types they hold\n" },
	{ PARAM_SCAN, "scan",
	  "  --scan ID          ask a kept scan again, without a stop; goheap scans lists them\n" },
	{ PARAM_KEEP, "keep",
	  "  --keep SEC         have the daemon keep this scan for so long, for --scan\n" },
	{ PARAM_TYPE, "type", "  --type TYPE        only objects of exactly this type\n" },
	{ PARAM_MIN_BYTES, "min_bytes",
	  "  --min-bytes N      only objects of that size or more; chains with less are folded\n" },
	{ PARAM_LIMIT, "limit",
	  "  --limit N          rows of a page; default 100, up to 10,000\n" },
	{ PARAM_CURSOR, "cursor",
	  "  --cursor CURSOR    the page that follows the one which named the cursor\n" },
	{ PARAM_TOP, "top", "  --top N            the N largest rows\n" },
	{ PARAM_RETAINED, "retained", "  --retained         and what would be freed with each\n" },
	{ PARAM_GARBAGE, "garbage",
	  "  --garbage          and what is not reachable any more, by type\n" },
	{ PARAM_CONTENTS, "contents",
	  "  --contents         what strings and byte slices hold, for root\n" },
	{ PARAM_OBJECT, "object",
	  "  --object ADDR      what this object dominates, rather than the roots\n" },
	{ PARAM_MAX_DEPTH, "max_depth",
	  "  --max-depth N      frames of a chain; default 256, up to 1,024\n" },
	{ PARAM_MAX_SAMPLES, "max_samples",
	  "  --max-samples N    fold the smallest chains beyond that; default 16,000\n" },
	{ PARAM_SAMPLE, "sample",
	  "  --sample KIND      inuse, or retained: what would be freed with each\n" },
	{ PARAM_WITH_LABELS, "labels",
	  "  --labels           tell chains of goroutines apart by their label sets\n" },
	{ PARAM_SINCE, "since",
	  "  --since ID|TIME    compare with a kept scan, also of another process, or with the\n"
	  "                     newest that is kept from before that time\n" },
	{ PARAM_OVER, "over",
	  "  --over SEC         scan twice, with that time between: 30s, 5m, 1h\n" },
};
enum { PARAMETER_COUNT = sizeof(parameters) / sizeof(*parameters) };

static const char common_help[] =
    "  --format FORMAT    text (default) or json\n"
    "  --socket PATH      ask the daemon there; default: yours, then /run/goheapd/goheapd.sock\n"
    "  --direct           ask no daemon, run the agent for this one question\n"
    "  --agent PATH       the goheap-agent program to run then\n"
    "  --max-scan-memory N\n"
    "                     bytes of memory that it may take; implies --direct\n"
    "  --help, --version\n";

void options_print_help(const struct command *command)
{
	if (!command) {
		fputs("Usage: goheap COMMAND [PID|NAME] [OPTION]...\n"
		      "Says what the memory of a Go process is used for, by asking goheapd or, "
		      "where\n"
		      "none runs, by looking itself (as root, or at your own processes).\n\n",
		      stdout);
		for (command = commands; command->name; command++)
			printf("  %-12s %s\n", command->name, command->summary);
		fputs("\nStart with:  goheap pids\n"
		      "More:        goheap COMMAND --help, goheap(1)\n"
		      "Exit status: 0 done, 1 it failed, 2 wrong usage\n",
		      stdout);
		return;
	}
	printf("Usage: goheap %s%s%s%s [OPTION]...\n", command->name,
	       command->endpoint ? " PID|NAME" : "", command->has_address ? " ADDR" : "",
	       command->has_subject ? " TYPE|VARIABLE" : "");
	printf("Prints %s.\n\n", command->summary);
	for (unsigned i = 0; i < PARAMETER_COUNT; i++) {
		if (command->params & parameters[i].bit)
			fputs(parameters[i].help, stdout);
	}
	if (command->form == FORM_FILE)
		fputs("  -o, --output FILE  where to; default: goheap-PID.pb.gz, or a pipe if "
		      "there is "
		      "one;\n"
		      "                     - is standard output\n",
		      stdout);
	printf("%s\nExample: %s\n", common_help, command->example);
}

static struct error *find_command(const char *name, const struct command **ret)
{
	if (strcmp(name, "overview") == 0)
		name = "show";
	for (const struct command *command = commands; command->name; command++) {
		if (strcmp(command->name, name) == 0) {
			*ret = command;
			return NULL;
		}
	}
	return error_new(ERROR_BAD_REQUEST, "there is no command \"%s\"; try goheap --help", name);
}

static struct error *set_format(struct options *options, const char *format)
{
	options->json = strcmp(format, "json") == 0;
	if (options->json || strcmp(format, "text") == 0)
		return NULL;
	return error_new(ERROR_BAD_REQUEST, "--format takes text or json, not \"%s\"", format);
}

/* Whether the command takes the parameter is known only when all of the line has been read. */
static struct error *set_parameter(struct options *options, int id, const char *value)
{
	const char *name = parameters[id - OPT_PARAMS].name;
	struct error *err = params_set(&options->params, name, value);

	if (err)
		return err;
	for (unsigned i = 0; id != OPT_LABEL && i < options->given_count; i++) {
		if (strcmp(options->given[i].name, name) == 0)
			return error_new(ERROR_BAD_REQUEST, "%s is given twice", name);
	}
	if (options->given_count == OPTIONS_GIVEN_MAX)
		return error_new(ERROR_TOO_MANY_LABELS, "too many labels are given");
	options->given[options->given_count++] = (struct given){ .name = name, .value = value };
	return NULL;
}

static struct error *apply(struct options *options, int id, const char *argument)
{
	switch (id) {
	case OPT_FORMAT:
		return set_format(options, argument);
	case OPT_SOCKET:
		options->socket = argument;
		return NULL;
	case OPT_AGENT:
		options->agent = argument;
		return NULL;
	case OPT_DIRECT:
		options->direct = true;
		return NULL;
	case OPT_MAX_SCAN_MEMORY:
		options->direct = true; /* a daemon's agent has its own */
		if (quantity_u64(argument, &options->max_scan_memory) && options->max_scan_memory)
			return NULL;
		return error_new(ERROR_BAD_REQUEST, "--max-scan-memory takes a number of bytes");
	case 'o':
	case OPT_OUTPUT:
		options->output = argument;
		return NULL;
	case OPT_HELP:
		options->action = OPTIONS_HELP;
		return NULL;
	case OPT_VERSION:
		options->action = OPTIONS_VERSION;
		return NULL;
	case '?':
		/* getopt has said what is wrong */
		return error_new(ERROR_BAD_REQUEST, "try goheap --help");
	default:
		return set_parameter(options, id, argument ? argument : "1");
	}
}

/* What the daemon is not told. */
static bool is_own(const struct command *command, const char *name)
{
	for (unsigned i = 0; i < PARAMETER_COUNT; i++) {
		if (strcmp(parameters[i].name, name) == 0)
			return parameters[i].bit & command->own_params;
	}
	return false;
}

static void drop_own(struct options *options)
{
	unsigned count = 0;

	for (unsigned i = 0; i < options->given_count; i++) {
		if (!is_own(options->command, options->given[i].name))
			options->given[count++] = options->given[i];
	}
	options->given_count = count;
}

static struct error *check_form(const struct options *options)
{
	bool is_file = options->command->form == FORM_FILE;

	if (options->output && !is_file)
		return error_new(ERROR_BAD_REQUEST, "goheap %s does not take --output",
				 options->command->name);
	if (options->command->form == FORM_DIFF && !options->params.since &&
	    !options->params.over_us)
		return error_new(ERROR_BAD_REQUEST,
				 "goheap %s needs --over SEC, or --since with a kept scan",
				 options->command->name);
	if (is_file && options->json)
		return error_new(ERROR_BAD_REQUEST,
				 "goheap %s has a form of its own, for go tool pprof; goheap top "
				 "takes --format json",
				 options->command->name);
	return NULL;
}

static struct error *check_parameters(struct options *options)
{
	for (unsigned i = 0; i < PARAMETER_COUNT; i++) {
		for (unsigned j = 0; j < options->given_count; j++) {
			if (strcmp(options->given[j].name, parameters[i].name) == 0 &&
			    !(options->command->params & parameters[i].bit))
				return error_new(ERROR_BAD_REQUEST,
						 "goheap %s does not take %s; try goheap %s --help",
						 options->command->name, parameters[i].name,
						 options->command->name);
		}
	}
	drop_own(options);
	return check_form(options);
}

static struct error *take_subject(struct options *options, const char *subject)
{
	options->subject = subject;
	if (!*subject)
		return error_new(ERROR_BAD_REQUEST, "the name of a type or variable is empty");
	return check_parameters(options);
}

static struct error *take_address(struct options *options, const char *address)
{
	options->address = address;
	if (!quantity_address(address, &options->params.object))
		return error_new(ERROR_BAD_REQUEST, "\"%s\" is no address, such as 0xc000123000",
				 address);
	return check_parameters(options);
}

/* The command, the process where it needs one, and the object. */
static struct error *take_words(struct options *options, char **words, int count)
{
	struct error *err;
	int wanted;

	if (count == 0)
		return options->action == OPTIONS_RUN
			   ? error_new(ERROR_BAD_REQUEST, "a command is missing; try goheap --help")
			   : NULL;
	err = find_command(words[0], &options->command);
	if (err || options->action != OPTIONS_RUN)
		return err;
	wanted = 1 + (options->command->endpoint != NULL) + options->command->has_address +
		 options->command->has_subject;
	if (count == 2 && wanted == 3 && options->command->has_subject)
		return error_new(
		    ERROR_BAD_REQUEST,
		    "goheap %s needs the name of a type or variable behind the process; "
		    "goheap top shows some",
		    options->command->name);
	if (count == 2 && wanted == 3)
		return error_new(ERROR_BAD_REQUEST,
				 "goheap %s needs the address of an object; goheap objects lists "
				 "them",
				 options->command->name);
	if (count < wanted)
		return error_new(ERROR_BAD_REQUEST,
				 "goheap %s needs a pid or a command name; goheap pids lists them",
				 options->command->name);
	if (count > wanted)
		return error_new(ERROR_BAD_REQUEST, "\"%s\" is too much; try goheap %s --help",
				 words[wanted], options->command->name);
	options->process = wanted >= 2 ? words[1] : NULL;
	if (options->command->has_subject)
		return take_subject(options, words[2]);
	if (wanted == 3)
		return take_address(options, words[2]);
	if (options->command->is_census)
		options->params.depth = GOHEAPD__DEPTH__DEPTH_CENSUS;
	return check_parameters(options);
}

struct error *options_check_direct(const struct options *options)
{
	const struct params *params = &options->params;
	const char *endpoint = options->command ? options->command->endpoint : NULL;

	if (!params->has_keep && !params->since && !params_scan(params) &&
	    !(endpoint && strcmp(endpoint, "/scans") == 0))
		return NULL;
	return error_new(
	    ERROR_BAD_REQUEST,
	    "scans are kept by goheapd, and none is asked here: start it, or leave out "
	    "--keep, --scan, --since and --cursor");
}

struct error *options_parse(int argc, char **argv, struct options *ret)
{
	struct options options = { .action = OPTIONS_RUN };
	struct error *err = NULL;
	int id;

	params_init(&options.params);
	optind = 0; /* glibc: start afresh, and sort the words behind the options */
	while (!err && (id = getopt_long(argc, argv, "o:", long_options, NULL)) != -1)
		err = apply(&options, id, optarg);
	if (!err)
		err = take_words(&options, argv + optind, argc - optind);
	if (!err && options.direct)
		err = options_check_direct(&options);
	if (!err && options.direct && options.socket)
		err = error_new(ERROR_BAD_REQUEST,
				"--direct (or --max-scan-memory) and --socket exclude each "
				"other");
	if (!err)
		*ret = options;
	return err;
}
