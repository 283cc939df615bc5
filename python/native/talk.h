/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_PYTHON_NATIVE_TALK_H
#define TERN_PYTHON_NATIVE_TALK_H

/*
 * Requests in the form of OpenAI's interface, answered in the process: the server's readers and
 * dialects without a server. Only the Python package has it.
 *
 *     tern_talk_open(model, engine, &params, &talk, &err);
 *     tern_talk_ask(talk, TERN_TALK_CHAT, body, size, &answer, &err);
 *     tern_talk_submit(answer, &ids, &n, &err);
 *     ... for each event of one of these ids: over = tern_talk_take(answer, event),
 *         and tern_talk_text gives what it wrote
 *     tern_talk_answer_free(&answer); tern_talk_close(&talk);
 *
 * Threads: a talk may be used by any number at once, an answer by one at a time.
 */

#include "tern/engine.h"

TERN_API_BEGIN

typedef struct tern_talk tern_talk;
typedef struct tern_talk_answer tern_talk_answer;

/* The interfaces that a body may have. */
typedef enum tern_talk_kind {
    TERN_TALK_CHAT,       /* OpenAI's chats */
    TERN_TALK_COMPLETION, /* its completions */
    TERN_TALK_RESPONSE,   /* its responses */
    TERN_TALK_MESSAGE     /* Anthropic's messages */
} tern_talk_kind;

typedef struct tern_talk_params {
    const char *name;             /* of the model, in replies; copied */
    tern_sampler_params sampling; /* for fields that a body leaves out */
    size_t max_tokens;            /* likewise; 0: until the context is full */
    tern_draft_mode draft;
    tern_format kv; /* of the engine's cache */
} tern_talk_params;

/* The engine is the model's; both must outlive the talk. TERN_ERR_TOKENIZER_MISSING,
 * TERN_ERR_NOMEM, TERN_ERR_NULL. */
TERN_MUST_CHECK tern_status tern_talk_open(const tern_model *model, tern_engine *engine,
                                           const tern_talk_params *params, tern_talk **out,
                                           tern_error *err);

/* All answers must have been freed. Sets *talk to NULL; NULL is fine. */
void tern_talk_close(tern_talk **talk);

enum { TERN_TALK_PARAM_BYTES = 96 };

/*
 * Reads body[size], a JSON object. A request that is refused is TERN_ERR_ARG, or TERN_ERR_CONTEXT
 * where it is too long, TERN_ERR_NOMEM where memory is short; `param` [TERN_TALK_PARAM_BYTES] is
 * then the name of the wrong field, "" where there is none.
 */
TERN_MUST_CHECK tern_status tern_talk_ask(tern_talk *talk, tern_talk_kind kind, const char *body,
                                          size_t size, tern_talk_answer **out, char *param,
                                          tern_error *err);

/* The fields of the body that have no effect, as a list of JSON texts: "a","b"; "": all of them
 * have one. Lives as long as the answer. */
const char *tern_talk_ignored(const tern_talk_answer *answer);

/* Hands the request to the engine, once. Sets *ids to the engine's numbers of its parts, [*n],
 * which the answer owns. Errors as tern_engine_submit: then these parts are cancelled, and their
 * last events still come. */
TERN_MUST_CHECK tern_status tern_talk_submit(tern_talk_answer *answer, const uint64_t **ids,
                                             size_t *n, tern_error *err);

/* Takes an event of one of its parts. True: the reply is over, and no further event will come. */
bool tern_talk_take(tern_talk_answer *answer, const tern_event *event);

/* Ends its parts before the next pass. */
void tern_talk_cancel(tern_talk_answer *answer);

/* The bytes that were written since the last call, which live until the next call of any function
 * for this answer: events of a stream, or the whole reply. */
const char *tern_talk_text(tern_talk_answer *answer, size_t *size);

/* The status of the reply as HTTP has it: 200, or that of an error whose text is the reply; 0:
 * there is none yet. */
unsigned tern_talk_status(const tern_talk_answer *answer);

/* No event of its parts may come any more. Sets *answer to NULL; NULL is fine. */
void tern_talk_answer_free(tern_talk_answer **answer);

TERN_API_END

#endif
