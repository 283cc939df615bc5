/* SPDX-License-Identifier: Apache-2.0 */
/* The receipt of tern bench: one more run, watched and not part of the figures. */

#include "tools/bench/bench.h"
#include "tools/receipt/receipt.h"

typedef struct recording {
    answerer answerer;
    receipt_watch watch;
} recording;

static bool record_token(const char *bytes, size_t size, void *user) {
    recording *r = user;
    (void)bytes;
    (void)size;
    receipt_watch_logits(&r->watch, r->answerer.n_tokens - 1, false);
    return true;
}

static int record(const bench *b, recording *r, const tern_sampler_params *sampling) {
    const prompt tokens = {.ids = b->tokens, .n = b->main.depth > 0 ? b->main.depth : 1};
    const answer_request request = {.prompt = tokens.ids,
                                    .n_prompt = tokens.n,
                                    .seed = sampling->seed,
                                    .max_tokens = b->main.n_decode,
                                    .ignore_end = true,
                                    .sink = record_token,
                                    .user = r};
    const receipt_run run = {.o = b->o,
                             .l = &b->l,
                             .prompt = &tokens,
                             .sampling = sampling,
                             .request = &request,
                             .answer = &r->answerer,
                             .watch = &r->watch};
    tern_error err = {0};
    if (answerer_answer(&r->answerer, &request, &err) != TERN_OK)
        return complain_error(&err);
    receipt_watch_logits(&r->watch, r->answerer.n_tokens, true);
    json_t *benchmark = bench_figures(b);
    const int status = receipt_write(&run, benchmark);
    json_decref(benchmark);
    return status;
}

/* In a session of its own: what it executes is all that it has executed. */
int bench_write_receipt(bench *b) {
    const tern_sampler_params sampling = tern_sampler_params_default();
    tern_error err = {0};
    recording r = {.watch = {.n = 0}};
    tern_session_free(&b->l.session);
    int status = loader_open_session(b->o, &b->l);
    if (status != EXIT_DONE)
        return status;
    r.watch = receipt_watch_begin(b->l.session);
    status = answerer_open(&r.answerer, b->l.session, NULL, &sampling, &err) == TERN_OK
                 ? record(b, &r, &sampling)
                 : complain_error(&err);
    receipt_watch_free(&r.watch);
    answerer_close(&r.answerer);
    return status;
}
