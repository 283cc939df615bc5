/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/refusal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/word_list.h"

static const char *type_of(unsigned status) {
    switch (status) {
    case 401:
        return "authentication_error";
    case 403:
        return "permission_error";
    case 404:
        return "not_found_error";
    case 429:
        return "rate_limit_error";
    case 500:
        return "server_error";
    case 501:
        return "not_supported_error";
    case 503:
        return "unavailable_error";
    default:
        return "invalid_request_error";
    }
}

bool refuse(refusal *r, unsigned status, const char *param, const char *format, ...) {
    va_list args;
    *r = (refusal){.status = status, .type = type_of(status)};
    (void)snprintf(r->param, sizeof r->param, "%s", param != NULL ? param : "");
    va_start(args, format);
    (void)vsnprintf(r->message, sizeof r->message, format, args);
    va_end(args);
    return false;
}

/* True if the message is about the request and may be shown. Other messages may name files of this
 * machine. */
static bool is_about_request(tern_status status) {
    return status == TERN_ERR_ARG || status == TERN_ERR_TOKEN_RANGE || status == TERN_ERR_JSON ||
           status == TERN_ERR_CONTEXT || status == TERN_ERR_EMPTY || status == TERN_ERR_GRAMMAR;
}

/* Refuses because a file of the model has changed. The message has its name without the folder. */
static bool refuse_changed(refusal *r, const tern_error *err) {
    (void)refuse(r, 500, NULL, "the model cannot be used any more: %s",
                 file_base_name(err->message));
    r->code = "model_changed";
    return false;
}

bool refuse_error(refusal *r, const char *param, const tern_error *err) {
    if (is_about_request(err->status))
        return refuse(r, 400, param, "%s", err->message);
    if (err->status == TERN_ERR_CHANGED)
        return refuse_changed(r, err);
    /* another server may have what this one lacks */
    const bool elsewhere = err->status == TERN_ERR_NOMEM || err->status == TERN_ERR_CACHE_MEMORY ||
                           err->status == TERN_ERR_SCRATCH_MEMORY || err->status == TERN_ERR_RANKS;
    return refuse(r, elsewhere ? 503 : 500, param, "%s", tern_status_str(err->status));
}

static bool refuse_tokens(refusal *r, const char *than, size_t n_prompt, size_t n_ctx) {
    (void)refuse(r, 400, NULL,
                 "the prompt has %s%zu tokens, and the context %zu positions, of which an answer "
                 "needs one",
                 than, n_prompt, n_ctx);
    r->type = "exceed_context_size_error";
    r->code = "context_length_exceeded";
    r->n_prompt = n_prompt;
    r->n_ctx = n_ctx;
    return false;
}

bool refuse_length(refusal *r, size_t n_prompt, size_t n_ctx) {
    return refuse_tokens(r, "", n_prompt, n_ctx);
}

bool refuse_long(refusal *r, size_t than, size_t n_ctx) {
    return refuse_tokens(r, "more than ", than, n_ctx);
}

static void write_or_null(text *out, const char *name, const char *value) {
    if (value != NULL && value[0] != '\0') {
        text_string(out, name, value);
    } else {
        text_name(out, name);
        text_add(out, "null", 4);
    }
}

void refusal_write_reason(const refusal *r, text *out) {
    text_print(out, "\"message\":");
    text_quote(out, r->message, strlen(r->message));
    write_or_null(out, "param", r->param);
    write_or_null(out, "code", r->code);
}

void refusal_write_error(const refusal *r, text *out) {
    text_print(out, "\"error\":{");
    refusal_write_reason(r, out);
    text_string(out, "type", r->type);
    if (r->n_ctx > 0)
        text_print(out, ",\"n_prompt_tokens\":%zu,\"n_ctx\":%zu", r->n_prompt, r->n_ctx);
    text_print(out, "}");
}

void refusal_write(const refusal *r, text *out) {
    text_print(out, "{");
    refusal_write_error(r, out);
    text_print(out, "}");
}

/* The error types that clients of Anthropic's interface know. */
static const char *message_type(unsigned status) {
    switch (status) {
    case 413:
        return "request_too_large";
    case 500:
        return "api_error";
    case 503:
        return "overloaded_error";
    default:
        return type_of(status);
    }
}

void refusal_write_message(const refusal *r, text *out) {
    text_print(out, "{\"type\":\"error\",\"error\":{");
    text_string(out, "type", message_type(r->status));
    text_string(out, "message", r->message);
    write_or_null(out, "param", r->param);
    if (r->n_ctx > 0)
        text_print(out, ",\"n_prompt_tokens\":%zu,\"n_ctx\":%zu", r->n_prompt, r->n_ctx);
    text_print(out, "}}");
}

void refusal_write_ollama(const refusal *r, text *out) {
    text_print(out, "{\"error\":");
    text_quote(out, r->message, strlen(r->message));
    write_or_null(out, "param", r->param);
    write_or_null(out, "code", r->code);
    text_print(out, "}");
}

static bool is_ollama_path(const char *path) {
    return strncmp(path, "/api/", 5) == 0;
}

/* True if a path is one of Anthropic's interface. */
static bool is_message_path(const char *path) {
    static const char name[] = "/messages";
    path += strncmp(path, "/v1/", 4) == 0 ? 3 : 0;
    return strncmp(path, name, sizeof name - 1) == 0;
}

void refusal_reply(const refusal *r, http_exchange *x) {
    text out = {0};
    size_t size;
    if (is_message_path(http_path(x)))
        refusal_write_message(r, &out);
    else if (is_ollama_path(http_path(x)))
        refusal_write_ollama(r, &out);
    else
        refusal_write(r, &out);
    if (r->status == 429 || r->status == 503) {
        char seconds[16];
        const unsigned usual = r->status == 429 ? 1 : 5;
        (void)snprintf(seconds, sizeof seconds, "%u",
                       r->retry_seconds > 0 ? r->retry_seconds : usual);
        http_reply_header(x, "Retry-After", seconds);
    } else if (r->status == 501) {
        http_reply_header(x, "x-should-retry", "false");
    } else if (r->status == 401) {
        http_reply_header(x, "WWW-Authenticate", "Bearer");
    }
    char *bytes = text_take(&out, &size);
    http_reply(x, r->status, "application/json", bytes, size);
}
