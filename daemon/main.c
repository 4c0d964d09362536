/*
 * goheapd: serves HTTP, says who may ask, renders answers. It never touches a target: that is for
 * the agent, which it starts or finds.
 */
#include <config.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>

#include "daemon/agent_process.h"
#include "daemon/config.h"
#include "daemon/http.h"
#include "daemon/launcher.h"
#include "daemon/listener.h"
#include "daemon/options.h"
#include "daemon/paths.h"
#include "daemon/privilege.h"
#include "proto/base/log.h"

enum { AGENT_START_PATIENCE_US = 10 * 1000000, EXIT_USAGE = 2 };

/* Everything that lives as long as the daemon, in the order in which it is made. */
struct daemon {
	struct config config;
	char *config_path, *run_dir, *cache_dir, *socket_path, *agent_program;
	struct agent_spec spec;
	struct listeners listeners;
	struct agent_source *source; /* until the client takes it over */
	struct server server;
	struct http *http;
};

static void daemon_fini(struct daemon *daemon)
{
	http_free(daemon->http);
	scan_cache_free(daemon->server.scans);
	kept_scans_free(daemon->server.kept);
	agent_client_free(daemon->server.agent);
	agent_source_free(daemon->source);
	closep(&daemon->server.stop);
	listeners_fini(&daemon->listeners);
	config_fini(&daemon->config);
	free(daemon->config_path);
	free(daemon->run_dir);
	free(daemon->cache_dir);
	free(daemon->socket_path);
	free(daemon->agent_program);
}

/* A copy of the option's value, or the default. */
static struct error *option_or_default(const char *option, enum path_kind kind, char **ret)
{
	if (!option)
		return path_default(kind, ret);
	*ret = strdup(option);
	return *ret ? NULL : &error_nomem;
}

/* The default file may be missing, one that is named may not. */
static struct error *read_config(struct daemon *daemon, const char *option)
{
	const char *path = option ? option : SYSTEM_CONFIG_FILE;

	config_init(&daemon->config);
	if (!option && access(path, F_OK) < 0 && errno == ENOENT)
		return NULL;
	daemon->config_path = strdup(path);
	if (!daemon->config_path)
		return &error_nomem;
	return config_read(&daemon->config, path);
}

static struct error *find_paths(struct daemon *daemon, const struct options *options)
{
	struct error *err = option_or_default(options->run_dir, PATH_RUN, &daemon->run_dir);

	if (!err)
		err = option_or_default(options->cache_dir, PATH_CACHE, &daemon->cache_dir);
	if (err)
		return err;
	if (!options->socket)
		return path_join(daemon->run_dir, PATH_SOCKET_NAME, &daemon->socket_path);
	daemon->socket_path = strdup(options->socket);
	return daemon->socket_path ? NULL : &error_nomem;
}

static struct error *listen_everywhere(struct daemon *daemon, const struct options *options)
{
	struct listeners *listeners = &daemon->listeners;
	struct error *err = listeners_add_activated(listeners);

	if (err || listeners->count)
		return err;
	for (size_t i = 0; !err && i < options->listen_count; i++)
		err = listeners_add_tcp(listeners, options->listen[i]);
	if (!err && !options->listen_count)
		err = listeners_add_default_tcp(listeners);
	if (!err && !options->socket)
		err = path_make_folder(daemon->run_dir, 0755);
	if (!err)
		err = listeners_add_unix(listeners, daemon->socket_path);
	return err;
}

static struct error *describe_own_agent(struct daemon *daemon, const struct options *options)
{
	struct error *err = NULL;

	if (!options->agent)
		err = agent_program_find(&daemon->agent_program);
	else if (!(daemon->agent_program = strdup(options->agent)))
		err = &error_nomem;
	daemon->spec = (struct agent_spec){
		.program = daemon->agent_program,
		.config = daemon->config_path,
		.run_dir = daemon->run_dir,
		.cache_dir = daemon->cache_dir,
		.max_scan_memory = options->max_scan_memory ? options->max_scan_memory
							    : daemon->config.max_scan_memory,
	};
	return err;
}

/*
 * Where the agent is to come from. Root leaves the launcher behind, since an agent asks for root's
 * connection: there are no threads yet.
 */
