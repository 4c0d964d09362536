#include "daemon/process.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/quantity.h"

enum { PID_MAX = 1 << 22, COMM_MAX = 15 };

/* One request whose answer must be of one kind. */
static struct error *ask(struct agent_client *agent, Goheapd__Request *request,
			 Goheapd__Answer__BodyCase expected, const struct patience *patience,
			 Goheapd__Answer **ret)
{
	Goheapd__Answer *answer;
	struct error *err = agent_client_call(agent, request, patience, 0, &answer, NULL);

	if (err)
		return err;
	if (answer->body_case != expected) {
		goheapd__answer__free_unpacked(answer, NULL);
		return error_new(ERROR_SYSTEM, "the agent answered another question");
	}
	*ret = answer;
	return NULL;
}

struct error *process_list(struct agent_client *agent, const struct patience *patience,
			   Goheapd__Answer **ret)
{
	Goheapd__Request request = GOHEAPD__REQUEST__INIT;
	Goheapd__ListProcesses list = GOHEAPD__LIST_PROCESSES__INIT;

	request.body_case = GOHEAPD__REQUEST__BODY_LIST_PROCESSES;
	request.list_processes = &list;
	return ask(agent, &request, GOHEAPD__ANSWER__BODY_PROCESS_LIST, patience, ret);
}

struct error *process_look(struct agent_client *agent, uint32_t pid,
			   const struct patience *patience, Goheapd__Answer **ret)
{
	Goheapd__Request request = GOHEAPD__REQUEST__INIT;
	Goheapd__LookProcess look = GOHEAPD__LOOK_PROCESS__INIT;
	struct error *err;

	look.pid = pid;
	request.body_case = GOHEAPD__REQUEST__BODY_LOOK_PROCESS;
	request.look_process = &look;
	err = ask(agent, &request, GOHEAPD__ANSWER__BODY_PROCESS, patience, ret);
	if (!err && (*ret)->process->pid != pid) {
		goheapd__answer__free_unpacked(*ret, NULL);
		return error_new(ERROR_SYSTEM, "the agent answered for another process");
	}
	return err;
}

struct error *process_overview(struct agent_client *agent, const Goheapd__Process *process,
			       const struct patience *patience, Goheapd__Answer **ret)
{
	Goheapd__Request request = GOHEAPD__REQUEST__INIT;
	Goheapd__Overview overview = GOHEAPD__OVERVIEW__INIT;

	overview.pid = process->pid;
	overview.start_ticks = process->start_ticks;
	request.body_case = GOHEAPD__REQUEST__BODY_OVERVIEW;
	request.overview = &overview;
	return ask(agent, &request, GOHEAPD__ANSWER__BODY_OVERVIEW, patience, ret);
}

struct error *process_copy(const Goheapd__Process *process, Goheapd__Process **ret)
{
	size_t size = goheapd__process__get_packed_size(process);
	uint8_t *bytes scoped(freep) = malloc(size + 1);
	Goheapd__Process *copy = NULL;

	if (bytes) {
		goheapd__process__pack(process, bytes);
		copy = goheapd__process__unpack(NULL, size, bytes);
	}
	if (!copy)
		return &error_nomem;
	*ret = copy;
	return NULL;
}

static int compare_pids(const void *a, const void *b)
{
	const Goheapd__Process *const *first = a, *const *second = b;

	return ((*first)->pid > (*second)->pid) - ((*first)->pid < (*second)->pid);
}

void process_sort(Goheapd__Process **processes, size_t count)
{
	if (count)
		qsort(processes, count, sizeof(*processes), compare_pids);
}

static bool equals(ProtobufCBinaryData bytes, const char *text, size_t size)
{
	return bytes.len == size && memcmp(bytes.data, text, size) == 0;
}

/* The part of a path after its last slash. */
static ProtobufCBinaryData base_name(ProtobufCBinaryData path)
{
	size_t start = path.len;

	while (start > 0 && path.data[start - 1] != '/')
		start--;
	return (ProtobufCBinaryData){ .data = start ? path.data + start : path.data,
				      .len = path.len - start };
}

bool process_has_name(const Goheapd__Process *process, const char *name)
{
	size_t size = strlen(name);

	if (size == 0)
		return false;
	if (size <= COMM_MAX)
		return equals(process->comm, name, size);
	return equals(process->comm, name, COMM_MAX) && process->has_exe &&
	       equals(base_name(process->exe), name, size);
}

struct error *process_parse_pid(const char *text, uint32_t *ret)
{
	uint64_t pid;

	if (strspn(text, "0123456789") != strlen(text) || !*text)
		return error_new(ERROR_BAD_REQUEST,
				 "\"%s\" is no pid; for a name there is /comm/NAME", text);
	if (!quantity_u64(text, &pid) || pid == 0 || pid > PID_MAX)
		return error_new(ERROR_NO_PROCESS, "there is no process %s", text);
	*ret = (uint32_t)pid;
	return NULL;
}
