/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_REMOTE_REMOTE_H
#define TERN_TOOLS_REMOTE_REMOTE_H

/*
 * A model that a server has: any server with OpenAI's interface, reached by --server. It is asked
 * for a stream and understood where it sends another form: whole replies, fields without values,
 * fields of its own.
 */

#include "base/json_tree/text.h"
#include "base/json_tree/value.h"
#include "tern/tern.h"
#include "tools/cli/options.h"
#include "tools/model/loader.h"

enum { REMOTE_NAME_BYTES = 256 };

typedef struct remote remote;

typedef enum remote_end { REMOTE_COMPLETE, REMOTE_LENGTH, REMOTE_INTERRUPTED } remote_end;

/* Zero-initialise it; remote_answer_free empties it. */
typedef struct remote_answer {
    text said;
    remote_end end;
    char reason[32];               /* as the server calls it; "": it said nothing */
    char model[REMOTE_NAME_BYTES]; /* that the server says it is; "": it does not */
    char digest[65];               /* of tern's servers; "": there was none */
    bool has_usage;
    long long prompt_tokens, generated_tokens; /* by the server's count */
    double first_seconds, seconds;             /* until the first text, and all */
    long retry_seconds; /* after which a server that refused (429, 503) may be asked again; 0: it
                           does not say */
} remote_answer;

/* Text as it comes; false: no more is wanted. */
typedef bool remote_sink(void *user, const char *bytes, size_t size);

/*
 * Opens what --server, --api-key-file, --tls-ca, --timeout and the model's name say; without a name
 * the server is asked which models it has. EXIT_DONE, or the exit status after a complaint.
 */
int remote_open(const options *o, remote **out);

/* A connection more to a server that was opened, for another thread. */
int remote_open_again(const remote *first, remote **out);
void remote_close(remote **r);

const char *remote_model(const remote *r);
const char *remote_place(const remote *r); /* URL, or the path of the socket */

/*
 * The fields that options give: max_tokens, stop, the seed, sampling. What nobody gave is left to
 * the server, but for a temperature of 0 where `likeliest`. NULL after a complaint; *status is then
 * the exit status.
 */
json_t *remote_fields(const options *o, bool likeliest, int *status);

/*
 * Asks for an answer to a conversation, or to what is given (a text, or an array of ids), with
 * these fields. TERN_ERR_IO: one line that names the server and what is wrong, in its own words
 * where it has some. What came before that is in *out.
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

/* Asks for the answer to a prompt; as a conversation where --chat says so. */
TERN_MUST_CHECK tern_status remote_ask(remote *r, const options *o, const prompt *p,
                                       const json_t *fields, remote_sink *sink, void *user,
                                       remote_answer *out, tern_error *err);

/* Members that say it, in an object. */
void remote_set_answer(json_t *root, const remote *r, const remote_answer *a);

/* ---- remote_many.c --------------------------------------------------------------------------- */

/*
 * Answers to all prompts of --prompts-file, --parallel of them at a time, told in order as they
 * come; with --json a line for each and one for the run. One that fails is told in its place, and
 * the exit status is then EXIT_FAILED.
 */
int remote_run_many(const options *o, const json_t *fields);

#endif
