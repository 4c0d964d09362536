/*
 * goheap: asks goheapd over its Unix socket or, where none runs, an agent of its own, and prints
 * the answer.
 */
#include <config.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/chains.h"
#include "cli/client.h"
#include "cli/direct.h"
#include "cli/labels.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/paint.h"
#include "cli/progress.h"
#include "daemon/paths.h"
#include "proto/base/log.h"

enum { EXIT_USAGE = 2 };

/* The user's own daemon goes before the system's. */
static struct error *ask_default_daemons(const struct options *options, struct text *text,
					 bool *ret_no_daemon)
{
	char *folder scoped(freep) = NULL;
	char *own scoped(freep) = NULL;
	struct error *err = path_default(PATH_RUN, &folder);

	if (!err)
		err = path_join(folder, PATH_SOCKET_NAME, &own);
	if (!err)
		err = client_ask(own, options, text, ret_no_daemon);
	if (!err && *ret_no_daemon && strcmp(folder, PATH_SYSTEM_RUN_DIR) != 0)
		err = client_ask(PATH_SYSTEM_RUN_DIR "/" PATH_SOCKET_NAME, options, text,
				 ret_no_daemon);
	return err;
}

static struct error *ask(const struct options *options, struct text *text)
{
	bool no_daemon = true;
	struct error *err = NULL;

	if (options->socket) {
		err = client_ask(options->socket, options, text, &no_daemon);
		if (!err && no_daemon)
			err = error_new(ERROR_SYSTEM,
					"no daemon listens on %s; start goheapd with --socket, or "
					"leave the option out",
					options->socket);
		return err;
	}
	if (!options->direct)
		err = ask_default_daemons(options, text, &no_daemon);
	if (err || !no_daemon)
		return err;
	return direct_ask(options, text);
}

static bool print(const struct options *options, const struct text *text)
{
	const char *data = (const char *)text->bytes.data;
	size_t size = text->bytes.size;

	if (!options->json && paint_is_wanted(stdout))
		return paint_text(stdout, data, size);
	return fwrite(data, 1, size, stdout) == size && fflush(stdout) == 0;
}

/* A message may quote what a target says of itself. */
static void complain(const struct error *err)
{
	const char *message = error_message(err);
	ProtobufCBinaryData bytes = { .len = strlen(message),
				      .data = (uint8_t *)(uintptr_t)message };
	struct text text;

	text_init(&text);
	text_string(&text, "goheap: ");
	text_escaped(&text, bytes, SIZE_MAX);
	text_string(&text, "\n");
	if (!text.err)
		fwrite(text.bytes.data, 1, text.bytes.size, stderr);
	text_fini(&text);
}

static struct error *make(const struct options *options, const struct text *text, struct text *ret)
{
	if (!options->command->is_census)
		return chains_show(options, text, ret);
	return options->json ? labels_json(text, ret) : labels_table(text, ret);
}

/* What was asked for in a form for goheap's own use, as the user wants it. */
static struct error *turn(const struct options *options, struct text *text)
{
	enum command_form form = options->command->form;
	struct text made;
	struct error *err;

	if (!options->command->is_census && form != FORM_TOP && form != FORM_WHY)
		return NULL;
	text_init(&made);
	err = make(options, text, &made);
	if (err) {
		text_fini(&made);
		return err;
	}
	text_fini(text);
	*text = made;
	return NULL;
}

static int run(const struct options *options)
{
	struct progress progress;
	struct text text;
	struct error *err;
	int status = EXIT_SUCCESS;

	signal(SIGPIPE, SIG_IGN); /* a pager that is left early is no crash */
	log_set_level(LOG_LEVEL_ERROR);
	text_init(&text);
	progress_begin(&progress, options->command->name);
	err = ask(options, &text);
	progress_end(&progress);
	if (!err)
		err = turn(options, &text);
	if (!err && options->command->form == FORM_FILE)
		err = output_write(options, &text);
	if (err) {
		complain(err);
		status = error_code(err) == ERROR_BAD_REQUEST ? EXIT_USAGE : EXIT_FAILURE;
	} else if (options->command->form != FORM_FILE && !print(options, &text)) {
		status = EXIT_FAILURE;
	}
	error_free(err);
	text_fini(&text);
	return status;
}

int main(int argc, char **argv)
{
	struct options options;
	struct error *err scoped(error_freep) = options_parse(argc, argv, &options);

	if (err) {
		complain(err);
		return EXIT_USAGE;
	}
	switch (options.action) {
	case OPTIONS_HELP:
		options_print_help(options.command);
		return EXIT_SUCCESS;
	case OPTIONS_VERSION:
		puts("goheap " PACKAGE_VERSION);
		return EXIT_SUCCESS;
	case OPTIONS_RUN:
	default:
		return run(&options);
	}
}
