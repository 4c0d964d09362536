/*
 * What a seccomp filter would do with a system call. Filters are programs of classic BPF, which the
 * kernel shows to whom it also lets suspend them; they only jump forward, so that each ends.
 */
#ifndef AGENT_TARGET_SECCOMP_FILTER_H
#define AGENT_TARGET_SECCOMP_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Runs one: *ret is what it returns, SECCOMP_RET_*. false: it is none that the kernel would take.
 */
bool seccomp_filter_run(const struct sock_filter *code, size_t count,
			const struct seccomp_data *data, uint32_t *ret);

/* Of what two filters return that which the kernel follows. */
uint32_t seccomp_filter_stricter(uint32_t a, uint32_t b);

/* Whether a thread that runs into it goes on, with or without the call. */
bool seccomp_filter_harmless(uint32_t returned);

#endif
