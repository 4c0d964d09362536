/*
 * Building messages by hand: every part lies in memory of malloc, as protobuf-c's own unpacking
 * leaves it, so that one free_unpacked gives the whole back.
 */
#ifndef AGENT_REPORT_MESSAGE_H
#define AGENT_REPORT_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

/* A copy of size bytes, or of a string, as a bytes field holds it. */
must_check struct error *message_bytes(const void *data, size_t size, ProtobufCBinaryData *ret);
must_check struct error *message_text(const char *text, ProtobufCBinaryData *ret);

/*
 * The name of a function as Go's own tracebacks print it: with [...] for the shapes of a generic
 * function (runtime/traceback.go, funcNamePiecesForPrint).
 */
must_check struct error *message_function(const char *name, ProtobufCBinaryData *ret);

/* A copy of a string, as a string field holds it. */
must_check struct error *message_string(const char *text, char **ret);

/*
 * Makes room for one more pointer in a repeated field of messages: array has count entries, its
 * capacity grows by powers of two.
 */
must_check struct error *message_reserve(void ***array, size_t count);

/* Adds a warning to an answer; code is a word for programs, the rest a sentence for people. */
must_check struct error *message_warn(Goheapd__ScanInfo *scan, const char *code, const char *format,
				      ...) __attribute__((format(printf, 3, 4)));

#endif
