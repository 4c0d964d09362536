#include "daemon/options.h"

#include <getopt.h>

#include "daemon/quantity.h"

const char options_help[] =
    "Usage: goheapd [OPTION]...\n"
    "Answers over HTTP what the memory of the Go processes on this machine is used for.\n"
    "\n"
    "  --listen ADDR:PORT     TCP address to listen on; may be given several times. Loopback\n"
    "                         addresses only. Default: 127.0.0.1:7070 and [::1]:7070\n"
    "  --socket PATH          Unix socket to listen on. Default: RUN_DIR/goheapd.sock\n"
    "  --config FILE          configuration, see goheapd.conf(5)\n"
    "  --run-dir DIR          sockets and other things of this boot. Default: /run/goheapd\n"
    "  --cache-dir DIR        what was learned about binaries. Default: /var/cache/goheapd\n"
    "  --state-dir DIR        for results that are kept; this version keeps none\n"
    "  --agent PATH           the goheap-agent program to start. Default: the one beside goheapd\n"
    "  --agent-socket PATH    use an agent that runs already, and start none\n"
    "  --max-scan-memory N    bytes of memory that one scan may take; goes before FILE\n"
    "  --help                 print this and exit\n"
    "  --version              print the version and exit\n"
    "\n"
    "goheapd stays in the foreground, logs to stderr and ends on SIGTERM. Started by root it\n"
    "starts its agent and gives up root itself; started by somebody else it looks at that\n"
    "user's processes, with folders below the user's own. Then, in another terminal:\n"
    "\n"
    "  curl localhost:7070/pids?format=text                  which Go processes are there\n"
    "  curl localhost:7070/pid/1234/memusage?format=text     what holds the memory of one\n"
    "  goheap pids; goheap memusage 1234                     the same without curl\n";

enum option_id {
	OPT_LISTEN = 256,
	OPT_SOCKET,
	OPT_CONFIG,
	OPT_RUN_DIR,
	OPT_CACHE_DIR,
	OPT_STATE_DIR,
	OPT_AGENT,
	OPT_AGENT_SOCKET,
	OPT_MAX_SCAN_MEMORY,
	OPT_HELP,
	OPT_VERSION,
};

static const struct option long_options[] = {
	{ "listen", required_argument, NULL, OPT_LISTEN },
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "config", required_argument, NULL, OPT_CONFIG },
	{ "run-dir", required_argument, NULL, OPT_RUN_DIR },
	{ "cache-dir", required_argument, NULL, OPT_CACHE_DIR },
	{ "state-dir", required_argument, NULL, OPT_STATE_DIR },
	{ "agent", required_argument, NULL, OPT_AGENT },
	{ "agent-socket", required_argument, NULL, OPT_AGENT_SOCKET },
	{ "max-scan-memory", required_argument, NULL, OPT_MAX_SCAN_MEMORY },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

static struct error *add_listen(struct options *options, const char *address)
{
	if (options->listen_count == OPTIONS_LISTEN_MAX)
		return error_new(ERROR_BAD_REQUEST, "--listen is given more than %d times",
				 OPTIONS_LISTEN_MAX);
	options->listen[options->listen_count++] = address;
	return NULL;
}

/* Where the argument of a plain option goes, or NULL. */
static const char **plain_option(struct options *options, int id)
{
	switch (id) {
	case OPT_SOCKET:
		return &options->socket;
	case OPT_CONFIG:
		return &options->config;
	case OPT_RUN_DIR:
		return &options->run_dir;
	case OPT_CACHE_DIR:
		return &options->cache_dir;
	case OPT_STATE_DIR:
		return &options->state_dir;
	case OPT_AGENT:
		return &options->agent;
	case OPT_AGENT_SOCKET:
		return &options->agent_socket;
	default:
		return NULL;
	}
}

static struct error *apply(struct options *options, int id, const char *argument)
{
	const char **plain = plain_option(options, id);

	if (plain) {
		if (!*argument)
			return error_new(ERROR_BAD_REQUEST, "an option's argument is empty");
		*plain = argument;
		return NULL;
	}
	switch (id) {
	case OPT_LISTEN:
		return add_listen(options, argument);
	case OPT_MAX_SCAN_MEMORY:
		if (quantity_u64(argument, &options->max_scan_memory) && options->max_scan_memory)
			return NULL;
		return error_new(ERROR_BAD_REQUEST, "--max-scan-memory takes a number of bytes");
	case OPT_HELP:
		options->action = OPTIONS_HELP;
		return NULL;
	case OPT_VERSION:
		options->action = OPTIONS_VERSION;
		return NULL;
	default: /* getopt has printed what is wrong */
		return error_new(ERROR_BAD_REQUEST, "try goheapd --help");
	}
}

struct error *options_parse(int argc, char **argv, struct options *ret)
{
	struct options options = { .action = OPTIONS_RUN };
	struct error *err;
	int id;

	optind = 0; /* glibc: start afresh */
	while ((id = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		err = apply(&options, id, optarg);
		if (err)
			return err;
	}
	if (optind < argc)
		return error_new(ERROR_BAD_REQUEST, "\"%s\" is no option; try goheapd --help",
				 argv[optind]);
	if (options.agent && options.agent_socket)
		return error_new(ERROR_BAD_REQUEST,
				 "--agent and --agent-socket exclude each other");
	*ret = options;
	return NULL;
}
