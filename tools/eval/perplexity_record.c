/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/eval/perplexity_record.h"

#include <string.h>

#include "base/metrics.h"
#include "receipts/facts.h"
#include "tools/cli/output.h"
#include "tools/cli/whole_file.h"
#include "tools/load/loaded_json.h"
#include "tools/record/receipt.h"
#include "tools/record/run_facts.h"

static void set(json_t *object, const char *key, json_t *value) {
    json_object_set_new(object, key, value);
}

static json_t *count(uint64_t n) {
    return json_integer((json_int_t)n);
}

static json_t *settings(const perplexity_record *m) {
    json_t *root = json_object();
    set(root, "command", json_string("perplexity"));
    set(root, "isa", json_string(tern_model_isa(m->l->model)));
    set(root, "layout", json_string(tern_model_layout(m->l->model)));
    set(root, "choice", json_string(tern_model_choice(m->l->model)));
    set(root, "kv", json_string(tern_format_describe(loader_kv_format(m->o))->name));
    json_set_activations(root, m->l->model);
    set(root, "threads", count(m->l->threads));
    return root;
}

/* Sets the text's name without folders, and its digest. */
static void set_text(json_t *root, const text_file *t) {
    char hex[RECEIPT_HEX];
    const char *name = file_base_name(t->path);
    facts_hash(t->bytes, t->size, hex);
    set(root, "text", json_text(name, strlen(name)));
    set(root, "text_tokens", count(t->n));
    set(root, "text_sha256", json_string(hex));
}

static json_t *figures(const perplexity_record *m) {
    const perplexity_result *r = m->result;
    json_t *root = json_object(), *means = json_array();
    for (size_t i = 0; i < r->windows; i++)
        json_array_append_new(means, json_number(m->params->means[i]));
    set(root, "value", json_number(r->value));
    set(root, "error", json_number(r->value_error));
    set(root, "low", json_number(r->low));
    set(root, "high", json_number(r->high));
    set(root, "nll", json_number(r->nll));
    set(root, "nll_error", json_number(r->nll_error));
    set(root, "windows", count(r->windows));
    set(root, "ctx", count(m->params->ctx));
    set(root, "stride", count(m->params->stride));
    set(root, "scored_tokens", count(r->scored));
    set_text(root, m->text);
    set(root, "window_nll", means);
    set(root, "rss_mib", json_number(tern_peak_rss_mib()));
    return root;
}

int perplexity_write_record(const perplexity_record *m) {
    json_t *results = figures(m); /* taken before the hash reads the whole model */
    double hash_seconds = 0.0;
    json_t *model = facts_model(m->l, m->o, &hash_seconds);
    if (model == NULL) {
        json_decref(results);
        return EXIT_FAILED;
    }
    json_t *root = facts_measurement(PERPLEXITY_SCHEMA, m->o, m->l);
    set(root, "model_info", model);
    set(root, "run", settings(m));
    set(root, "perplexity", results);
    set(root, "machine", facts_machine(m->l->model));
    set(root, "versions", facts_versions());
    set(root, "model_hash_seconds", json_number(hash_seconds));
    const int status = receipt_finish(root, m->o, options_text(m->o, OPT_RECORD));
    json_decref(root);
    return status;
}