static struct error *choose_agent(struct daemon *daemon, const struct options *options)
{
	struct agent_source *origin = NULL;
	struct error *err;

	if (options->agent_socket) {
		err = agent_source_socket(options->agent_socket, &origin);
	} else {
		err = describe_own_agent(daemon, options);
		if (!err)
			err = agent_source_process(&daemon->spec, &origin);
	}
	if (err)
		return err;
	if (geteuid() == 0)
		return agent_source_launcher(origin, daemon->listeners.unix_path, &daemon->source);
	daemon->source = origin;
	return NULL;
}

static struct error *start_threads(struct daemon *daemon)
{
	const struct scan_limits limits = {
		.min_interval_us = daemon->config.min_stop_interval_us,
		.max_scans = daemon->config.max_scans,
	};
	struct server *server = &daemon->server;
	struct error *err;

	server->metrics = &daemon->config.metrics;
	err = agent_client_new(take(daemon->source), &server->agent);

	if (!err)
		err = kept_scans_new(server->agent, &server->kept);
	if (!err)
		err = scan_cache_new(server->agent, server->kept, &limits, &server->scans);
	if (err)
		return err;
	/* without an agent /readyz says so, and the agent is tried again and again */
	err = agent_client_wait_ready(server->agent, AGENT_START_PATIENCE_US);
	if (err)
		log_warning("main", "serving without an agent for now err=\"%s\"",
			    error_message(err));
	error_free(err);
	return http_start(server, &daemon->listeners, &daemon->http);
}

static struct error *start(struct daemon *daemon, const struct options *options)
{
	struct error *err = read_config(daemon, options->config);

	if (!err)
		err = find_paths(daemon, options);
	if (!err)
		err = listen_everywhere(daemon, options);
	if (!err)
		err = choose_agent(daemon, options);
	if (!err)
		err = privilege_drop(daemon->config.user);
	if (!err)
		err = start_threads(daemon);
	return err;
}

/* Signals to end come to sigwait alone; blocked before any thread begins. */
static void block_end_signals(sigset_t *ret)
{
	sigemptyset(ret);
	sigaddset(ret, SIGTERM);
	sigaddset(ret, SIGINT);
	sigprocmask(SIG_BLOCK, ret, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Requests that wait are told; then everything is undone in the order opposite to its making. */
static void stop(struct daemon *daemon)
{
	const uint64_t one = 1;

	http_quiesce(daemon->http);
	if (write(daemon->server.stop, &one, sizeof(one)) < 0)
		log_error("main", "requests end by their timeouts err=\"%s\"", strerror(errno));
	agent_client_shut_down(daemon->server.agent);
}

static int run(const struct options *options)
{
	struct daemon daemon = { .server.stop = eventfd(0, EFD_CLOEXEC) };
	struct error *err scoped(error_freep) = NULL;
	sigset_t ends;
	int number = 0;

	block_end_signals(&ends);
	listeners_init(&daemon.listeners);
	if (daemon.server.stop < 0)
		err = error_system(errno, "eventfd");
	if (!err)
		err = start(&daemon, options);
	if (err) {
		log_error("main", "goheapd cannot start err=\"%s\"", error_message(err));
	} else {
		sd_notify(0, "READY=1");
		log_info("main", "ready version=%s", PACKAGE_VERSION);
		sigwait(&ends, &number);
		sd_notify(0, "STOPPING=1");
		log_info("main", "ending signal=%d", number);
		stop(&daemon);
	}
	daemon_fini(&daemon);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct options options;
	struct error *err scoped(error_freep) = options_parse(argc, argv, &options);

	if (err) {
		fprintf(stderr, "goheapd: %s\n", error_message(err));
		return EXIT_USAGE;
	}
	switch (options.action) {
	case OPTIONS_HELP:
		fputs(options_help, stdout);
		return EXIT_SUCCESS;
	case OPTIONS_VERSION:
		puts("goheapd " PACKAGE_VERSION);
		return EXIT_SUCCESS;
	case OPTIONS_RUN:
	default:
		/* what we make is for others to connect to and for nobody to write */
		umask(022);
		return run(&options);
	}
}
