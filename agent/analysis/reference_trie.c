#include "agent/analysis/reference_trie.h"

#include <stdio.h>
#include <string.h>

enum { NAME_SIZE = 1024 };

static const char *const packages[] = { "internal/sync.", "internal/concurrent." };

/* What follows the package and kind of a type's name, or NULL. */
static const char *match(const struct go_type *type, const char *kind, const char **ret_package)
{
	if (type->kind != GO_KIND_STRUCT)
		return NULL;
	for (size_t i = 0; i < sizeof(packages) / sizeof(*packages); i++) {
		size_t size = strlen(packages[i]);

		*ret_package = packages[i];
		if (!strncmp(type->name, packages[i], size) &&
		    !strncmp(type->name + size, kind, strlen(kind)))
			return type->name + size + strlen(kind);
	}
	return NULL;
}

bool trie_is_node(const struct go_type *type)
{
	const char *package;

	return match(type, "node[", &package);
}

/* The type whose name has another kind before the same arguments. */
static struct error *find_sibling(struct go_types *types, type_id type, const char *from,
				  const char *to, type_id *ret)
{
	const char *package, *arguments = match(go_type_at(types, type), from, &package);
	char name[NAME_SIZE];

	*ret = TYPE_UNKNOWN;
	if (!arguments ||
	    snprintf(name, sizeof(name), "%s%s%s", package, to, arguments) >= NAME_SIZE)
		return NULL;
	return go_types_by_name(types, name, ret);
}

struct error *trie_node_of_inner(struct go_types *types, type_id inner, type_id *ret)
{
	return find_sibling(types, inner, "indirect[", "node[", ret);
}

struct error *trie_entry_of_node(struct go_types *types, type_id node, type_id *ret)
{
	return find_sibling(types, node, "node[", "entry[", ret);
}
