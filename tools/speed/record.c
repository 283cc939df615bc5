/* SPDX-License-Identifier: Apache-2.0 */
/* The receipt of tern bench: one additional run, which is watched and not part of the figures. */

#include "tools/record/receipt.h"
#include "tools/speed/speed.h"

typedef struct recording {
    answerer answerer;
    receipt_watch watch;
} recording;

static void record_logits(void *user, const tern_progress *progress, size_t position,
                          const float *logits) {
    recording *r = user;
    (void)position;
    receipt_watch_logits(&r->watch, progress->n - progress->n_prompt, logits);
}

static int record(const bench *b, recording *r, const tern_sampler_params *sampling) {
    const prompt tokens = {.ids = b->tokens, .n = b->main.depth > 0 ? b->main.depth : 1};
    const tern_request request = {.tokens = tokens.ids,
                                  .n_tokens = tokens.n,
                                  .prompt_from = tokens.n - 1,
                                  .sampling = sampling,
                                  .max_tokens = b->main.n_decode,
                                  .within_context = true,
                                  .prompt_only = b->main.n_decode == 0,
                                  .ignore_end = true,
                                  .no_digest = true,
                                  .logits = record_logits,
                                  .logits_every = RECEIPT_EVERY,
                                  .user = r};
    const receipt_run run = {.o = b->o,
                             .l = &b->l,
                             .prompt = &tokens,
                             .request = &request,
                             .answer = &r->answerer,
                             .watch = &r->watch};
    const answer_task task = {.n = 1, .ahead = 1, .live = 1, .request = &request};
    tern_error err = {0};
    if (answerer_run(&r->answerer, &task, &err) != TERN_OK)
        return complain_error(&err);
    receipt_watch_end(&r->watch, r->answerer.latest.n_tokens);
    json_t *benchmark = bench_figures(b);
    const int status = receipt_write(&run, benchmark);
    json_decref(benchmark);
    return status;
}

/* Uses a separate session, so that the receipt covers everything the session has executed. */
int bench_write_receipt(bench *b) {
    const tern_sampler_params sampling = tern_sampler_params_default();
    recording r = {.watch = {.n = 0}};
    tern_session_free(&b->l.session);
    int status = loader_open_session(b->o, &b->l);
    if (status != EXIT_DONE)
        return status;
    r.watch = receipt_watch_begin(b->l.session);
    r.answerer = answerer_of(b->l.session, NULL);
    status = record(b, &r, &sampling);
    receipt_watch_free(&r.watch);
    answerer_close(&r.answerer);
    return status;
}
