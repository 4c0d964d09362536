/*
 * Numbers that people write: in options, in the configuration and in query parameters. Nothing
 * but the number may stand in the text.
 */
#ifndef DAEMON_QUANTITY_H
#define DAEMON_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

/* Decimal digits. */
bool quantity_u64(const char *text, uint64_t *ret);

/* Seconds with up to six decimals ("0.25"), as microseconds; further decimals are cut. */
bool quantity_seconds(const char *text, uint64_t *ret_us);

/* The same with a unit behind them: 30s, 5m, 1h, 2d; without one, seconds. */
bool quantity_duration(const char *text, uint64_t *ret_us);

/* An address in hexadecimal with 0x in front ("0xc000123000"). */
bool quantity_address(const char *text, uint64_t *ret);

#endif
