/*
 * Whether bytes are one message of ours and nothing else, before anything is allocated for them:
 * every field known and of its wire type, in ascending order as our own encoder writes them, every
 * enum value known, nesting and the memory that decoding will take within limits. It works on
 * the message descriptors, without recursion; protobuf-c itself keeps unknown fields, recurses as
 * deep as the input says, and turns two bytes of an empty nested message into hundreds.
 */
#ifndef PROTO_WIRE_CHECK_H
#define PROTO_WIRE_CHECK_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/error.h"

/* ERROR_FORMAT for what is no such message, ERROR_LIMIT for what is too deep or too large. */
must_check struct error *wire_check(const ProtobufCMessageDescriptor *descriptor, const void *bytes,
				    size_t size, uint64_t memory_max);

#endif
