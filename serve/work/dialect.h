/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_WORK_DIALECT_H
#define TERN_SERVE_WORK_DIALECT_H

/*
 * Dialects of replies, one for each interface. They write a job as a whole reply or as the events
 * of a stream. Everything is appended to the job's `out`, unless a member says otherwise.
 */

#include "serve/work/job.h"

struct dialect {
    const char *id;  /* beginning of the ids of replies */
    bool trims;      /* a blank at the beginning of an answer is dropped */
    bool keeps_text; /* streams repeat their text at the end */
    bool has_ids;    /* replies have ids of tokens */
    bool notes_end;  /* logprobs include the token that ended a text */
    const char *stream_type; /* type of streams; NULL: server-sent events */

    void (*open)(job *j);  /* writes the job's `head` and first notes; NULL: there are none */
    void (*begin)(job *j); /* the first events of a stream */
    void (*piece)(job *j, size_t i, const char *bytes, size_t size); /* the event for some text */
    void (*thought)(job *j, size_t i, const char *bytes, size_t size); /* the event for some
                                    thinking; NULL: it is not told apart */
    void (*call)(job *j, size_t i); /* a choice's latest call begins; NULL: no calls */
    void (*arguments)(job *j, size_t i, const char *bytes, size_t size); /* more of its arguments */
    void (*call_end)(job *j, size_t i);                                  /* it ends */
    void (*last)(job *j, size_t i);         /* the events after the text of a choice */
    void (*finish)(job *j);                 /* the events after all choices */
    void (*fail)(job *j, const refusal *r); /* the event for an error */
    void (*whole)(job *j);                  /* the whole reply, if it is not a stream */
    void (*note)(job *j, size_t i, const tern_event *e);        /* adds a token to `logs` */
    void (*note_prompt)(job *j, size_t i, const tern_event *e); /* the same for a token of prompt i;
                                                                   NULL: prompts are not repeated */
};

extern const dialect dialect_chat, dialect_completion, dialect_native, dialect_message,
    dialect_response;
extern const dialect dialect_embedding,
    dialect_native_embedding; /* embeddings, which are never streams */
extern const dialect dialect_ollama, dialect_ollama_raw, dialect_ollama_vectors;
extern const dialect dialect_rerank;

/* ---- dialect.c: what several of them write ------------------------------------------------------
 */

void dialect_add(text *t, const char *words);

/* Begin and end an event of a stream. The first writes its name (NULL: none) and the words before
 * its document. */
void dialect_open_event(job *j, const char *name);
void dialect_close_event(job *j);

/* Numbers of tokens: of prompts, of these found in the cache, of answers, and of these thinking. */
typedef struct dialect_usage {
    size_t n_prompt, n_shared, n_generated, n_thought;
} dialect_usage;

dialect_usage dialect_count(const job *j);

/* Writes `,"tern":{...}` about n choices from `first` on. */
void dialect_write_tern(job *j, size_t first, size_t n);

/* Writes a token into logs[0] in the dialect of chats, with the likeliest tokens. If the dialect
 * trims, the first token with text is written without the blank that its text lacks, and so are the
 * likeliest tokens there. */
void dialect_note_token(job *j, size_t i, const tern_event *e);

/* Writes a unique id for call k of choice i, beginning with `words`; or nine letters and digits, if
 * the chat template may demand that. */
void dialect_write_call_id(const job *j, text *t, const char *words, size_t i, size_t k);

/* A part of a choice, its thinking, a text or a call, in the order of the answer. */
typedef struct dialect_part {
    const tool_call *call; /* NULL: the part is a text, or thinking */
    size_t k;              /* number of the call */
    const char *bytes;     /* [size] the text, or the call's arguments */
    size_t size;
    bool thought; /* it is thinking */
} dialect_part;

/* Gets part n of a choice whose texts are kept; false after the last one. Without calls and
 * thinking there is exactly one text, which may be empty; otherwise no text is empty. */
bool dialect_part_at(const choice *c, size_t n, dialect_part *part);

/* Writes the prompt of a choice: the given text, or the text of the given ids. */
void dialect_write_prompt(const job *j, size_t i, text *t);

/* Writes vector i, normalized to length 1 or as it was computed; the second writes
 * `,"tern":{...}` about all vectors. */
void dialect_write_vector(job *j, size_t i, bool normalized);
void dialect_write_vector_tern(job *j);

/* Writes `,"timings":{...}`: how long the prompt and the answer took, with llama.cpp's names. */
void dialect_write_timings(text *t, const tern_branch_figures *figures);

/* Writes `,"NAME":"2026-01-31T23:59:59.000000Z"`. */
void dialect_write_time(text *t, const char *name, struct timespec when);

/* Writes `,"NAME":true` or `,"NAME":false`. */
void dialect_write_truth(text *t, const char *name, bool value);

#endif
