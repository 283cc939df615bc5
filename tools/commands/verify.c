/* SPDX-License-Identifier: Apache-2.0 */
/* tern verify: checks that a real run wrote a receipt, and replays it. tern keygen: makes keys. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "receipts/rules.h"
#include "receipts/sign.h"
#include "tools/cli/json_line.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/record/receipt.h"
#include "tools/replay/replay.h"

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
    const document_type *type; /* NULL: unknown kind, which is in `found` */
    receipt_findings found;
    bool replayed;
    replay_report replay;
} verification;

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

/* Prints in a few lines why the receipt is good. */
static void print_proven(const verification *v) {
    const json_t *r = v->receipt;
    out_print("%s: good\n", v->path);
    if (v->type == &document_answer)
        print_answer(r);
    else
        print_run(r);
    print_signature(v);
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

/* A build that cannot check signatures says so, and continues unless a key was given. */
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
