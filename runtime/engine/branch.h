/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_BRANCH_H
#define TERN_RUNTIME_ENGINE_BRANCH_H

/*
 * A branch of a request: one sequence and everything that determines how it goes on. Branches share
 * nothing but pages of keys and values.
 */

#include "base/sha256.h"
#include "runtime/engine/draft/draft.h"
#include "runtime/engine/draft/drafter.h"
#include "runtime/engine/pooled.h"
#include "runtime/engine/sample/end_of_text.h"
#include "runtime/engine/sample/sampler.h"
#include "runtime/engine/schedule.h"
#include "runtime/model/adapters/adapters.h"
#include "tern/engine.h"

/* Parts that a branch of tern_generate borrows instead of having its own; nothing is copied. Such a
 * branch has no text and no digest. */
typedef struct tern_lent {
    tern_sampler *sampler;
    uint32_t n_held;               /* first tokens, which the sampler was already told of */
    tern_token_callback *callback; /* as for tern_generate; NULL: none */
    void *user;
} tern_lent;

/* A token that ends a text and is not part of it. */
typedef struct tern_last_pick {
    int32_t token;
    double logprob;
    size_t n_likeliest; /* the last entries of likeliest are this token's */
} tern_last_pick;

typedef struct tern_branch {
    tern_job job; /* first, so that a pointer to the job is one to its branch */
    uint64_t request;
    uint32_t index;        /* among the request's branches */
    int32_t *tokens;       /* [job.most] */
    bool own_tokens;       /* false: they are a session's */
    const tern_lent *lent; /* NULL: nothing is borrowed */
    uint32_t n_prompt;
    tern_end at_limit; /* the reason to end once there are job.most tokens */
    tern_sampler *sampler;
    int32_t *stop_tokens; /* of end_of_text */
    tern_end_of_text end_of_text;
    tern_answer_text *text;          /* NULL: no tokenizer, and so no text */
    uint8_t space[TERN_SPACE_BYTES]; /* of the request and its adapters */
    tern_adapter_set adapters;
    tern_adapter_use *own_uses; /* of adapters, where the request names them; else NULL */
    tern_mask_hook *mask;
    tern_guess_hook *guess;
    tern_draft *draft; /* NULL: the hook guesses, or nothing does */
    tern_draft_mode draft_mode;
    tern_drafter_place *place; /* where a second model follows the sequence; NULL: none does */
    bool was_placed;           /* it was asked for once */
    void *user;
    tern_logits_hook *logits;
    size_t logits_every;
    bool logprobs, prompt_logprobs, prompt_only;
    tern_pooled pooled;
    uint32_t second_from;           /* of an encoder's request; 0: one text */
    size_t n_logprobs, n_likeliest; /* requested; entries of likeliest that events point to */
    tern_logprob *likeliest;        /* [rows of a pass with results * n_logprobs] */
    tern_sha256 digest;
    bool digests;               /* a digest is wanted */
    double submitted, deadline; /* by the engine's clock; infinite: none */
    tern_branch_figures figures;

    bool is_scheduled; /* the schedule holds it */
    bool was_admitted;
    bool is_over;   /* for the reason `end` */
    bool cancelled; /* guarded by the engine's lock */
    tern_end end;
    tern_last_pick last; /* the token that ended the text, if one did */
    tern_error error;
} tern_branch;

/* A piece of the text of a branch, valid until the next step. */
typedef struct tern_text_part {
    const char *bytes;
    size_t size;
} tern_text_part;

/* The settings that the branches of one engine share. */
typedef struct tern_branch_frame {
    const tern_tokenizer *tokenizer; /* NULL: none */
    size_t piece_bytes;              /* of the tokenizer's longest token */
    const tern_adapters *adapters;   /* of the model */
    uint32_t n_vocab, n_embd;
    uint32_t n_ctx;   /* most positions of a sequence */
    uint32_t n_ahead; /* positions that a sequence without a limit is promised at a time */
    uint32_t n_batch; /* rows of a pass */
    int32_t *tokens;  /* [n_ctx] those of the engine's session; NULL: branches have their own */
    bool no_guesses;  /* wrong ones could not be taken back: the model has states */
} tern_branch_frame;

/*
 * Makes a branch of a request. Everything but tokens, sampling and stops was checked before. Errors
 * as tern_engine_submit.
 */
TERN_MUST_CHECK tern_status tern_branch_new(const tern_branch_frame *frame,
                                            const tern_request *request, uint32_t index,
                                            tern_branch **out, tern_error *err);
void tern_branch_free(tern_branch **branch);

/* Makes *b a branch of tern_generate, whose tokens are those of the frame. Everything is borrowed;
 * tern_branch_free frees only its drafts. TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_branch_lend(const tern_branch_frame *frame,
                                             const tern_request *request, const tern_lent *lent,
                                             tern_branch *b, tern_error *err);

tern_progress tern_branch_progress(const tern_branch *b);

/* True if a hook or a draft guesses the tokens that follow. */
bool tern_branch_guesses(const tern_branch *b);

/* The most tokens that may be guessed for the next pass: after them one is picked. */
uint32_t tern_branch_most_guesses(const tern_branch *b);

/* Asks for guesses and puts them after the tokens until the next pass. Adds them to *pass, the plan
 * so far, which already contains the branch's last token. pays: own guesses may be wanted. */
void tern_branch_guess(tern_branch *b, uint32_t n_vocab, const tern_draft_costs *costs, bool pays,
                       tern_draft_pass *pass);

/* Stops guessing, after a pass with guesses failed. */
void tern_branch_guess_no_more(tern_branch *b);

/* Tells the sampler which tokens may follow. allowed[words] is scratch that must stay valid until
 * the pick. */
TERN_MUST_CHECK tern_status tern_branch_mask(tern_branch *b, uint64_t *allowed, size_t words);

/* Notes the likeliest tokens of logits[n_vocab], if they were requested. sum: ln of the sum of all
 * e^logit. Returns how many. */
size_t tern_branch_likeliest(tern_branch *b, const float *logits, size_t n_vocab, double sum);

/* True if the hook wants to see the logits that the next token is picked from. */
bool tern_branch_shows(const tern_branch *b);

/* Hands logits of a position to the hook, if there is one. */
void tern_branch_show(const tern_branch *b, size_t position, const float *logits);

/*
 * Takes a picked token. It either ends the branch, or becomes one of its tokens; then *part is the
 * text that became certain. True if it became one of its tokens.
 */
bool tern_branch_take(tern_branch *b, int32_t token, tern_text_part *part);

/* Ends the branch, unless it is over already. */
void tern_branch_stop(tern_branch *b, tern_end end);

#endif
