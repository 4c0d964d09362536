#include "daemon/render_pprof.h"

#include <config.h>
#include <inttypes.h>

#include "daemon/gzip.h"
#include "daemon/render_json_common.h"
#include "daemon/render_text_common.h"
#include "daemon/rfc3339.h"

enum { LINE_COLUMNS = 1000, WARNINGS_MAX = 100 };

static void add_word(struct text *text, const char *before, const char *word)
{
	text_string(text, before);
	text_escaped(text, text_bytes(word), LINE_COLUMNS);
}

static void add_target(struct text *text, const Goheapd__Identity *identity)
{
	const Goheapd__Build *build = identity->build;

	text_string(text, "target ");
	text_escaped(text, identity->comm, LINE_COLUMNS);
	text_printf(text, " pid %" PRIu32 " ", identity->pid);
	text_escaped(text, identity->exe, LINE_COLUMNS);
	if (build->has_build_id) {
		text_string(text, " build id ");
		text_escaped(text, build->build_id, LINE_COLUMNS);
	}
	text_string(text, "\n");
	if (!build->has_module)
		return;
	text_string(text, "module ");
	text_escaped(text, build->module, LINE_COLUMNS);
	if (build->has_version) {
		text_string(text, " ");
		text_escaped(text, build->version, LINE_COLUMNS);
	}
	if (build->has_vcs_revision) {
		text_string(text, " rev ");
		text_escaped(text, build->vcs_revision, LINE_COLUMNS);
	}
	text_string(text, "\n");
}

static void add_scan(struct text *text, const Goheapd__ScanInfo *scan)
{
	char time[RFC3339_SIZE];

	text_printf(text, "scan at %s mode %s stopped %" PRIu64 ".%03u ms\n",
		    rfc3339_format(scan->started_at_ns, time), render_mode(scan->mode),
		    scan->pause_us / 1000, (unsigned)(scan->pause_us % 1000));
	add_word(text, "layouts ", scan->detail->layouts);
	add_word(text, " names ", scan->detail->names);
	add_word(text, " types ", scan->detail->types);
	if (scan->detail->has_missing) {
		text_string(text, ": ");
		text_escaped(text, scan->detail->missing, LINE_COLUMNS);
	}
	text_printf(text, "\nstacks %" PRIu64 " exact of %" PRIu64 " self-check ",
		    scan->trust->exact_stacks, scan->trust->goroutines);
	text_escaped(text, scan->trust->self_check, LINE_COLUMNS);
	text_string(text, "\n");
	for (size_t i = 0; i < scan->n_warnings && i < WARNINGS_MAX; i++) {
		add_word(text, "warning ", scan->warnings[i]->code);
		text_string(text, ": ");
		text_escaped(text, scan->warnings[i]->message, LINE_COLUMNS);
		text_string(text, "\n");
	}
}

void pprof_comments(struct text *text, const Goheapd__ScanResult *result)
{
	const Goheapd__Identity *identity = result->identity;

	text_string(text, "goheapd " PACKAGE_VERSION "\n");
	add_target(text, identity);
	text_escaped(text, identity->go_version, LINE_COLUMNS);
	add_word(text, " ", identity->arch);
	text_string(text, "\n");
	add_scan(text, result->scan);
}

void render_pprof(struct text *text, const struct chain_tree *tree,
		  const Goheapd__ScanResult *result, const struct pprof_about *about,
		  size_t max_samples)
{
	struct pprof_about whole = *about;
	struct text comments;
	struct bytes plain;
	struct error *err;

	text_init(&comments);
	pprof_comments(&comments, result);
	text_append(&comments, about->comments.data, about->comments.len);
	err = text_finish(&comments);
	whole.exe = result->identity->exe;
	if (result->identity->build->has_build_id)
		whole.build_id = result->identity->build->build_id;
	whole.time_ns = result->scan->started_at_ns;
	whole.comments =
	    (ProtobufCBinaryData){ .len = comments.bytes.size, .data = comments.bytes.data };
	bytes_init(&plain, PPROF_MAX_BYTES);
	if (!err)
		err = pprof_encode(tree, &whole, max_samples, &plain);
	if (!err)
		err = gzip_pack(plain.data, plain.size, &text->bytes);
	text_fail(text, err);
	bytes_fini(&plain);
	text_fini(&comments);
}

void render_pprof_profile(struct text *text, const struct scan_view *view)
{
	const Goheapd__ProfileQuery *query = view->analysis->profile;
	const struct pprof_about about = { .retained = query->retained };
	struct chain_tree tree;
	struct error *err;

	chain_tree_init(&tree);
	err = chain_tree_add(&tree, view->result->profile, CHAIN_PLUS, query->max_depth);
	if (err)
		text_fail(text, err);
	else
		render_pprof(text, &tree, view->result, &about, query->max_samples);
	chain_tree_fini(&tree);
}
