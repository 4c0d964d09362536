/*
 * goheap labels: a census of label sets as a table, from the JSON that a daemon, or goheap itself,
 * has for a process's memusage.
 */
#ifndef CLI_LABELS_H
#define CLI_LABELS_H

#include "daemon/text.h"

/* The table of what the JSON says. ERROR_SYSTEM if it is not what a daemon answers. */
must_check struct error *labels_table(const struct text *json, struct text *table);

/* The same JSON without what is not about labels. */
must_check struct error *labels_json(const struct text *json, struct text *ret);

#endif
