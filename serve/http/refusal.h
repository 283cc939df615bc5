/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_REFUSAL_H
#define TERN_SERVE_HTTP_REFUSAL_H

/* Why a request is not answered, as clients of this interface expect to hear it. */

#include "base/json_tree/text.h"
#include "serve/http/http.h"
#include "tern/status.h"

typedef struct refusal {
    unsigned status;        /* of HTTP; 0: nothing is refused */
    const char *type;       /* as "invalid_request_error"; static storage */
    const char *code;       /* as "model_not_found"; NULL: none */
    char param[96];         /* the field that is wrong; "": none */
    char message[640];      /* for people */
    unsigned retry_seconds; /* in Retry-After; 0: what the status asks for */
    size_t n_prompt, n_ctx; /* of a prompt that is too long; 0: it is not about that */
} refusal;

/* Sets *r, with the type that belongs to the status. Returns false, which the caller can return in
 * turn. */
bool refuse(refusal *r, unsigned status, const char *param, const char *format, ...)
    TERN_PRINTF(4, 5);

/* What a failed call of the library means for its client. */
bool refuse_error(refusal *r, const char *param, const tern_error *err);

/* A prompt that does not fit. */
bool refuse_length(refusal *r, size_t n_prompt, size_t n_ctx);

/* The same of one that has more tokens, nobody knows how many. */
bool refuse_long(refusal *r, size_t than, size_t n_ctx);

/* {"error": {...}}, and parts of it: its one member, and of that `"message":`, param and code. */
void refusal_write(const refusal *r, text *out);
void refusal_write_error(const refusal *r, text *out);
void refusal_write_reason(const refusal *r, text *out);

/* {"type": "error", "error": {...}}, as Anthropic's clients read it. */
void refusal_write_message(const refusal *r, text *out);

/* Replies with it, in the form that belongs to the path, and with what its status asks for:
 * Retry-After, WWW-Authenticate, x-should-retry. */
void refusal_reply(const refusal *r, http_exchange *x);

#endif
