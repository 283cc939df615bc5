/* SPDX-License-Identifier: Apache-2.0 */
/* The benchmark document of tern bench --record: figures with every sample, model and machine. */

#include <inttypes.h>

#include "receipts/facts.h"
#include "tools/load/loaded_json.h"
#include "tools/load/placement.h"
#include "tools/record/receipt.h"
#include "tools/record/run_facts.h"
#include "tools/speed/speed.h"

static void set(json_t *object, const char *key, json_t *value) {
    json_object_set_new(object, key, value);
}

static json_t *count(uint64_t n) {
    return json_integer((json_int_t)n);
}

static json_t *settings(const bench *b) {
    const options *o = b->o;
    const char *disabled = options_text(o, OPT_DISABLE);
    json_t *root = json_object();
    set(root, "command", json_string("bench"));
    set(root, "isa", json_string(tern_model_isa(b->l.model)));
    if (tern_model_device(b->l.model) != NULL)
        set(root, "device", json_string(tern_model_device(b->l.model)));
    set(root, "disabled", json_string(disabled != NULL ? disabled : ""));
    set(root, "layout", json_string(tern_model_layout(b->l.model)));
    set(root, "choice", json_string(tern_model_choice(b->l.model)));
    set(root, "kv", json_string(tern_format_describe(loader_kv_format(o))->name));
    json_set_activations(root, b->l.model);
    set(root, "context", count(b->context));
    set(root, "batch", count(tern_session_batch(b->l.session)));
    set(root, "threads", count(b->main.threads));
    placement_set_json(root, b->l.model);
    set(root, "strict", json_boolean(options_switch(o, OPT_STRICT)));
    set(root, "exact_head", json_boolean(options_switch(o, OPT_EXACT_HEAD)));
    set(root, "seed", json_sprintf("%" PRIu64, options_integer(o, OPT_SEED)));
    set(root, "weights", json_string(b->l.loading.mapped ? "mapped" : "packed"));
    set(root, "dequantized_rows", count(b->dequantized));
    return root;
}

static json_t *figures(const bench *b) {
    json_t *root = bench_figures(b);
    bench_set_sweeps(root, b);
    return root;
}

int bench_write_record(const bench *b) {
    double hash_seconds = 0.0;
    json_t *model = facts_model(&b->l, b->o, &hash_seconds);
    if (model == NULL)
        return EXIT_FAILED;
    json_t *root = facts_measurement(BENCHMARK_SCHEMA, b->o, &b->l);
    set(root, "model_info", model);
    set(root, "run", settings(b));
    set(root, "benchmark", figures(b));
    set(root, "machine", facts_machine(b->l.model));
    set(root, "versions", facts_versions());
    set(root, "model_hash_seconds", json_number(hash_seconds));
    const int status = receipt_finish(root, b->o, options_text(b->o, OPT_RECORD));
    json_decref(root);
    return status;
}
