/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_REFUSAL_H
#define TERN_SERVE_HTTP_REFUSAL_H

/* The reason why a request is not answered, in the form that clients of this interface expect. */

#include "base/json_tree/text.h"
#include "serve/http/http.h"
#include "tern/status.h"

typedef struct refusal {
    unsigned status;        /* HTTP status; 0: nothing is refused */
    const char *type;       /* such as "invalid_request_error"; static storage */
    const char *code;       /* such as "model_not_found"; NULL: none */
    char param[96];         /* name of the wrong field; "": none */
    char message[640];      /* for people */
    unsigned retry_seconds; /* for Retry-After; 0: the default of the status */
    size_t n_prompt, n_ctx; /* set if a prompt is too long; else 0 */
} refusal;

/* Sets *r, with the type that belongs to the status. Always returns false, so that the caller can
 * return it in turn. */
bool refuse(refusal *r, unsigned status, const char *param, const char *format, ...)
    TERN_PRINTF(4, 5);

/* Refuses because a call of the library failed, with the status and message that the client may
 * see. */
bool refuse_error(refusal *r, const char *param, const tern_error *err);

/* Refuses a prompt that does not fit into the context. */
bool refuse_length(refusal *r, size_t n_prompt, size_t n_ctx);

/* The same if the prompt has more than `than` tokens and was not counted further. */
bool refuse_long(refusal *r, size_t than, size_t n_ctx);

/* Appends {"error": {...}}; the second, only the member without the braces around it; the third,
 * only `"message":`, param and code. */
void refusal_write(const refusal *r, text *out);
void refusal_write_error(const refusal *r, text *out);
void refusal_write_reason(const refusal *r, text *out);

/* Appends {"type": "error", "error": {...}}, as Anthropic's clients read it. */
void refusal_write_message(const refusal *r, text *out);

/* Appends {"error": MESSAGE, ...}, as Ollama's clients read it. */
void refusal_write_ollama(const refusal *r, text *out);

/* Replies with it in the form that belongs to the path, and with the headers that its status needs:
 * Retry-After, WWW-Authenticate, x-should-retry. */
void refusal_reply(const refusal *r, http_exchange *x);

#endif
