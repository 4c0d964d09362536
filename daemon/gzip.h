/*
 * gzip, of bytes that we hold whole. The same bytes give the same answer: no time is written.
 */
#ifndef DAEMON_GZIP_H
#define DAEMON_GZIP_H

#include "proto/base/bytes.h"

/* Appends to ret. */
must_check struct error *gzip_pack(const void *data, size_t size, struct bytes *ret);

/* The reverse, for one member and nothing behind it. ERROR_LIMIT beyond ret's limit. */
must_check struct error *gzip_unpack(const void *data, size_t size, struct bytes *ret);

#endif
