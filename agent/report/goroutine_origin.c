#include "agent/report/goroutine_origin.h"

#include <stdlib.h>
#include <string.h>

#include "agent/binary/build_info.h"
#include "agent/binary/pclntab.h"
#include "agent/goruntime/addr_map.h"
#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/module.h"
#include "agent/report/message.h"

enum { MAIN_GOROUTINE = 1 };

/* What is known of a pc: the function that a call there is in, and the one that begins there. */
struct place {
	struct place *next;
	ProtobufCBinaryData created_by, entry;
	const char *module; /* belongs to build */
};

struct origin_table {
	const struct module_table *modules;
	const struct build_info *build;
	struct addr_map places;
	struct place *all;
};

struct error *origin_table_new(const struct module_table *modules, const struct build_info *build,
			       struct origin_table **ret)
{
	struct origin_table *table = calloc(1, sizeof(*table));

	if (!table)
		return &error_nomem;
	table->modules = modules;
	table->build = build;
	*ret = table;
	return NULL;
}

void origin_table_free(struct origin_table *table)
{
	struct place *next;

	if (!table)
		return;
	for (struct place *place = table->all; place; place = next) {
		next = place->next;
		free(place->created_by.data);
		free(place->entry.data);
		free(place);
	}
	addr_map_fini(&table->places);
	free(table);
}

/* A name like "example.org/dep/v2/pkg.(*T).Run": the package ends at a point of its last element.
 */
static size_t package_size(const char *function)
{
	const char *slash = NULL, *bracket = strchr(function, '[');
	const char *point;

	for (const char *p = function; *p && p != bracket; p++)
		if (*p == '/')
			slash = p;
	point = strchr(slash ? slash : function, '.');
	return point ? (size_t)(point - function) : strlen(function);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A character of a package in a symbol's name: points in its last element and some others stand
 * there as %2e (cmd/internal/objabi/path.go, PathToPrefix). */
static char next_char(const char **package, const char *end)
{
	const char *p = *package;

	if (*p == '%' && end - p >= 3 && hex_digit(p[1]) >= 0 && hex_digit(p[2]) >= 0) {
		*package = p + 3;
		return (char)(hex_digit(p[1]) << 4 | hex_digit(p[2]));
	}
	*package = p + 1;
	return *p;
}

static bool is_within(const char *package, size_t size, const char *module)
{
	const char *end = package + size;

	if (!*module)
		return false;
	for (; *module; module++)
		if (package == end || next_char(&package, end) != *module)
			return false;
	return package == end || *package == '/';
}

/* Paths of the standard library have no point in their first element; cmd/go/internal/search. */
static bool is_standard(const char *package, size_t size)
{
	const char *slash = memchr(package, '/', size);

	return !memchr(package, '.', slash ? (size_t)(slash - package) : size);
}

const char *origin_module_of(const struct build_info *build, const char *function)
{
	size_t size = package_size(function), best_size = 0;
	const char *best = NULL;

	if (!build)
		return NULL;
	if (size == strlen("main") && !memcmp(function, "main", size))
		return *build->module ? build->module : *build->path ? build->path : NULL;
	for (size_t i = 0; i <= build->dependency_count; i++) {
		const char *module = i ? build->dependencies[i - 1] : build->module;

		if (is_within(function, size, module) && strlen(module) > best_size) {
			best = module;
			best_size = strlen(module);
		}
	}
	return best || !is_standard(function, size) ? best : "std";
}

static struct error *look_up(struct origin_table *table, taddr pc, struct place *place)
{
	const struct module *module = module_table_find_text(table->modules, pc);
	struct pclntab_line lines[PCLNTAB_LINES_MAX];
	struct pclntab_func func;
	uint32_t count = 0;
	bool found = false;
	struct error *err = NULL;

	if (module)
		err = pclntab_find(module->pclntab, pc, &found, &func);
	if (!err && found) {
		place->module = origin_module_of(table->build, func.name);
		err = message_function(func.name, &place->entry);
	}
	if (!err && found)
		err = pclntab_lines(module->pclntab, &func, pc, true, NULL, 0, lines, &count);
	if (err && error_code(err) != ERROR_NOMEM) {
		error_free(err);
		return NULL;
	}
	if (!err && count)
		err = message_function(lines[count - 1].function, &place->created_by);
	return err;
}

static struct error *find_place(struct origin_table *table, taddr pc, const struct place **ret)
{
	static const struct place unknown;
	struct place *place = pc ? addr_map_get(&table->places, pc) : NULL;
	struct error *err;

	*ret = place ? place : &unknown;
	if (place || !pc)
		return NULL;
	place = calloc(1, sizeof(*place));
	if (!place)
		return &error_nomem;
	place->next = table->all;
	table->all = place;
	err = look_up(table, pc, place);
	if (!err)
		err = addr_map_put(&table->places, pc, place);
	*ret = place;
	return err;
}

static struct label_text text_of(ProtobufCBinaryData data)
{
	return (struct label_text){ .bytes = data.data, .size = data.len };
}

struct error *origin_of(struct origin_table *table, const struct goroutine *g,
			enum origin_kind kind, struct label_text *ret)
{
	const struct place *place;
	struct error *err =
	    find_place(table, kind == ORIGIN_CREATED_BY ? g->created_pc : g->start_pc, &place);

	if (err)
		return err;
	*ret = (struct label_text){ 0 };
	switch (kind) {
	case ORIGIN_CREATED_BY:
		if (g->id != MAIN_GOROUTINE)
			*ret = text_of(place->created_by);
		break;
	case ORIGIN_ENTRY:
		*ret = text_of(place->entry);
		break;
	case ORIGIN_MODULE:
		if (place->module)
			*ret = (struct label_text){ (const uint8_t *)place->module,
						    strlen(place->module) };
		break;
	}
	return NULL;
}
