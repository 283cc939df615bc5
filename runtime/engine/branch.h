/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_BRANCH_H
#define TERN_RUNTIME_ENGINE_BRANCH_H

/*
 * A branch of a request: one sequence, with all that decides what it becomes. Nothing of it is
 * shared with other branches but pages of keys and values.
 */

#include "base/sha256.h"
#include "runtime/engine/draft/draft.h"
#include "runtime/engine/pooled.h"
#include "runtime/engine/sample/end_of_text.h"
#include "runtime/engine/sample/sampler.h"
#include "runtime/engine/schedule.h"
#include "tern/engine.h"

/* What tern_generate brings along in place of what a branch has of its own; nothing is copied. Such
 * a branch has no text and no digest. */
typedef struct tern_lent {
    tern_sampler *sampler;
    uint32_t n_held;               /* of the tokens: the sampler is not told of these */
    tern_token_callback *callback; /* as tern_generate; NULL: nobody is told */
    void *user;
} tern_lent;

/* A token that ends a text and is not in it. */
typedef struct tern_last_pick {
    int32_t token;
    double logprob;
    size_t n_likeliest; /* the last that were noted */
} tern_last_pick;

typedef struct tern_branch {
    tern_job job; /* first, so that a job of the schedule is its branch */
    uint64_t request;
    uint32_t index;        /* of the request's branches */
    int32_t *tokens;       /* [job.most] */
    bool own_tokens;       /* else they are a session's */
    const tern_lent *lent; /* NULL: all is its own */
    uint32_t n_prompt;
    tern_end at_limit; /* why it ends when job.most tokens are there */
    tern_sampler *sampler;
    int32_t *stop_tokens; /* of end_of_text */
    tern_end_of_text end_of_text;
    tern_answer_text *text; /* NULL: there is no tokenizer, and no text */
    uint8_t space[TERN_SPACE_BYTES];
    tern_mask_hook *mask;
    tern_guess_hook *guess;
    tern_draft *draft; /* NULL: the hook guesses, or nothing does */
    tern_draft_mode draft_mode;
    void *user;
    tern_logits_hook *logits;
    size_t logits_every;
    bool logprobs, prompt_logprobs, prompt_only;
    tern_pooled pooled;
    size_t n_logprobs, n_likeliest; /* asked for; entries of likeliest that events point to */
    tern_logprob *likeliest;        /* [rows of a pass with results * n_logprobs] */
    tern_sha256 digest;
    bool digests;               /* there is to be one */
    double submitted, deadline; /* by the engine's clock; infinite: none */
    tern_branch_figures figures;

    bool is_scheduled; /* the schedule has it */
    bool was_admitted;
    bool is_over;   /* for the reason `end` */
    bool cancelled; /* under the engine's lock */
    tern_end end;
    tern_last_pick last; /* of an end by a token */
    tern_error error;
} tern_branch;

/* Some bytes of the text of a branch, until the next step. */
typedef struct tern_text_part {
    const char *bytes;
    size_t size;
} tern_text_part;

/* What branches of one engine have in common. */
typedef struct tern_branch_frame {
    const tern_tokenizer *tokenizer; /* NULL: none */
    size_t piece_bytes;              /* of its longest token */
    uint32_t n_vocab, n_embd;
    uint32_t n_ctx;   /* positions that a sequence may have */
    uint32_t n_ahead; /* and that one without a limit is promised at a time */
    uint32_t n_batch; /* rows of a pass */
    int32_t *tokens;  /* [n_ctx] of the session whose engine it is; NULL: branches have their own */
} tern_branch_frame;

/*
 * A branch of a request that was checked but for its tokens, sampling and stops. Errors as
 * tern_engine_submit.
 */
TERN_MUST_CHECK tern_status tern_branch_new(const tern_branch_frame *frame,
                                            const tern_request *request, uint32_t index,
                                            tern_branch **out, tern_error *err);
void tern_branch_free(tern_branch **branch);

/* Makes *b a branch of tern_generate, whose tokens stand in the frame's. Everything is borrowed;
 * tern_branch_free frees only its drafts. TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_branch_lend(const tern_branch_frame *frame,
                                             const tern_request *request, const tern_lent *lent,
                                             tern_branch *b, tern_error *err);

tern_progress tern_branch_progress(const tern_branch *b);

/* Whether anything guesses what follows. */
bool tern_branch_guesses(const tern_branch *b);

/* Asks for guesses, which stand after the tokens until the next pass, and adds them to *pass, what
 * is planned of it so far: the branch's last token is in it. pays: own guesses may be wanted. */
void tern_branch_guess(tern_branch *b, uint32_t n_vocab, const tern_draft_costs *costs, bool pays,
                       tern_draft_pass *pass);

/* No further guesses: a pass failed that had some. */
void tern_branch_guess_no_more(tern_branch *b);

/* Tells the sampler what may follow. allowed[words] is scratch that must stay until the pick. */
TERN_MUST_CHECK tern_status tern_branch_mask(tern_branch *b, uint64_t *allowed, size_t words);

/* Notes the likeliest tokens of logits[n_vocab], if they are asked for; sum: ln of the sum of all
 * e^logit. Returns how many. */
size_t tern_branch_likeliest(tern_branch *b, const float *logits, size_t n_vocab, double sum);

/* Whether the hook is to see the logits that the next token is picked from. */
bool tern_branch_shows(const tern_branch *b);

/* Hands logits of a position to the hook, if there is one. */
void tern_branch_show(const tern_branch *b, size_t position, const float *logits);

/*
 * Takes a token that was picked: it ends the branch, or is one of its tokens now, and *part is the
 * text that became certain. True when it is one of its tokens.
 */
bool tern_branch_take(tern_branch *b, int32_t token, tern_text_part *part);

/* The branch is over, unless it was before. */
void tern_branch_stop(tern_branch *b, tern_end end);

#endif
