/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ENGINE_H
#define TERN_ENGINE_H

/*
 * tern: many sequences at once.
 *
 * An engine computes passes that carry tokens of many sequences, over cache memory that they share
 * in pages. What a sequence gives, tokens and digest, is what it gives alone: for any mixture of
 * others, any order of arrival, shared pages or not, memory to spare or not, any number of threads
 * and any instruction set. Only times differ.
 *
 *     tern_engine_submit(engine, &request, &id, &err);
 *     while (tern_engine_now(engine).waiting + tern_engine_now(engine).running > 0) {
 *         tern_engine_step(engine, &events, &n, &err);
 *         for each of the n events: a token, or the end of a sequence
 *     }
 *
 * Threads: one thread at a time calls tern_engine_step and tern_engine_free. Any thread may submit,
 * cancel and ask for the state at any time, also while a step runs; hooks of requests are called
 * by the thread that makes the step, and must not call the engine.
 *
 * Errors as in tern.h. A request's own error ends that request alone.
 */

#include "tern/embed.h"
#include "tern/tern.h"

TERN_API_BEGIN

typedef struct tern_engine tern_engine;

typedef struct tern_engine_params {
    uint32_t n_ctx;       /* positions of a sequence at most; 0: tern_model_default_context */
    uint64_t pool_bytes;  /* of keys and values of all sequences, see tern_engine_pool_bytes; 0:
                             as many as one needs */
    uint32_t n_sequences; /* that run at once at most, <= n_batch; 0: 16 */
    uint32_t n_queue;     /* that wait at most; 0: 256 */
    uint32_t n_batch;     /* tokens of a pass at most; 0: 128 */
    uint32_t n_ahead;     /* positions that a request without max_tokens is promised at a time;
                             0: 1024 */
    uint32_t threads;     /* 0: as many as there are cores for */
    tern_format kv;       /* TERN_FORMAT_F16 (default), TERN_FORMAT_F32 or TERN_FORMAT_Q8_0 */
    double gap_seconds;   /* between two tokens of a sequence, aimed at while other prompts are
                             read; 0: prompts are read as fast as they can be */
    double (*clock)(void *user); /* seconds; NULL: the machine's. For deadlines and figures, and to
                                    learn what passes cost */
    void *clock_user;
    const tern_model *draft_model; /* a smaller model with the same tokens, which guesses tokens
                                      where a request's draft mode allows it; it outlives the
                                      engine. It takes a cache of its own, for as many whole
                                      contexts as the pool has room for. NULL: none */
} tern_engine_params;

tern_engine_params tern_engine_params_default(void);

/* TERN_ERR_ARG, naming both files, unless `draft` has the tokens of `model`, so that it can be its
 * draft_model; TERN_ERR_ARCH where it continues no text. */
TERN_MUST_CHECK tern_status tern_model_may_draft(const tern_model *draft, const tern_model *model,
                                                 tern_error *err);

/*
 * The pool_bytes that have room for so many positions of sequences, with the other members of
 * params. Layers with a window take less than others: what as many sequences see as run at once,
 * and an eighth of what they would take without a window, where more prompts are found again.
 * TERN_ERR_NULL, and errors of tern_engine_new.
 */
TERN_MUST_CHECK tern_status tern_engine_pool_bytes(const tern_model *model,
                                                   const tern_engine_params *params,
                                                   uint64_t positions, uint64_t *bytes,
                                                   tern_error *err);

/*
 * TERN_ERR_CONTEXT, TERN_ERR_ARG, TERN_ERR_STATE (a model without weights), TERN_ERR_NOMEM,
 * TERN_ERR_CACHE_MEMORY, TERN_ERR_SCRATCH_MEMORY, TERN_ERR_STRICT. TERN_ERR_ARG, naming both files,
 * also for a draft_model with other tokens. The model must outlive the engine. params may be NULL:
 * the defaults.
 */
TERN_MUST_CHECK tern_status tern_engine_new(const tern_model *model,
                                            const tern_engine_params *params, tern_engine **out,
                                            tern_error *err);

/* Ends everything without further events. Sets *engine to NULL; NULL is fine. */
void tern_engine_free(tern_engine **engine);

/* ---- requests ------------------------------------------------------------------------------ */

