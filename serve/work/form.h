/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_WORK_FORM_H
#define TERN_SERVE_WORK_FORM_H

/*
 * Forms of replies, one for each interface: what is written of a job, whole or as the events of a
 * stream, all of it appended to the job's `out`.
 */

#include "serve/work/job.h"

struct form {
    const char *id;  /* what ids of replies begin with */
    bool trims;      /* a blank with which an answer begins is not part of it */
    bool keeps_text; /* a stream repeats its text at the end */
    bool has_ids;    /* ids of tokens are told */
    bool notes_end;  /* logarithms also of the token that ended a text */

    void (*open)(job *j);  /* writes the head; NULL: there is none */
    void (*begin)(job *j); /* events with which a stream begins */
    void (*piece)(job *j, size_t i, const char *bytes, size_t size); /* the event of some text */
    void (*call)(job *j, size_t i); /* events of a choice's latest call: */
    void (*arguments)(job *j, size_t i, const char *bytes,
                      size_t size);         /* it begins, more of its */
    void (*call_end)(job *j, size_t i);     /* arguments, it ends; NULL: there are no calls */
    void (*last)(job *j, size_t i);         /* events after the text of a choice */
    void (*finish)(job *j);                 /* events after all choices */
    void (*fail)(job *j, const refusal *r); /* the event of an error */
    void (*whole)(job *j);                  /* a reply that is not a stream */
    void (*note)(job *j, size_t i, const tern_event *e); /* logarithms of a token, into `logs` */
    void (*note_prompt)(job *j, size_t i, const tern_event *e); /* of one of prompt i; NULL: its
                                                                  prompts are not told */
};

extern const form form_chat, form_completion, form_native, form_message, form_response;
extern const form form_embedding, form_native_embedding; /* of vectors, which are not streams */

/* ---- form.c: what several of them write ------------------------------------------------------ */

void form_add(text *t, const char *words);

/* An event of a stream: its name (NULL: none) and what stands before its document, then its end. */
void form_open_event(job *j, const char *name);
void form_close_event(job *j);

/* Tokens of prompts, of these found in the cache, tokens of answers. */
typedef struct form_usage {
    size_t n_prompt, n_shared, n_generated;
} form_usage;

form_usage form_count(const job *j);

/* `,"tern":{...}` about n choices from `first` on. */
void form_write_tern(job *j, size_t first, size_t n);

/* Into logs[0]: a token as chats tell it, with the likeliest ones. Where the form trims, the first
 * token with text is told without the blank that its text lacks, and so are the likeliest there. */
void form_note_token(job *j, size_t i, const tern_event *e);

/* Call k of a choice: an id like none before it, which begins with these words; where the chat
 * template may want that, nine letters and digits. */
void form_write_call_id(const job *j, text *t, const char *words, size_t i, size_t k);

/* A text or a call of a choice, in the order of the answer. */
typedef struct form_part {
    const tool_call *call; /* NULL: it is a text */
    size_t k;              /* number of the call */
    const char *bytes;     /* [size] of the text, or of the call's arguments */
    size_t size;
} form_part;

/* Part number n of a choice whose texts are kept; false after the last one. Without a call there is
 * one text, perhaps an empty one; else no text is empty. */
bool form_part_at(const choice *c, size_t n, form_part *part);

/* The prompt of a choice: the text that was given, or that of the ids. */
void form_write_prompt(const job *j, size_t i, text *t);

/* `,"NAME":true` or false. */
void form_write_truth(text *t, const char *name, bool value);

#endif
