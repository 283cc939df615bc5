/* SPDX-License-Identifier: Apache-2.0 */
/* tern verify: is a receipt what a real run wrote, and does it run again. tern keygen: the keys. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "receipts/rules.h"
#include "receipts/sign.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/model/json.h"
#include "tools/receipt/receipt.h"
#include "tools/receipt/replay.h"

int cmd_keygen(const options *o) {
    const char *path = o->operands[0];
    tern_error err = {0};
    if (sign_make_keys(path, &err) != TERN_OK)
        return complain_error(&err);
    out_print("secret key  %s\npublic key  %s.pub\n", path, path);
    return EXIT_DONE;
}

typedef struct verification {
    const options *o;
    const char *path;
    json_t *receipt;
    const document_type *type; /* NULL: of no known kind, which `found` says */
    receipt_findings found;
    bool replayed;
    replay_report replay;
} verification;

/* Of a command or of a server: something that can be run again. */
static bool is_run(const verification *v) {
    return v->type == &document_run || v->type == &document_answer;
}

static void print_answer(const json_t *r) {
    out_print("  rules      every field there and consistent\n");
    out_print("  answer     %" PRId64 " tokens after %" PRId64 " on %s, computed twice, %s\n",
              rule_count(r, "output.tokens"), rule_count(r, "prompt.tokens"),
              rule_text(r, "run.isa"), rule_text(r, "timestamp"));
}

static void print_run(const json_t *r) {
    out_print("  rules      every field there and consistent; %" PRId64 " tests passed, 0 failed\n",
              rule_count(r, "test_results.passed"));
    out_print("  run        %" PRId64 " tokens after %" PRId64 " with %zu kernels on %s, %s\n",
              rule_count(r, "output.tokens"), rule_count(r, "prompt.tokens"),
              json_array_size(receipt_at(r, "kernels")), rule_text(r, "run.isa"),
              rule_text(r, "timestamp"));
}

/* A text of the document in one line: documents are anybody's. */
typedef struct plain {
    char text[512];
} plain;

static plain plain_text(const char *text) {
    plain p;
    (void)snprintf(p.text, sizeof p.text, "%s", text);
    for (char *c = p.text; *c != '\0'; c++)
        *c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
    return p;
}

static void print_origin(const json_t *r) {
    const size_t lacking = json_array_size(receipt_at(r, "origin.not_recorded"));
    if (lacking > 0) {
        out_print("  imported   %zu fields were not recorded. %s\n", lacking,
                  plain_text(rule_text(r, "origin.note")).text);
    } else {
        out_print("  measured   %s on %s\n", rule_text(r, "timestamp"),
                  plain_text(rule_text(r, "machine.cpu")).text);
    }
}

static void print_benchmark(const json_t *r) {
    out_print("  benchmark  of %s: prefill %.1f, decode %.1f tokens/s, medians of %" PRId64
              " rounds\n",
              plain_text(rule_text(r, "model_info.model_path")).text,
              rule_number(r, "benchmark.prefill_tps"), rule_number(r, "benchmark.decode_tps"),
              rule_count(r, "benchmark.repeat"));
    print_origin(r);
}

static void print_comparison(const json_t *r) {
    const char *name;
    json_t *ratio;
    json_object_foreach(json_object_get(r, "ratios"), name, ratio) {
        out_print("  %-11s b / a %.3f [%.3f, %.3f]\n", plain_text(name).text,
                  rule_number(ratio, "ratio"), rule_number(ratio, "low"),
                  rule_number(ratio, "high"));
    }
    print_origin(r);
}

static void print_perplexity(const json_t *r) {
    out_print("  perplexity %.4f of %s, in %" PRId64 " windows of %" PRId64 " tokens of %s\n",
              rule_number(r, "perplexity.value"),
              plain_text(rule_text(r, "model_info.model_path")).text,
              rule_count(r, "perplexity.windows"), rule_count(r, "perplexity.ctx"),
              plain_text(rule_text(r, "perplexity.text")).text);
    print_origin(r);
}

