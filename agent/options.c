#include "agent/options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPTION_ROLE = 256,
	OPTION_SOCKET_FD,
	OPTION_LISTEN,
	OPTION_CONFIG,
	OPTION_CACHE_DIR,
	OPTION_RUN_DIR,
	OPTION_USER,
	OPTION_MAX_SCAN_MEMORY,
	OPTION_VERSION,
};

static const struct option long_options[] = {
	{ "role", required_argument, NULL, OPTION_ROLE },
	{ "socket-fd", required_argument, NULL, OPTION_SOCKET_FD },
	{ "listen", required_argument, NULL, OPTION_LISTEN },
	{ "config", required_argument, NULL, OPTION_CONFIG },
	{ "cache-dir", required_argument, NULL, OPTION_CACHE_DIR },
	{ "run-dir", required_argument, NULL, OPTION_RUN_DIR },
	{ "user", required_argument, NULL, OPTION_USER },
	{ "max-scan-memory", required_argument, NULL, OPTION_MAX_SCAN_MEMORY },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ 0 },
};

/* A whole decimal number from 0 to max. */
static struct error *parse_number(const char *option, const char *text, uint64_t max, uint64_t *ret)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno || value > max)
		return error_new(ERROR_BAD_REQUEST,
				 "--%s takes a number from 0 to %" PRIu64 ", not \"%s\"", option,
				 max, text);
	*ret = value;
	return NULL;
}

static struct error *take_option(struct options *options, int option)
{
	uint64_t number;
	struct error *err;

	switch (option) {
	case OPTION_ROLE:
		options->role = optarg;
		return NULL;
	case OPTION_SOCKET_FD:
		err = parse_number("socket-fd", optarg, INT32_MAX, &number);
		if (!err)
			options->socket_fd = (int)number;
		return err;
	case OPTION_LISTEN:
		options->listen = optarg;
		return NULL;
	case OPTION_CONFIG:
		options->config = optarg;
		return NULL;
	case OPTION_CACHE_DIR:
		options->cache_dir = optarg;
		return NULL;
	case OPTION_RUN_DIR:
		options->run_dir = optarg;
		return NULL;
	case OPTION_USER:
		options->user = optarg;
		return NULL;
	case OPTION_MAX_SCAN_MEMORY:
		options->has_max_scan_memory = true;
		return parse_number("max-scan-memory", optarg, INT64_MAX,
				    &options->max_scan_memory);
	case OPTION_VERSION:
		options->version = true;
		return NULL;
	case 'h':
		options->help = true;
		return NULL;
	default:
		return error_new(ERROR_BAD_REQUEST, "try goheap-agent --help");
	}
}

struct error *options_parse(struct options *options, int argc, char **argv)
{
	int option;

	*options = (struct options){ .socket_fd = -1 };
	while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		struct error *err = take_option(options, option);

		if (err)
			return err;
	}
	if (optind < argc)
		return error_new(ERROR_BAD_REQUEST, "unexpected argument \"%s\"", argv[optind]);
	if (options->listen && options->socket_fd >= 0)
		return error_new(ERROR_BAD_REQUEST, "--listen and --socket-fd exclude each other");
	return NULL;
}

void options_print_help(void)
{
	fputs(
	    "Usage: goheap-agent [OPTION]...\n"
	    "\n"
	    "Inspects live Go processes on behalf of goheapd. It holds the rights that this "
	    "takes,\n"
	    "so that goheapd, which talks to the world, needs none. goheapd and goheap start it "
	    "by\n"
	    "themselves; start it yourself, as root, to have one agent that outlives them:\n"
	    "\n"
	    "    goheap-agent --listen /run/goheap-agent/agent.sock &\n"
	    "    goheapd --agent-socket /run/goheap-agent/agent.sock\n"
	    "\n"
	    "How it is reached (default: RUN-DIR/agent.sock, or the sockets that systemd passes):\n"
	    "  --listen PATH            make this Unix socket and serve whoever may connect to it\n"
	    "  --socket-fd N            serve the connected socket N and end with it\n"
	    "  --user NAME              besides root and the agent's own user, accept this one\n"
	    "                           (default: FILE's, else goheapd, if there is such a user)\n"
	    "\n"
	    "What it does:\n"
	    "  --config FILE            how often and how much at once, and whose filters allow it\n"
	    "                           (default: goheapd's, see goheapd.conf(5))\n"
	    "  --max-scan-memory BYTES  memory of one scan's decoder; goes before FILE; 0: no "
	    "limit\n"
	    "  --cache-dir DIR          where the indexes of binaries are kept, in a folder that\n"
	    "                           only the agent can read (default: /var/cache/goheapd)\n"
	    "  --run-dir DIR            where its socket is made (default: /run/goheap-agent)\n"
	    "\n"
	    "  --help                   print this\n"
	    "  --version                print the version\n"
	    "\n"
	    "It ends cleanly on SIGTERM: every process under inspection is let go first. Each "
	    "time\n"
	    "that a process is stopped is one line of area \"audit\" in the log on stderr.\n",
	    stdout);
}