enum {
    TERN_MOST_GUESSES = 16,  /* tokens that may be guessed for one pass */
    TERN_MOST_LOGPROBS = 32, /* alternatives that a token may come with */
    TERN_SPACE_BYTES = 32
};

/* A branch of a request, for hooks: the prompt and all tokens so far, tokens[n]. */
typedef struct tern_progress {
    uint32_t branch;
    const int32_t *tokens;
    size_t n, n_prompt;
} tern_progress;

/*
 * Which tokens may follow. allowed[words] comes with all bits set, bit i % 64 of word i / 64 for
 * token i; the hook clears those of tokens that may not. It is asked before each token is picked,
 * so the certified head proves its choice among those. False, or no token left, ends the branch
 * with TERN_ERR_ARG. Must depend on nothing but the progress.
 */
typedef bool tern_mask_hook(void *user, const tern_progress *progress, uint64_t *allowed,
                            size_t words);

/*
 * Guesses what follows, guesses[most], and returns how many tokens it guessed. A pass computes them
 * together with the last token and keeps those that it would have picked itself; so guesses change
 * times, never tokens.
 */
typedef size_t tern_guess_hook(void *user, const tern_progress *progress, int32_t *guesses,
                               size_t most);

/*
 * Sees the logits of what may follow tokens[position], logits[n_vocab], before biases, penalties
 * and masks. They are the engine's and live until the hook returns. Each position comes once, in
 * ascending order, in the step that computed it.
 */
typedef void tern_logits_hook(void *user, const tern_progress *progress, size_t position,
                              const float *logits);

/* A request. Everything is copied except the hooks' `user`. Zero what is not wanted. */
typedef struct tern_request {
    const int32_t *tokens; /* [n_tokens] the prompt, >= 1 */
    size_t n_tokens;
    const tern_sampler_params *sampling; /* NULL: the defaults. Branch i has the seed + i */
    uint32_t branches;                   /* answers to the prompt; 0: one */
    size_t max_tokens;                   /* of each answer; 0: until the context is full */
    bool within_context;                 /* max_tokens may exceed the context: the answer then ends
                                            with TERN_END_CONTEXT where that is full, after a prompt
                                            that fills it without a token */
    bool ignore_end;                     /* go on after the model's end-of-text tokens */
    const int32_t *stop_tokens;          /* [n_stop_tokens] further tokens that end the text */
    size_t n_stop_tokens;
    const char *const *stop_texts; /* [n_stop_texts] that end the text where they begin */
    size_t n_stop_texts;
    bool drop_space;     /* one space at the start of the text is not part of it */
    bool logprobs;       /* of each token: ln of its probability before biases, penalties, masks and
                            temperature. Reads the whole head for each */
    uint32_t n_logprobs; /* the likeliest tokens with theirs, TERN_MOST_LOGPROBS at most */
    bool prompt_logprobs; /* the same of the prompt's tokens that follow a position which
                             prompt_from names, as events of their own */
    size_t prompt_from;   /* < n_tokens: of prompt_logprobs and logits, the first position of the
                             prompt whose results are wanted. These are computed, never taken from
                             shared pages; what lies before them may be taken */
    bool prompt_only;     /* ends when the prompt is computed, without a token: max_tokens is 0 and
                             branches at most 1. Its prompt may fill the context */
    tern_pooling pooling; /* of prompt_only without prompt_logprobs, prompt_from and logits: the
                             hidden states become a vector, which the end brings */
    size_t second_from;   /* < n_tokens, of encoders: the first position of the second of two texts,
                             whose tokens are of kind 1 where the model has several kinds. 0: one
                             text */
    const uint8_t *space; /* [TERN_SPACE_BYTES] computed pages are shared only among requests of the
                             same name; NULL: zeros. They must also have the same adapters */
    const tern_adapter_use *adapters; /* [n_adapters] in use, no others; NULL: those and the scales
                                         that the model was opened with. In the engine of a session
                                         NULL only */
    size_t n_adapters;
    int32_t priority;        /* larger ones are admitted first */
    double deadline_seconds; /* from now; what has not ended by then is ended. 0: none */
    tern_mask_hook *mask;    /* NULL: all tokens may follow */
    tern_guess_hook *guess;  /* NULL: nothing is guessed */
    tern_draft_mode draft;   /* where `guess` is NULL: the engine guesses by itself, from what stood
                                in the sequence before, or by draft_model. Takes 12 bytes for each
                                position */
    tern_logits_hook *logits; /* of the prompt from prompt_from on and of all positions that a token
                                 is picked from, or the last one of prompt_only. NULL: of none */
    bool no_digest;           /* the end has an empty one, and the time of hashing is saved */
    size_t logits_every;      /* of positions that tokens are picked from, only the first one and
                                 each so many tokens later; the others are picked without reading
                                 the whole head. 0: all */
    void *user;               /* of hooks */
} tern_request;

