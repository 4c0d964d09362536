/*
 * Ownership in scopes: a variable declared scoped(fn) is given back on every way out of its
 * block, and take() hands what it holds to a new owner.
 */
#ifndef PROTO_BASE_CLEANUP_H
#define PROTO_BASE_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

#define must_check __attribute__((warn_unused_result))
#define scoped(fn) __attribute__((cleanup(fn)))

/* Moves a pointer out of its variable, which is left NULL. */
#define take(p)                                                                                    \
	({                                                                                         \
		__typeof__(p) taken_ = (p);                                                        \
		(p) = NULL;                                                                        \
		taken_;                                                                            \
	})

/* Moves a descriptor out of its variable, which is left -1. */
#define take_fd(fd)                                                                                \
	({                                                                                         \
		int taken_ = (fd);                                                                 \
		(fd) = -1;                                                                         \
		taken_;                                                                            \
	})

#define DEFINE_FREEP(type, fn)                                                                     \
	static inline void fn##p(struct type **p)                                                  \
	{                                                                                          \
		fn(*p);                                                                            \
	}

/* For memory of malloc: char *name scoped(freep). */
static inline void freep(void *p)
{
	free(*(void **)p);
}

/* For descriptors; -1 is none. */
static inline void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#endif
