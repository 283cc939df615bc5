/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/receipt/form_answer.h"

#include <stdlib.h>

#include "base/fingerprint.h"
#include "tools/answer/form.h"
#include "tools/cli/output.h"
#include "tools/receipt/replay_answer.h"
#include "tools/receipt/served_answer.h"

bool form_answer_check(const options *o) {
    if (options_count(o, OPT_STOP_TOKEN) > 0) {
        complain("--receipt: a receipt of an answer in a form has no --stop-token");
        return false;
    }
    if (options_integer(o, OPT_MAX_TOKENS) == 0) {
        complain("--receipt: with -n 0 there is no answer to tell of");
        return false;
    }
    return true;
}

/* NULL: no memory. */
static json_t *form_json(const many_kept *k) {
    return json_pack("{s:s, s:o}", "kind", k->form_kind, "text", json_text(k->form, k->form_size));
}

/* NULL after a complaint, or without memory. */
static json_t *build(const form_answer *a, answer_receipts *receipts) {
    const many_kept *k = a->kept;
    const answer_request request = answer_options_request(a->how, a->o, a->prompt, NULL, NULL);
    const tern_engine_state now = tern_engine_now(a->l->engine);
    char fingerprint[TERN_FINGERPRINT];
    tern_fingerprint(tern_model_identity(a->l->model),
                     tern_format_describe(loader_kv_format(a->o))->name, fingerprint);
    json_t *record = form_json(k);
    const receipt_answer answer = {.fingerprint = fingerprint,
                                   .n_ctx = now.n_ctx,
                                   .threads = now.threads,
                                   .prompt = a->prompt->ids,
                                   .n_prompt = a->prompt->n,
                                   .tokens = k->tokens,
                                   .n_tokens = k->n_tokens,
                                   .sampling = &a->how->sampling,
                                   .max_tokens = k->max_tokens,
                                   .stops = request.stops.texts,
                                   .n_stops = request.stops.n,
                                   .form = record,
                                   .drop_space = request.drop_space,
                                   .end = k->end,
                                   .digest = k->digest};
    json_t *receipt = answer_receipts_build(receipts, &answer);
    json_decref(record);
    return receipt;
}

/* Complains about all of them; whether there are none. */
static bool none_found(receipt_findings *f, const char *why) {
    const bool none = f->n == 0 && !f->out_of_memory;
    for (size_t i = 0; i < f->n; i++)
        complain("receipt: %s: %s", why, f->lines[i]);
    if (f->out_of_memory)
        complain("no memory for the receipt");
    receipt_findings_free(f);
    return none;
}

/* The answer once more, as whoever replays the receipt does it. */
static int repeat(const form_answer *a, const json_t *receipt) {
    const answer_plan plan = {.model = a->l->model,
                              .receipt = receipt,
                              .prompt = a->prompt->ids,
                              .n_prompt = a->prompt->n,
                              .tokens = a->kept->tokens,
                              .n_tokens = a->kept->n_tokens,
                              .sampling = &a->how->sampling,
                              .kv = loader_kv_format(a->o)};
    receipt_findings found = {0};
    uint32_t threads;
    tern_error err = {0};
    if (replay_answer(&plan, &found, &threads, &err) != TERN_OK) {
        receipt_findings_free(&found);
        return complain_error(&err);
    }
    return none_found(&found, "the answer was repeated and is another one") ? EXIT_DONE
                                                                            : EXIT_FAILED;
}

int form_answer_write(const form_answer *a) {
    answer_receipts receipts;
    answer_receipts_open(&receipts, a->o, a->l);
    json_t *receipt = build(a, &receipts);
    int status = EXIT_FAILED;
    if (receipt == NULL && json_memory_failed())
        complain("no memory for the receipt");
    if (receipt != NULL) {
        receipt_findings found = {0};
        receipt_seal(receipt);
        (void)receipt_check(receipt, &found);
        status = none_found(&found, "it would not pass") ? repeat(a, receipt) : EXIT_FAILED;
    }
    if (status == EXIT_DONE)
        status = receipt_finish(receipt, a->o, options_text(a->o, OPT_RECEIPT));
    json_decref(receipt);
    answer_receipts_close(&receipts);
    return status;
}