static void print_signature(const verification *v) {
    const json_t *r = v->receipt;
    if (json_object_get(r, "signature") == NULL) {
        out_print("  signature  none\n");
    } else if (options_given(v->o, OPT_PUBLIC_KEY)) {
        out_print("  signature  good, by the key in %s\n", options_text(v->o, OPT_PUBLIC_KEY));
    } else {
        out_print("  signature  by %.16s... (--public-key FILE checks whose that is)\n",
                  rule_text(r, "signature.public_key"));
    }
}

static void print_replay(const verification *v) {
    if (!v->replayed) {
        out_print("  replay     not made (--replay runs it again)\n");
        return;
    }
    out_print("  replay     %" PRIu64 " tokens and ", v->replay.tokens);
    if (v->type == &document_answer)
        out_print("the digest of hidden states");
    else
        out_print("%" PRIu64 " digests of logits", v->replay.digests);
    out_print(", the same bits on %s, %s, %u threads (%.1f s)\n", v->replay.isa, v->replay.layout,
              v->replay.threads, v->replay.seconds);
}

/* What the answer yes rests on, in a few lines. */
static void print_proven(const verification *v) {
    const json_t *r = v->receipt;
    out_print("%s: good\n", v->path);
    if (v->type == &document_benchmark)
        print_benchmark(r);
    else if (v->type == &document_comparison)
        print_comparison(r);
    else if (v->type == &document_answer)
        print_answer(r);
    else if (v->type == &document_perplexity)
        print_perplexity(r);
    else
        print_run(r);
    print_signature(v);
    if (is_run(v))
        print_replay(v);
}

static int print_json(const verification *v) {
    json_t *root = json_object();
    json_t *lines = json_array();
    for (size_t i = 0; i < v->found.n; i++)
        json_array_append_new(lines, json_text(v->found.lines[i], strlen(v->found.lines[i])));
    json_object_set_new(root, "receipt", json_text(v->path, strlen(v->path)));
    json_object_set_new(root, "kind", v->type != NULL ? json_string(v->type->name) : json_null());
    json_object_set_new(root, "valid", json_boolean(v->found.n == 0));
    json_object_set_new(root, "violations", lines);
    json_object_set_new(root, "signed",
                        json_boolean(json_object_get(v->receipt, "signature") != NULL));
    json_object_set_new(root, "replayed", json_boolean(v->replayed));
    return json_print(root);
}

static int report(const verification *v) {
    if (v->found.out_of_memory) {
        complain("%s: no memory to check it", v->path);
        return EXIT_FAILED;
    }
    const int refused = v->found.n == 0 ? EXIT_DONE : EXIT_FAILED;
    if (options_switch(v->o, OPT_JSON)) {
        const int status = print_json(v);
        return status == EXIT_DONE ? refused : status;
    }
    for (size_t i = 0; i < v->found.n; i++)
        complain("%s: %s", v->path, v->found.lines[i]);
    if (v->found.n == 0)
        print_proven(v);
    return refused;
}

/* A build that cannot check signatures says so, and goes on unless a key was asked for. */
static int check_signature(verification *v) {
    const char *key = options_text(v->o, OPT_PUBLIC_KEY);
    tern_error err = {0};
    const tern_status status = sign_check(v->receipt, key, &v->found, &err);
    if (status == TERN_OK)
        return EXIT_DONE;
    (void)complain_error(&err);
    return status == TERN_ERR_UNIMPLEMENTED && key == NULL ? EXIT_DONE : EXIT_FAILED;
}

int cmd_verify(const options *o) {
    verification v = {.o = o, .path = o->operands[0]};
    v.receipt = receipt_read(v.path);
    if (v.receipt == NULL)
        return EXIT_FAILED;
    v.type = receipt_check(v.receipt, &v.found);
    if (v.found.n == 0 && !is_run(&v) && options_switch(o, OPT_REPLAY)) {
        receipt_find(&v.found, "$schema: a %s has nothing to run again: --replay is for receipts",
                     v.type->name);
    }
    int status = check_signature(&v);
    if (status == EXIT_DONE && v.found.n == 0 && options_switch(o, OPT_REPLAY)) {
        status = receipt_replay(v.receipt, v.path, o, &v.found, &v.replay);
        v.replayed = status == EXIT_DONE && v.found.n == 0;
    }
    if (status == EXIT_DONE)
        status = report(&v);
    receipt_findings_free(&v.found);
    json_decref(v.receipt);
    return status;
}
