/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_WORK_JOB_H
#define TERN_SERVE_WORK_JOB_H

/*
 * A request for text while it is answered: the request, the answers so far, and the dialect of the
 * reply. Only one thread at a time may use a job.
 */

#include <time.h>

#include "serve/http/account.h"
#include "serve/http/http.h"
#include "serve/interfaces/ask.h"
#include "serve/interfaces/call_text.h"
#include "serve/work/receipt.h"
#include "tern/engine.h"

/* The lease that a job has of its model (serve/models.h). */
typedef struct job_lease {
    const void *of;
    void (*keep)(const void *of);
    void (*give_back)(const void *of);
} job_lease;

/* The server's data that its jobs need. */
typedef struct job_place {
    const tern_tokenizer *tokenizer;
    const char *model;
    const char *fingerprint;
    uint32_t n_ctx, threads;
    const receipt_maker *receipts;
    bool audits; /* tokens are kept, since answers may be repeated later */
    bool slots;  /* they are kept, since their pages may be saved */
    tern_draft_mode draft;
    tern_pooling pooling; /* for embeddings; NONE: there are none */
    job_lease lease;
} job_place;

enum { JOB_LOG_PARTS = 4 };

/* A call of a tool in an answer. */
typedef struct tool_call {
    char name[CALL_NAME_BYTES];
    text arguments; /* so far; in streams only if the dialect keeps texts */
    size_t at;      /* bytes of the content before the call */
    bool ended;
} tool_call;

typedef struct choice {
    text content;             /* so far; in streams only if the dialect keeps texts */
    text vector;              /* floats of an embedding, when it has ended */
    thinking_reader thinking; /* tells thinking from the rest of its text */
    text thought;             /* thinking so far; kept like the content */
    call_reader reader;       /* reads its text if there may be calls */
    tool_call *calls;         /* [n_calls] */
    size_t n_calls;
    size_t n_parts;           /* in streams that number texts and calls: how many have ended */
    bool in_text;             /* in such streams: a part with text has begun */
    bool in_thought;          /* in such streams: the part with thinking has begun */
    size_t from;              /* in such streams: where that text begins in the content */
    text ids;                 /* tokens not sent yet, as "1,2,3": in llama.cpp's dialect */
    size_t n_tokens;          /* generated so far */
    size_t n_thought;         /* those up to the end of its thinking */
    text tokens;              /* these, int32_t each, if they are kept (job_answer) */
    bool new_line;            /* its text has a line feed */
    text logs[JOB_LOG_PARTS]; /* elements of JSON arrays about its tokens. Chats: `content`;
                                 completions: tokens, token_logprobs, top_logprobs, text_offset */
    size_t offset;            /* completions: characters before the next token; responses: bytes of
                                 logs that were sent */
    double told_seconds;      /* time from submitting to its latest token; 0: there is none */
    bool began;               /* logs have a token; if the dialect trims, one with text */
    bool echoed;              /* the prompt was written with its logprobs */
    bool ended;
    tern_end end;
    size_t stop;       /* with TERN_END_STOP_TEXT: index of the stop text */
    int32_t end_token; /* with TERN_END_OF_TEXT and TERN_END_STOP_TOKEN: the token that ended it */
    tern_branch_figures figures;
    char digest[65];
} choice;

/* Logprobs of a prompt's tokens, for a reply that repeats the prompt. */
typedef struct prompt_notes {
    text logs[JOB_LOG_PARTS]; /* like those of a choice */
    size_t offset;            /* characters before its next token */
    size_t at;                /* bytes of a given text up to the latest control token in it */
} prompt_notes;

/* The replay of an answer, for its receipt. */
typedef struct job_replay {
    text replayed;   /* int32_t tokens */
    char digest[65]; /* of the replay; "": it has not ended */
    char *receipt;   /* from malloc; NULL: not made yet */
} job_replay;

typedef struct dialect dialect;

typedef struct job {
    ask ask;
    const dialect *dialect; /* how its reply is written */
    char id[48];            /* id of its reply */
    time_t created;
    unsigned n_events;                      /* events so far, in streams that number them */
    uint8_t private_name[KEY_DIGEST_BYTES]; /* name of its cache pages if no other job may use
                                               them */
    http_exchange *x;                       /* kept */
    job_place place;
    account *account;            /* kept */
    text head;                   /* beginning of all documents, if the dialect has one */
    text out;                    /* the document that is being written */
    tern_grammar_state **states; /* [n_requests] for answers in a form; NULL: any text */
    uint64_t *ids;               /* [n_requests] the engine's ids; 0: not submitted */
    size_t n_requests;           /* one for each prompt, and one more for a receipt */
    size_t n_asked;              /* those that were submitted to the engine */
    job_replay replay;
    choice *choices;     /* [n_choices]: choice i is branch i % ask.n of prompt i / ask.n */
    prompt_notes *notes; /* [ask.n_prompts]; NULL: prompts are not repeated with logprobs */
    size_t n_choices, n_left;
    bool cut;  /* an answer failed, was cancelled or took too long */
    bool over; /* the reply is complete or given up: further events are dropped */
} job;

/* Makes a job. Takes over what `a` holds, and keeps x and v. NULL: no memory, and nothing was
 * taken. */
job *job_new(const job_place *place, http_exchange *x, account *v, ask *a);
void job_free(job *j);

/* Returns request i for the engine. It points into the job. */
tern_request job_request(const job *j, size_t i);

/* The job was accepted: if it wants a stream, the stream begins. */
void job_begin(job *j);

/* Returns answer i, which must have ended, and whose tokens must have been kept: the first one's
 * are for receipts and audits, those of all for a recording. It points into the job. */
receipt_answer job_answer(const job *j, size_t i);

/* True if job_answer can be used: the answer was computed to its end, and its tokens were kept. */
bool job_is_whole(const job *j, size_t i);

/* True if the answer was repeated with another result. */
bool job_differs(const job *j);

/* Handles an event of branch e->branch of request i. False: the rest is not wanted; cancel it. */
bool job_take(job *j, size_t i, const tern_event *e);

/* Number of requests that were not submitted to the engine yet; number of unfinished choices of the
 * others. Texts for embeddings are submitted a few at a time, so that other requests have room in
 * its queue. */
size_t job_unasked(const job *j);
size_t job_under_way(const job *j);

/* True if no further event will come for the job. */
bool job_is_done(const job *j);

/* True if an answer ended with complete calls. */
bool job_calls(const choice *c);

/* Gives the job up: tells its client the reason, as the last event of a stream that has begun, or
 * else as the reply. */
void job_refuse(job *j, const refusal *r);

#endif
