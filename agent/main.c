/*
 * goheap-agent: one program in three roles. Started by hand, by systemd, by goheapd or goheap it is
 * the agent; it starts itself as keeper and decoder.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "agent/decoder.h"
#include "agent/keeper.h"
#include "agent/listener.h"
#include "agent/options.h"
#include "agent/session.h"
#include "agent/supervise.h"
#include "config.h"
#include "proto/base/log.h"

#define DEFAULT_CACHE_DIR "/var/cache/goheapd"
#define DEFAULT_RUN_DIR   "/run/goheap-agent"

enum { EXIT_USAGE = 2 };

struct agent {
	struct event_loop loop;
	struct supervisor supervisor;
	struct listener listener;
	struct event_source signals;
	int signal_fd;
};

/* ---- its end ---- */

static void signal_ready(struct event_source *source, uint32_t events)
{
	struct agent *agent = (struct agent *)((char *)source - offsetof(struct agent, signals));
	struct signalfd_siginfo info;

	(void)events;
	if (read(agent->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	log_info("agent", "ending, processes under inspection are let go signal=%u",
		 info.ssi_signo);
	listener_fini(&agent->listener);
	supervisor_stop(&agent->supervisor);
}

static void only_session_ended(void *arg)
{
	struct agent *agent = arg;

	supervisor_stop(&agent->supervisor);
}

static struct error *watch_signals(struct agent *agent)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	if (sigprocmask(SIG_BLOCK, &signals, NULL))
		return error_system(errno, "sigprocmask");
	agent->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (agent->signal_fd < 0)
		return error_system(errno, "signalfd");
	return event_add(&agent->loop, &agent->signals, agent->signal_fd, EPOLLIN, signal_ready);
}

/* ---- how it is reached ---- */

static struct error *adopt_systemd_sockets(struct agent *agent, int count)
{
	struct error *err = NULL;

	for (int i = 0; !err && i < count; i++)
		err = listener_adopt(&agent->listener, SD_LISTEN_FDS_START + i);
	return err;
}

static struct error *listen_in_run_dir(struct agent *agent, const char *run_dir)
{
	char path[256];

	if (mkdir(run_dir, 0755) && errno != EEXIST)
		return error_system(errno, "make folder %s", run_dir);
	if (snprintf(path, sizeof(path), "%s/agent.sock", run_dir) >= (int)sizeof(path))
		return error_new(ERROR_BAD_REQUEST, "--run-dir is too long");
	return listener_listen(&agent->listener, path);
}

/* Who else may connect: whom the daemon becomes by the same file, where somebody has to connect. */
static const char *daemon_user(const struct agent *agent, const struct options *options)
{
	if (options->user || options->socket_fd >= 0)
		return options->user;
	return agent->supervisor.config.user;
}

static struct error *be_reachable(struct agent *agent, const struct options *options)
{
	int from_systemd = sd_listen_fds(1);
	struct error *err =
	    listener_init(&agent->listener, &agent->supervisor, daemon_user(agent, options));

	if (err)
		return err;
	if (options->socket_fd >= 0)
		return session_start(&agent->supervisor, options->socket_fd, only_session_ended,
				     agent);
	if (options->listen)
		return listener_listen(&agent->listener, options->listen);
	if (from_systemd > 0)
		return adopt_systemd_sockets(agent, from_systemd);
	return listen_in_run_dir(agent, options->run_dir ? options->run_dir : DEFAULT_RUN_DIR);
}

/* ---- its life ---- */

/* The default file may be missing, one that is named may not. */
static struct error *read_config(const struct options *options, struct agent_config *config)
{
	struct error *err = NULL;

	agent_config_init(config);
	if (options->config)
		err = agent_config_read(config, options->config);
	else if (access(SYSTEM_CONFIG_FILE, F_OK) == 0)
		err = agent_config_read(config, SYSTEM_CONFIG_FILE);
	if (options->has_max_scan_memory)
		config->max_scan_memory = options->max_scan_memory;
	return err;
}

/* A listing has the executables of many processes on their way at once. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static struct error *serve(struct agent *agent, const struct options *options)
{
	struct error *err = watch_signals(agent);

	if (!err)
		err = be_reachable(agent, options);
	if (err)
		return err;
	/* a log that nobody reads is no reason to end */
	signal(SIGPIPE, SIG_IGN);
	raise_descriptor_limit();
	sd_notify(0, "READY=1");
	err = event_loop_run(&agent->loop);
	sd_notify(0, "STOPPING=1");
	return err;
}

static struct error *agent_run(const struct options *options)
{
	struct agent agent = { .signal_fd = -1, .signals.fd = -1 };
	struct agent_config config;
	struct error *err = read_config(options, &config);

	if (!err)
		err = event_loop_init(&agent.loop);
	if (err) {
		agent_config_fini(&config);
		return err;
	}
	err = supervisor_init(&agent.supervisor, &agent.loop, &config,
			      options->cache_dir ? options->cache_dir : DEFAULT_CACHE_DIR);
	if (!err)
		err = serve(&agent, options);
	session_end_all(&agent.supervisor);
	listener_fini(&agent.listener);
	supervisor_fini(&agent.supervisor);
	event_remove(&agent.loop, &agent.signals);
	closep(&agent.signal_fd);
	event_loop_fini(&agent.loop);
	agent_config_fini(&config);
	return err;
}

static int role_run(const struct options *options)
{
	if (!strcmp(options->role, "keeper"))
		return keeper_main();
	if (!strcmp(options->role, "decoder"))
		return decoder_main(options->max_scan_memory);
	fprintf(stderr, "goheap-agent: --role is for the agent's own use\n");
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	struct options options;
	struct error *err = options_parse(&options, argc, argv);
	int status = EXIT_USAGE;

	if (!err && options.help) {
		options_print_help();
		return 0;
	}
	if (!err && options.version) {
		puts("goheap-agent " PACKAGE_VERSION);
		return 0;
	}
	if (!err && options.role)
		return role_run(&options);
	if (!err) {
		err = agent_run(&options);
		status = EXIT_FAILURE;
	}
	if (!err)
		return 0;
	fprintf(stderr, "goheap-agent: %s\n", error_message(err));
	error_free(err);
	return status;
}
