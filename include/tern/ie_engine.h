/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_IE_ENGINE_H
#define TERN_IE_ENGINE_H

/*
 * tern: text in, text out, in four calls, under the names of the specification.
 *
 *     ie_engine_create(&config, &engine, &err);
 *     ie_engine_generate(engine, "Once upon a time", 64, NULL, &answer, &err);
 *     ie_engine_metrics(engine, &metrics, &err);
 *     ie_engine_destroy(&engine);
 *
 * An engine is a model and a tern_engine (tern/engine.h) that answers one prompt after another. It
 * keeps what it computed: where a prompt begins like an earlier one, whole pages of 64 positions
 * are found and not computed again, which changes no bit of the answer.
 *
 * Threads: one thread at a time calls functions of one engine. Engines know nothing of each other.
 * Errors as in tern.h: out-parameters are untouched when a call fails, `err` may be NULL.
 */

#include "tern/engine.h"

TERN_API_BEGIN

typedef struct ie_engine ie_engine_t;

/* The model to run, and the way to run it. Zero what is not wanted; only the engine's clock_user is
 * kept. */
typedef struct ie_engine_config {
    const char *model;                 /* as in tern_model_open */
    const tern_model_params *loading;  /* NULL: the defaults */
    const tern_engine_params *running; /* NULL: the defaults. n_sequences and n_queue are 1 where
                                          they are 0; pool_bytes 0 holds one context, in which pages
                                          of older prompts stay while there is room */
} ie_engine_config_t;

/*
 * Opens the model, packs its weights, takes all memory that passes need, and starts the threads.
 * Errors of tern_model_open, tern_model_tokenizer and tern_engine_new: nothing is kept then.
 * TERN_ERR_NULL, TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status ie_engine_create(const ie_engine_config_t *config, ie_engine_t **out,
                                             tern_error *err);

/* Is told of text that is certain to belong to the answer, text[size] UTF-8; false ends it. */
typedef bool ie_text_callback(const char *text, size_t size, void *user);

typedef struct ie_generate_params {
    const tern_sampler_params *sampling; /* NULL: greedy */
    bool ignore_end;                     /* go on after the model's end-of-text tokens */
    const char *const *stop_texts;       /* [n_stop_texts] that end the text where they begin */
    size_t n_stop_texts;
    ie_text_callback *on_text; /* NULL: nobody is told. Must not call the engine */
    void *user;                /* of on_text */
} ie_generate_params_t;

typedef struct ie_answer {
    const char *text; /* [size] UTF-8 and a zero, without the prompt. The engine's: until the next
                         ie_engine_generate, or ie_engine_destroy */
    size_t size;
    tern_end end;
    tern_branch_figures figures;
    char digest[65]; /* as in tern_event: the same for the same prompt and params, always */
} ie_answer_t;

/*
 * Answers a prompt, a text that ends with a zero, with max_new tokens at most (0: until the context
 * is full). Control tokens are not recognised in it; BOS comes first where the model asks for it.
 * params may be NULL: greedy.
 *
 * TERN_ERR_NULL; TERN_ERR_NOMEM; what tern_tokenize and tern_engine_submit refuse, so
 * TERN_ERR_CONTEXT for a prompt that could never fit; and the error that ended the answer. The
 * engine can be used after each of them.
 */
TERN_MUST_CHECK tern_status ie_engine_generate(ie_engine_t *engine, const char *prompt,
                                               size_t max_new, const ie_generate_params_t *params,
                                               ie_answer_t *out, tern_error *err);

/* An engine's work since it was made. Everything is measured, nothing is estimated. */
typedef struct ie_metrics {
    uint64_t answers;          /* that ended without an error */
    uint64_t prompt_tokens;    /* of these */
    uint64_t generated_tokens; /* of these */
    uint64_t prefix_hits;      /* positions of their prompts that were found in cached pages */
    uint64_t prefix_misses;    /* positions of their prompts that were computed */
    double first_token_ms;     /* from the call to the first token; the mean of the answers that
                                  have a token */
    double p50_ms, p95_ms;     /* between two tokens of an answer, of the last 4096 such times;
                                  0: there is none yet */
    double tokens_per_second;  /* of those tokens that another one of their answer comes before;
                                  0: there is none yet */
    double peak_rss_mib;       /* the most memory that the process has held so far */
} ie_metrics_t;

/* TERN_ERR_NULL. Allocates nothing. */
TERN_MUST_CHECK tern_status ie_engine_metrics(const ie_engine_t *engine, ie_metrics_t *out,
                                              tern_error *err);

/* Ends the threads, gives all memory back and sets *engine to NULL. NULL is fine. */
void ie_engine_destroy(ie_engine_t **engine);

TERN_API_END

#endif
