/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_WORK_JOB_H
#define TERN_SERVE_WORK_JOB_H

/*
 * A request for text while it is answered: what was asked, what has come of it so far, and how it
 * is told. One thread at a time uses a job.
 */

#include <time.h>

#include "serve/http/http.h"
#include "serve/http/visit.h"
#include "serve/interfaces/ask.h"
#include "serve/interfaces/call_text.h"
#include "serve/work/receipt.h"
#include "tern/engine.h"

/* What all replies of a server say of it. */
typedef struct job_place {
    const tern_tokenizer *tokenizer;
    const char *model;
    const char *fingerprint;
    uint32_t n_ctx, threads;
    const receipt_maker *receipts;
    bool audits; /* answers are repeated when there is time */
    tern_draft_mode draft;
    tern_pooling pooling; /* of vectors; NONE: there are none */
} job_place;

enum { JOB_LOG_PARTS = 4 };

/* A call of a tool in an answer. */
typedef struct tool_call {
    char name[CALL_NAME_BYTES];
    text arguments; /* so far; of a stream only where the form keeps texts */
    size_t at;      /* bytes of the content that stand before it */
    bool ended;
} tool_call;

typedef struct choice {
    text content;       /* so far; of a stream only where the form keeps it */
    text vector;        /* floats, when it has ended, of a text that becomes one */
    call_reader reader; /* of its text, where there may be calls */
    tool_call *calls;   /* [n_calls] */
    size_t n_calls;
    size_t n_parts;           /* of a stream that numbers texts and calls: those that have ended */
    bool in_text;             /* of such: a part with text has begun */
    size_t from;              /* of such: where its text begins in the content */
    text ids;                 /* of tokens that were not told yet, "1,2,3": of a native reply */
    size_t n_tokens;          /* so far */
    bool new_line;            /* there is one in its text */
    text logs[JOB_LOG_PARTS]; /* elements of JSON arrays about its tokens: a chat's `content`; of a
                                 completion tokens, token_logprobs, top_logprobs, text_offset */
    size_t offset;            /* of what comes next: characters before its next token, or bytes of
                                 logs that were told */
    double told_seconds;      /* from submitting to its last token; 0: there was none */
    bool began;               /* logs have a token, of a form that trims one with text */
    bool echoed;              /* of a stream: the prompt with its logprobs was told */
    bool ended;
    tern_end end;
    size_t stop; /* of TERN_END_STOP_TEXT: which of the request's */
    tern_branch_figures figures;
    char digest[65];
} choice;

/* Of a prompt's tokens that are told with their logprobs. */
typedef struct prompt_notes {
    text logs[JOB_LOG_PARTS]; /* as a choice's */
    size_t offset;            /* characters before its next token */
} prompt_notes;

/* An answer once more, for its receipt. */
typedef struct job_replay {
    text answered, replayed; /* int32_t each, the tokens of both; of the first also for audits */
    char digest[65];         /* "": it has not ended */
    char *receipt;           /* from malloc; NULL: there is none yet */
} job_replay;

typedef struct form form;

typedef struct job {
    ask ask;
    const form *form; /* of its replies */
    char id[48];      /* of its reply */
    time_t created;
    unsigned n_events;                      /* of a stream that numbers them */
    uint8_t private_name[KEY_DIGEST_BYTES]; /* of its pages, if no other job may use them */
    http_exchange *x;                       /* kept */
    job_place place;
    visit *visit;                /* kept */
    text head;                   /* what documents begin with, where the form has such */
    text out;                    /* the document that is being written */
    tern_grammar_state **states; /* [n_requests] of answers in a form; NULL: there is none */
    uint64_t *ids;               /* [n_requests] of requests of the engine; 0: not submitted */
    size_t n_requests;           /* one for each prompt, and one more for a receipt */
    size_t n_asked;              /* of these, that the engine was asked for */
    job_replay replay;
    choice *choices;     /* [n_choices]: number i is branch i % ask.n of prompt i / ask.n */
    prompt_notes *notes; /* [ask.n_prompts]; NULL: they are not told */
    size_t n_choices, n_left;
    bool cut;  /* something of it ended in another way than an answer does */
    bool over; /* all is told that there is to tell; what still comes of it is dropped */
} job;

/* Takes what `a` holds over, keeps x and v. NULL: no memory, and nothing was taken. */
job *job_new(const job_place *place, http_exchange *x, visit *v, ask *a);
void job_free(job *j);

/* What the engine is to do for request i. Points into the job. */
tern_request job_request(const job *j, size_t i);

/* It was accepted: a stream begins. */
void job_begin(job *j);

/* The first answer of a job, which has ended, and whose tokens were kept. Points into the job. */
receipt_answer job_answer(const job *j);

/* Whether that is of use: it was computed as it was asked for, to its end. */
bool job_is_whole(const job *j);

/* Whether the answer was repeated, with another result. */
bool job_differs(const job *j);

/* What happened to branch e->branch of request i. False: the rest is not wanted, cancel it. */
bool job_take(job *j, size_t i, const tern_event *e);

/* Requests that the engine was not asked for yet; choices of those that it has. Texts that become
 * vectors are asked for a few at a time, so that others have room in its queue. */
size_t job_unasked(const job *j);
size_t job_under_way(const job *j);

/* Nothing more will come of it. */
bool job_is_done(const job *j);

/* Whether an answer ended with calls that are complete. */
bool job_calls(const choice *c);

/* All of it has ended, or will not be told: replies with what there is, or with the refusal. */
void job_refuse(job *j, const refusal *r);

#endif
