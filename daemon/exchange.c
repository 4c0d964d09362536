#include "daemon/exchange.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/json_fields.h"
#include "proto/base/log.h"
#include "proto/wire/failure.h"

void exchange_init(struct exchange *exchange, struct server *server)
{
	*exchange = (struct exchange){ .server = server, .client = -1 };
	text_init(&exchange->body);
}

void exchange_fini(struct exchange *exchange)
{
	if (exchange->process_answer)
		goheapd__answer__free_unpacked(exchange->process_answer, NULL);
	kept_scan_release(exchange->kept);
	uri_fini(&exchange->uri);
	text_fini(&exchange->body);
}

/* The pids among which a name does not choose. */
static json_t *candidate_list(const struct exchange *exchange)
{
	json_t *list = json_array();

	for (size_t i = 0; i < exchange->candidate_count; i++) {
		if (json_array_append_new(list, json_integer(exchange->candidates[i])) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static struct error *write_json(struct exchange *exchange, const char *code, const char *message)
{
	struct json_fields top, error;
	json_t *object;
	struct error *err;

	json_fields_init(&error);
	json_add_string(&error, "code", code);
	json_add_string(&error, "message", message);
	json_add_optional_u64(&error, "pid", exchange->pid != 0, exchange->pid);
	if (exchange->candidate_count)
		json_add(&error, "pids", candidate_list(exchange));
	json_fields_init(&top);
	json_add_fields(&top, "error", &error);
	err = json_fields_finish(&top, &object);
	if (!err)
		json_write(&exchange->body, object);
	return err;
}

/* One line a failed request: here it stops travelling. */
static void log_refusal(const struct exchange *exchange, const char *code, const char *message)
{
	char target[256], text[512];
	char *quiet scoped(freep) = NULL;
	struct error *err scoped(error_freep) =
	    exchange->target ? uri_without_labels(exchange->target, &quiet) : NULL;
	enum log_level level = exchange->status == 500   ? LOG_LEVEL_ERROR
			       : exchange->status >= 500 ? LOG_LEVEL_WARNING
							 : LOG_LEVEL_INFO;

	log_line(level, "http",
		 "request refused status=%u code=%s uid=%ld target=\"%s\" err=\"%s\"",
		 exchange->status, code, exchange->route ? (long)exchange->peer.uid : -1L,
		 log_escape(!err && quiet ? quiet : "", target, sizeof(target)),
		 log_escape(message, text, sizeof(text)));
}

static void write_refusal(struct exchange *exchange, unsigned status, const char *code,
			  const char *message)
{
	text_fini(&exchange->body); /* a page that was begun */
	text_init(&exchange->body);
	exchange->status = status;
	exchange->has_body = true;
	if (exchange->for_pprof) {
		exchange->content_type = format_content_type(FORMAT_TEXT);
		text_printf(&exchange->body, "%s: %s\n", code, message);
	} else {
		exchange->content_type = format_content_type(FORMAT_JSON);
		text_fail(&exchange->body, write_json(exchange, code, message));
	}
}

void exchange_refuse(struct exchange *exchange, unsigned status, const char *code,
		     const char *message)
{
	write_refusal(exchange, status, code, message);
	log_refusal(exchange, code, message);
}

/* The client learns an id; what went wrong inside is for the log. */
static void refuse_internal(struct exchange *exchange, const char *message)
{
	char told[96], logged[600];
	uint32_t id = 0;

	if (getrandom(&id, sizeof(id), GRND_NONBLOCK) < 0)
		id = (uint32_t)errno;
	snprintf(told, sizeof(told), "goheapd failed at this; its log says why under id=%08" PRIx32,
		 id);
	snprintf(logged, sizeof(logged), "id=%08" PRIx32 ": %s", id, message);
	write_refusal(exchange, 500, "internal", told);
	log_refusal(exchange, "internal", logged);
}

void exchange_fail(struct exchange *exchange, struct error *err)
{
	Goheapd__FailureCode code = failure_of_error(error_code(err));

	if (code == GOHEAPD__FAILURE_CODE__FAILURE_INTERNAL)
		refuse_internal(exchange, error_message(err));
	else
		exchange_refuse(exchange, failure_http_status(code), failure_name(code),
				error_message(err));
	error_free(err);
}
