/*
 * The command line of goheap: a command, what it is about, and how to ask.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/object_query.h"
#include "daemon/params.h"
#include "daemon/render.h"
#include "proto/base/error.h"

/* What becomes of the answer. */
enum command_form {
	FORM_AS_IT_IS,
	FORM_FILE, /* a profile, which is saved */
	FORM_TOP,  /* tables made of a profile */
	FORM_WHY,  /* its chains through the subject */
	FORM_DIFF, /* of two scans */
};

/* What a command asks for: the same words as in the daemon's paths. */
struct command {
	const char *name;
	const char *endpoint; /* behind /pid/N: "/memusage"; NULL: /pids */
	unsigned params;      /* enum of params.h: which options it takes */
	unsigned parts;       /* enum scan_parts; 0: no scan */
	bool is_census;       /* labels alone, without a walk of the heap */
	bool has_address;     /* the endpoint goes on with an object's address */
	bool has_subject;     /* a type or variable is named behind the process */
	enum command_form form;
	unsigned own_params;            /* of params, those that are not the daemon's */
	object_query_maker *query;      /* what is asked of objects; NULL: nothing */
	object_query_maker *text_query; /* where the text asks something else */
	/* A scan's answer, where goheap makes it itself. */
	void (*json)(struct text *text, const struct scan_view *view);
	void (*text)(struct text *text, const struct scan_view *view);
	const char *summary;
	const char *example;
};

extern const struct command commands[]; /* ended by one without a name */

enum options_action { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION };

/* As many labels as there may be, and every other parameter once. */
enum { OPTIONS_GIVEN_MAX = LIMIT_SELECT_LABELS + 16 };

/* Strings belong to argv. */
struct options {
	enum options_action action;
	const struct command *command; /* NULL: help on goheap itself */
	const char *process;           /* pid or command name, NULL for pids */
	const char *address;           /* NULL: the command has none */
	const char *subject;           /* the same */
	const char *output;            /* a file, "-"; NULL: not given */
	bool json;
	/* Parameters as they were given, for the daemon, and what they say, for an agent. */
	struct given {
		const char *name, *value;
	} given[OPTIONS_GIVEN_MAX];
	unsigned given_count;
	struct params params;
	const char *socket, *agent;
	bool direct;              /* never ask a daemon */
	uint64_t max_scan_memory; /* of an agent of its own; 0: no limit */
};

/* ERROR_BAD_REQUEST with a sentence for the user. */
must_check struct error *options_parse(int argc, char **argv, struct options *ret);

/* Without a daemon nothing is kept from one command to the next: ERROR_BAD_REQUEST. */
must_check struct error *options_check_direct(const struct options *options);

/* Prints help on goheap, or on a command. */
void options_print_help(const struct command *command);

#endif