/*
 * Lets a request wait for its turn: by priority, then first come, first served. Memory for the
 * prompt and max_tokens is reserved when it is admitted; without max_tokens for the prompt and
 * n_ahead tokens, and for more when they are used up. Where there is no more the youngest one is
 * set aside and computed again later, which changes none of its tokens.
 *
 * If there are several branches, only the first reports what is wanted of the prompt, in events and
 * to the hook for logits; the others have read the same prompt.
 *
 * TERN_ERR_EMPTY, TERN_ERR_TOKEN_RANGE, TERN_ERR_CONTEXT (it could never fit; the message has both
 * numbers), TERN_ERR_QUEUE (too many wait; later it may fit), TERN_ERR_TOKENIZER_MISSING
 * (stop_texts of a model without a tokenizer), TERN_ERR_ARG, TERN_ERR_NULL, TERN_ERR_NOMEM, and
 * what tern_sampler_new refuses. *id is never 0.
 */
TERN_MUST_CHECK tern_status tern_engine_submit(tern_engine *e, const tern_request *request,
                                               uint64_t *id, tern_error *err);

/* Ends all branches of a request before the next pass, which says so in events; false when there is
 * none of that id, any more. */
bool tern_engine_cancel(tern_engine *e, uint64_t id);

/* ---- what comes of them -------------------------------------------------------------------- */

typedef struct tern_logprob {
    int32_t token;
    float logprob;
} tern_logprob;

typedef struct tern_branch_figures {
    size_t n_prompt, n_generated;
    size_t n_shared;      /* of the prompt, found in pages when it was first admitted */
    size_t n_computed;    /* positions, in all passes; those that were computed again, too */
    uint64_t n_found;     /* positions before these that passes found in the cache, summed up */
    uint32_t n_set_aside; /* how often it had to make room */
    uint64_t n_guessed, n_guessed_right;
    double queued_seconds;      /* until it was first admitted */
    double prompt_seconds;      /* from submitting until its prompt was computed; 0: it was not */
    double first_token_seconds; /* from submitting to the first token; 0: there was none */
    double seconds;             /* from submitting to the end */
} tern_branch_figures;

typedef enum tern_event_kind {
    TERN_EVENT_TOKEN,
    TERN_EVENT_END,
    TERN_EVENT_PROMPT /* a token of the prompt with its probability, only if asked for: in order,
                         before all tokens of the branch */
} tern_event_kind;

/* An event of a request's branch. Pointers live until the next step. */
typedef struct tern_event {
    uint64_t request;
    uint32_t branch;
    tern_event_kind kind;
    double seconds;   /* since it was submitted */
    const char *text; /* [size] UTF-8 that is certain to belong to the answer, perhaps of earlier
                         tokens; empty without a tokenizer */
    size_t size;

    /* of a token, of the prompt too; of an end TERN_END_OF_TEXT or TERN_END_STOP_TOKEN: of the
     * token that was picked there, which is not a token of the answer */
    int32_t token;
    size_t position;               /* among all tokens of the branch, the prompt's first one is 0 */
    double logprob;                /* 0 unless asked for */
    const tern_logprob *likeliest; /* [n_likeliest] most likely first */
    size_t n_likeliest;

    /* of an end */
    tern_end end;
    size_t stop_text;        /* of TERN_END_STOP_TEXT: the first of stop_texts that it is */
    const tern_error *error; /* not NULL for TERN_END_ERROR */
    tern_branch_figures figures;
    const float *pooled; /* of a prompt that was pooled; [1] of TERN_POOLING_RANK, of others
                            [n_embd], not normalized; NULL: of other prompts */
    char digest[65]; /* SHA-256, in hexadecimal, of the hidden states after the output norm, n_embd
                        floats each, little-endian, of all positions that a token was picked from,
                        whose logits were asked for, or that were pooled, in order */
} tern_event;

