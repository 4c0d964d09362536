#include "daemon/kept_ask.h"

#include <string.h>

#include "daemon/clock.h"
#include "daemon/scan_check.h"

/* One request whose answer must be of one kind. */
static struct error *call(struct agent_client *agent, Goheapd__Request *request,
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

static uint64_t left_ms(const struct patience *patience)
{
	uint64_t now_us = clock_now_us();

	return patience->deadline_us > now_us ? (patience->deadline_us - now_us) / 1000 + 1 : 1;
}

static void fill(Goheapd__Ask *ask, const char *id, const Goheapd__Analysis *analysis)
{
	goheapd__ask__init(ask);
	ask->id.data = (uint8_t *)(uintptr_t)id;
	ask->id.len = strlen(id);
	ask->analysis = (Goheapd__Analysis *)(uintptr_t)analysis;
}

struct error *kept_ask(struct agent_client *agent, const char *id,
		       const Goheapd__Analysis *analysis, const struct patience *patience,
		       Goheapd__Answer **ret)
{
	Goheapd__Request request = GOHEAPD__REQUEST__INIT;
	Goheapd__Ask ask;
	Goheapd__Answer *answer;
	struct error *err;

	fill(&ask, id, analysis);
	ask.timeout_ms = left_ms(patience);
	request.body_case = GOHEAPD__REQUEST__BODY_ASK;
	request.ask = &ask;
	err = call(agent, &request, GOHEAPD__ANSWER__BODY_SCAN, patience, &answer);
	if (err)
		return err;
	err = scan_check(answer->scan);
	if (!err)
		err = scan_check_analysis(answer->scan, analysis);
	if (err)
		goheapd__answer__free_unpacked(answer, NULL);
	else
		*ret = answer;
	return err;
}

static struct error *change(struct agent_client *agent, Goheapd__Ask *ask,
			    const struct patience *patience)
{
	Goheapd__Request request = GOHEAPD__REQUEST__INIT;
	Goheapd__Answer *answer;
	struct error *err;

	request.body_case = GOHEAPD__REQUEST__BODY_ASK;
	request.ask = ask;
	err = call(agent, &request, GOHEAPD__ANSWER__BODY_KEPT_SCANS, patience, &answer);
	if (!err)
		goheapd__answer__free_unpacked(answer, NULL);
	return err;
}

struct error *kept_ask_drop(struct agent_client *agent, const char *id,
			    const struct patience *patience)
{
	Goheapd__Analysis nothing = GOHEAPD__ANALYSIS__INIT;
	Goheapd__Ask ask;

	fill(&ask, id, &nothing);
	ask.has_drop = ask.drop = true;
	return change(agent, &ask, patience);
}

struct error *kept_ask_extend(struct agent_client *agent, const char *id, uint64_t keep_us,
			      bool implied, const struct patience *patience)
{
	Goheapd__Analysis nothing = GOHEAPD__ANALYSIS__INIT;
	Goheapd__Ask ask;

	fill(&ask, id, &nothing);
	ask.has_keep_ms = true;
	ask.keep_ms = keep_us / 1000;
	ask.has_keep_implied = true;
	ask.keep_implied = implied;
	return change(agent, &ask, patience);
}

struct error *kept_ask_list(struct agent_client *agent, const struct patience *patience,
			    Goheapd__Answer **ret)
{
	Goheapd__Request request = GOHEAPD__REQUEST__INIT;
	Goheapd__ListKept list = GOHEAPD__LIST_KEPT__INIT;

	request.body_case = GOHEAPD__REQUEST__BODY_LIST_KEPT;
	request.list_kept = &list;
	return call(agent, &request, GOHEAPD__ANSWER__BODY_KEPT_SCANS, patience, ret);
}
