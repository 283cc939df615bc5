/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/served.h"

#include <stdlib.h>

#include "serve/interfaces/call_probe.h"
#include "serve/models.h"

static void keep(const void *m) {
    models_keep(m);
}

static void give_back(const void *m) {
    models_give_back(m);
}

static void set_rules(served *m) {
    const server_config *c = m->params.config;
    enum { LEAST_TEXT = 1 << 20, BYTES_OF_A_TOKEN = 8 };
    const uint32_t n_ctx = tern_engine_now(m->engine).n_ctx;
    const size_t longest = (size_t)n_ctx * BYTES_OF_A_TOKEN;
    m->text_bytes = longest > LEAST_TEXT ? longest : LEAST_TEXT;
    const uint32_t queue = m->with.engine.n_queue;
    call_find(m->tokenizer, &m->calls);
    m->rules = (ask_rules){.tokenizer = m->tokenizer,
                           .model = m->params.name,
                           .any_model = c->any_model || c->n_models > 1 ||
                                        c->fetcher != NULL, /* it was chosen by name */
                           .sampling = m->with.sampling,
                           .seeded = c->seeded,
                           .max_tokens = c->max_tokens,
                           .n_vocab = m->info.n_vocab,
                           .n_ctx = n_ctx,
                           .most_choices =
                               queue > 0 && queue < ASK_MOST_CHOICES ? queue : ASK_MOST_CHOICES,
                           .receipts = m->with.receipts != NULL && m->scales->n == 0,
                           .records = m->with.receipts != NULL && m->with.receipts->record != NULL,
                           .vectors = m->with.model,
                           .n_embd = m->info.n_embd,
                           .calls = &m->calls,
                           .thinking = thinking_find(m->tokenizer),
                           .grammars = m->grammars,
                           .adapters = m->scales,
                           .open_objects = c->open_objects};
    m->place = (job_place){.tokenizer = m->tokenizer,
                           .model = m->params.name,
                           .fingerprint = m->fingerprint,
                           .n_ctx = n_ctx,
                           .threads = tern_engine_now(m->engine).threads,
                           .receipts = m->with.receipts,
                           .audits = m->with.audit != NULL,
                           .slots = c->slot_path != NULL,
                           .draft = c->draft,
                           .pooling = m->with.pooling,
                           .lease = {m, keep, give_back}};
}

tern_status served_open(served *m, const served_params *params, const model_setup *with,
                        tern_error *err) {
    *m = (served){.params = *params, .with = *with};
    tern_status status = tern_model_tokenizer(with->model, &m->tokenizer, err);
    if (status == TERN_OK)
        status = tern_engine_new(with->model, &with->engine, &m->engine, err);
    if (status == TERN_OK && with->audit != NULL)
        status = audit_open(with->audit, &with->engine, &m->audit, err);
    if (status != TERN_OK)
        return status;
    m->scales = malloc(sizeof *m->scales);
    if (m->scales == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for adapters");
    adapter_scales_open(m->scales, with->model);
    tern_model_describe(with->model, &m->info);
    tern_fingerprint(tern_model_identity(with->model), tern_format_describe(with->engine.kv)->name,
                     m->fingerprint);
    status = grammars_open(m->tokenizer, m->info.n_vocab, &m->grammars, err);
    if (status != TERN_OK)
        return status;
    set_rules(m);
    return worker_open(&(const worker_params){.engine = m->engine,
                                              .model = with->model,
                                              .audit = m->audit,
                                              .turns = params->turns,
                                              .slots = m->params.config->slot_path != NULL
                                                           ? with->engine.n_sequences
                                                           : 0,
                                              .counts = params->counts},
                       &m->worker, err);
}

void served_close(served *m) {
    worker_free(&m->worker);
    audit_free(&m->audit);
    tern_engine_free(&m->engine);
    grammars_free(&m->grammars);
    if (m->scales != NULL)
        adapter_scales_close(m->scales);
    free(m->scales);
    *m = (served){0};
}