/*
 * One pass: ends what was cancelled or is late, admits, computes, picks. *events[*n] is what
 * happened, in an order of its own; none when there was nothing to do. Allocates nothing.
 * TERN_ERR_NULL.
 */
TERN_MUST_CHECK tern_status tern_engine_step(tern_engine *e, const tern_event **events, size_t *n,
                                             tern_error *err);

typedef struct tern_engine_state {
    uint32_t waiting, running; /* branches */
    uint64_t passes, tokens;   /* computed so far */
    uint64_t shared_tokens;    /* not computed, because a page held them */
    uint64_t set_aside;
    uint32_t pages, free_pages, used_pages, cached_pages; /* of 64 positions, at the last step */
    uint32_t window_pages, free_window_pages, used_window_pages, cached_window_pages; /* of layers
                                        with a window, where these have pages of their own */
    uint32_t n_ctx, threads;
    int refused; /* errno of the first place for threads or memory that the system refused; 0: none
                  */
} tern_engine_state;

tern_engine_state tern_engine_now(tern_engine *e);

/* Forgets what is kept of sequences that have ended. Between steps, by the thread that makes them.
 */
void tern_engine_forget(tern_engine *e);

/* ---- a session's own engine ---------------------------------------------------------------- */

/*
 * The engine of a session, which has one slot: the session's sequence. It lives as long as the
 * session; it is not to be freed. tern_generate answers by it, too.
 *
 * It takes one request at a time (TERN_ERR_QUEUE), of one branch. What the session holds of the
 * request's tokens is not computed again, to the token; space and priority say nothing. When the
 * request ends, the session holds its tokens and all tokens of the answer, the last one too, as
 * after tern_session_eval; where an error ended it before its prompt was computed, what it held of
 * the prompt before. From submitting to the end only hooks look at the session, and nobody changes
 * it. tern_engine_save and tern_engine_load are TERN_ERR_STATE: sessions have their own.
 */
tern_engine *tern_session_engine(tern_session *session);

/* From now on this model guesses tokens in the session, as draft_model does in an engine, with a
 * cache of its own; it outlives the session. NULL: none does. TERN_ERR_STATE while a request is
 * answered, and errors of tern_model_may_draft and tern_session_new: then none does. */
TERN_MUST_CHECK tern_status tern_session_draft_by(tern_session *session, const tern_model *draft,
                                                  tern_error *err);

/* ---- saved sessions ------------------------------------------------------------------------ */

/*
 * Computed pages as the files of tern_session_save, and back: what an engine saves a session
 * restores, and the other way round. Both between steps, by the thread that makes them. space:
 * [TERN_SPACE_BYTES] whose pages are meant, as of a request; NULL: zeros.
 *
 * save writes the longest beginning of tokens[n] that lies in whole computed pages, and sets
 * *positions to its length; without any it is 0, and no file is written.
 *
 * load takes the whole pages of a file as computed ones and sets *positions to how many positions
 * they hold: a later request whose prompt begins with these tokens finds them. A part of a page at
 * the end is left out. Where layers with a window lack in the file what follows its whole pages,
 * nothing is taken, and *positions is 0. The file is checked as tern_session_restore checks it, and
 * on an error the engine is as it was (only where the file changes in between, cached pages may be
 * forgotten).
 *
 * Errors: TERN_ERR_NULL, TERN_ERR_NOMEM, those of tern_session_save and tern_session_restore, and
 * of load TERN_ERR_CACHE_MEMORY: running requests need the pages that it would take.
 */
TERN_MUST_CHECK tern_status tern_engine_save(const tern_engine *e, const int32_t *tokens, size_t n,
                                             const uint8_t *space, const char *path,
                                             size_t *positions, tern_error *err);
TERN_MUST_CHECK tern_status tern_engine_load(tern_engine *e, const char *path, const uint8_t *space,
                                             size_t *positions, tern_error *err);

TERN_API_END

#endif
