/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_REMOTE_REMOTE_H
#define TERN_TOOLS_REMOTE_REMOTE_H

/*
 * A model on a server with OpenAI's interface, reached by --server. It asks for a stream, and also
 * accepts other forms: complete replies, missing fields, additional fields.
 */

#include "base/json_tree/text.h"
#include "base/json_tree/value.h"
#include "tern/tern.h"
#include "tools/answer/recommended.h"
#include "tools/cli/options.h"
#include "tools/prompt/prompt.h"

enum { REMOTE_NAME_BYTES = 256 };

typedef struct remote remote;

typedef enum remote_end { REMOTE_COMPLETE, REMOTE_LENGTH, REMOTE_INTERRUPTED } remote_end;

/* Zero-initialise it; free it with remote_answer_free. */
typedef struct remote_answer {
    text said;
    remote_end end;
    char reason[32];               /* in the server's words; "": it did not say */
    char model[REMOTE_NAME_BYTES]; /* as the server calls it; "": it did not say */
    char digest[65];               /* from tern's servers; "": none */
    bool has_usage;
    long long prompt_tokens, generated_tokens; /* as the server counts */
    double first_seconds, seconds;             /* until the first text, and in total */
    long retry_seconds; /* the wait before a server that refused (429, 503) may be asked again; 0:
                           it did not say */
} remote_answer;

/* Gets text as it comes; false: it wants no more. */
typedef bool remote_sink(void *user, const char *bytes, size_t size);

/*
 * Opens the server of --server with --api-key-file, --tls-ca, --timeout and the model's name;
 * without a name asks the server which models it has. EXIT_DONE, or the exit status after a
 * complaint.
 */
int remote_open(const options *o, remote **out);

/* Opens another connection to an open server, for another thread. */
int remote_open_again(const remote *first, remote **out);
void remote_close(remote **r);

const char *remote_model(const remote *r);
const char *remote_place(const remote *r); /* URL, or the path of the socket */

/*
 * The fields that options set: max_tokens, stop, the seed, sampling. Other fields are left to the
 * server, except for a temperature of 0 if `likeliest`. NULL after a complaint; *status is then the
 * exit status.
 */
json_t *remote_fields(const options *o, bool likeliest, int *status);

/* Sets the field of a sampling parameter. */
void remote_set_sampling(json_t *fields, sampling_parameter p, double value);

/*
 * Asks for an answer to a conversation, or to a prompt (a text, or an array of ids), with these
 * fields. TERN_ERR_IO: one line that names the server and what is wrong, in the server's words if
 * it has any. *out holds what came before that.
 */
TERN_MUST_CHECK tern_status remote_chat(remote *r, const tern_chat_message *messages, size_t n,
                                        const json_t *fields, remote_sink *sink, void *user,
                                        remote_answer *out, tern_error *err);
TERN_MUST_CHECK tern_status remote_complete(remote *r, json_t *given, const json_t *fields,
                                            remote_sink *sink, void *user, remote_answer *out,
                                            tern_error *err);
void remote_answer_free(remote_answer *a);

/* ---- remote_run.c ---------------------------------------------------------------------------- */

/* tern run --server */
int remote_run(const options *o);

/* Asks for the answer to a prompt; with --chat as a conversation. */
TERN_MUST_CHECK tern_status remote_ask(remote *r, const options *o, const prompt *p,
                                       const json_t *fields, remote_sink *sink, void *user,
                                       remote_answer *out, tern_error *err);

/* Sets the members of an object that describe an answer. */
void remote_set_answer(json_t *root, const remote *r, const remote_answer *a);

/* ---- remote_many.c --------------------------------------------------------------------------- */

/*
 * Answers all prompts of --prompts-file, --parallel of them at a time, and prints in order as they
 * come; with --json a line for each and one for the run. A failed prompt is reported in its place,
 * and the exit status is then EXIT_FAILED.
 */
int remote_run_many(const options *o, const json_t *fields);

#endif
