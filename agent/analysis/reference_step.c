#include "agent/analysis/reference_step.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct step {
	const char **frames;
	uint32_t count;
	uint32_t prefix; /* the step without its last frame */
};

struct step_table {
	pthread_mutex_t lock;
	struct step *steps;
	uint32_t count, capacity;
	uint32_t *buckets; /* steps, by prefix and last frame; 0: free */
	uint32_t bucket_count;
	uint64_t bytes;
};

enum { BUCKETS_MIN = 1024 };

static uint64_t hash(uint32_t prefix, const char *frame)
{
	uint64_t h = prefix * UINT64_C(0x9e3779b97f4a7c15) + 1;

	for (; *frame; frame++)
		h = (h ^ (uint8_t)*frame) * UINT64_C(0x100000001b3);
	return h ^ h >> 29;
}

/* Where the step is, or would be put. */
static uint32_t *find_bucket(const struct step_table *table, uint32_t prefix, const char *frame)
{
	uint32_t mask = table->bucket_count - 1, i = (uint32_t)hash(prefix, frame) & mask;

	for (; table->buckets[i]; i = (i + 1) & mask) {
		const struct step *step = &table->steps[table->buckets[i]];

		if (step->prefix == prefix && !strcmp(step->frames[step->count - 1], frame))
			break;
	}
	return &table->buckets[i];
}

static struct error *grow_buckets(struct step_table *table)
{
	uint32_t count = table->bucket_count ? table->bucket_count * 2 : BUCKETS_MIN;
	uint32_t *buckets = calloc(count, sizeof(*buckets));

	if (!buckets)
		return &error_nomem;
	free(table->buckets);
	table->buckets = buckets;
	table->bucket_count = count;
	for (uint32_t i = 1; i < table->count; i++) {
		const struct step *step = &table->steps[i];

		*find_bucket(table, step->prefix, step->frames[step->count - 1]) = i;
	}
	return NULL;
}

static struct error *make_room(struct step_table *table)
{
	if (table->count == table->capacity) {
		uint32_t capacity = table->capacity ? table->capacity * 2 : BUCKETS_MIN;
		struct step *steps = realloc(table->steps, capacity * sizeof(*steps));

		if (!steps)
			return &error_nomem;
		table->steps = steps;
		table->capacity = capacity;
	}
	return table->count >= table->bucket_count / 2 ? grow_buckets(table) : NULL;
}

static struct error *add(struct step_table *table, uint32_t prefix, const char *frame,
			 uint32_t *ret)
{
	uint32_t count = table->steps[prefix].count;
	size_t size = (count + 1) * sizeof(char *), text = strlen(frame) + 1;
	const char **frames;
	struct error *err = make_room(table);

	if (err)
		return err;
	frames = malloc(size + text);
	if (!frames)
		return &error_nomem;
	if (count)
		memcpy(frames, table->steps[prefix].frames, count * sizeof(*frames));
	frames[count] = memcpy((char *)frames + size, frame, text);
	table->bytes += size + text;
	table->steps[table->count] =
	    (struct step){ .frames = frames, .count = count + 1, .prefix = prefix };
	*find_bucket(table, prefix, frame) = table->count;
	*ret = table->count++;
	return NULL;
}

static struct error *find_or_add(struct step_table *table, uint32_t prefix, const char *frame,
				 uint32_t *ret)
{
	uint32_t found = *find_bucket(table, prefix, frame);

	*ret = found ? found : prefix;
	if (found || table->count >= STEPS_MAX || table->bytes >= STEP_BYTES_MAX ||
	    table->steps[prefix].count >= STEP_FRAMES_MAX)
		return NULL;
	return add(table, prefix, frame, ret);
}

struct error *step_table_add(struct step_table *table, uint32_t step, const char *name,
			     const char *type, uint32_t *ret)
{
	char frame[STEP_TEXT_MAX];
	struct error *err;

	snprintf(frame, sizeof(frame), "%s. (%s)", name, type);
	pthread_mutex_lock(&table->lock);
	err = find_or_add(table, step, frame, ret);
	pthread_mutex_unlock(&table->lock);
	return err;
}

static struct error *add_untyped(struct step_table *table)
{
	uint32_t untyped;
	struct error *err = make_room(table);

	if (err)
		return err;
	table->steps[table->count++] = (struct step){ 0 };
	return find_or_add(table, STEP_NONE, "$sub_objects$", &untyped);
}

struct error *step_table_new(struct step_table **ret)
{
	struct step_table *table scoped(step_table_freep) = calloc(1, sizeof(*table));
	struct error *err;

	if (!table)
		return &error_nomem;
	pthread_mutex_init(&table->lock, NULL);
	err = add_untyped(table);
	if (err)
		return err;
	*ret = take(table);
	return NULL;
}

void step_table_free(struct step_table *table)
{
	if (!table)
		return;
	for (uint32_t i = 0; i < table->count; i++)
		free(table->steps[i].frames);
	free(table->steps);
	free(table->buckets);
	pthread_mutex_destroy(&table->lock);
	free(table);
}

uint32_t step_table_frames(const struct step_table *table, uint32_t step, const char *const **ret)
{
	*ret = table->steps[step].frames;
	return table->steps[step].count;
}
