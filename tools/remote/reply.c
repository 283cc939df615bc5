/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/remote/reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/read.h"
#include "base/metrics.h"

enum { SHOWN_BYTES = 300 }; /* limit for a server's error message */

/* ---- errors ---------------------------------------------------------------------------------- */

/* The text in a value, which may be a text, or an object or list that contains one. */
static const char *find_message(const json_t *value) {
    static const char *const names[] = {"message", "error", "detail", "msg", "error_message"};
    for (unsigned depth = 0; depth < 4 && value != NULL; depth++) {
        if (json_is_string(value))
            return json_string_value(value);
        if (json_is_array(value)) {
            value = json_array_get(value, 0);
            continue;
        }
        const json_t *inner = NULL;
        for (size_t i = 0; i < sizeof names / sizeof *names && inner == NULL; i++) {
            inner = json_object_get(value, names[i]);
            inner = inner != NULL && json_is_null(inner) ? NULL : inner;
        }
        value = inner;
    }
    return NULL;
}

/* The first line that is not empty; the title if it is an HTML page. */
static const char *first_line(const char *body, int *size) {
    const char *title = strstr(body, "<title>");
    const char *at = title != NULL ? title + strlen("<title>") : body;
    at += strspn(at, " \t\r\n");
    const size_t n = strcspn(at, title != NULL ? "<\r\n" : "\r\n");
    *size = (int)(n < SHOWN_BYTES ? n : SHOWN_BYTES);
    return at;
}

static const char *meaning(long status) {
    switch (status) {
    case 401:
        return "a key is needed, or another one (--api-key-file)";
    case 404:
        return "there is no such route or model";
    case 429:
        return "too much is asked at the moment";
    case 503:
        return "it takes no requests at the moment";
    default:
        return status < 400 ? "it wants to be asked at another place, see --server" : "it failed";
    }
}

tern_status reply_refuse(const char *place, long status, long retry_seconds, const text *body,
                         tern_error *err) {
    char wait[64] = "";
    if (retry_seconds > 0)
        (void)snprintf(wait, sizeof wait, " (again in %ld s)", retry_seconds);
    json_t *root = body->size > 0 ? json_read(body->bytes, body->size, place, NULL) : NULL;
    const char *message = find_message(root);
    int shown = message != NULL ? (int)strnlen(message, SHOWN_BYTES) : 0;
    if (message == NULL && body->size > 0 && root == NULL)
        message = first_line(body->bytes, &shown);
    if (message == NULL || shown == 0) {
        message = meaning(status);
        shown = (int)strlen(message);
    }
    char line[SHOWN_BYTES + 1];
    (void)snprintf(line, sizeof line, "%.*s", shown, message);
    line[strcspn(line, "\r\n")] = '\0';
    json_decref(root);
    return tern_fail(err, TERN_ERR_IO, "%s: %ld: %s%s", place, status, line, wait);
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool fail(reply_reader *r, const char *what) {
    (void)tern_fail(&r->fault, TERN_ERR_IO, "%s: %s", r->place, what);
    return false;
}

static bool add_text(reply_reader *r, const char *bytes, size_t size) {
    remote_answer *a = r->answer;
    if (size == 0)
        return true;
    if (a->said.size == 0)
        a->first_seconds = tern_clock_seconds() - r->began;
    text_add(&a->said, bytes, size);
    if (a->said.failed) {
        (void)tern_fail(&r->fault, TERN_ERR_NOMEM, "no memory for an answer");
        return false;
    }
    r->stopped = !r->sink(r->user, bytes, size);
    return !r->stopped;
}

/* Copies a text that may be null or missing. */
static void note(char *out, size_t size, const json_t *value) {
    if (json_is_string(value))
        (void)snprintf(out, size, "%s", json_string_value(value));
}

static void note_usage(remote_answer *a, const json_t *usage) {
    const json_t *read = json_object_get(usage, "prompt_tokens");
    const json_t *generated = json_object_get(usage, "completion_tokens");
    if (json_is_integer(read) && json_is_integer(generated)) {
        a->has_usage = true;
        a->prompt_tokens = json_integer_value(read);
        a->generated_tokens = json_integer_value(generated);
    }
}

/* Takes a choice of a chunk or of a complete reply, of a chat or of a completion. */
static bool take_choice(reply_reader *r, const json_t *choice) {
    const json_t *part = json_object_get(choice, "delta");
    part = json_is_object(part) ? part : json_object_get(choice, "message");
    const json_t *said = json_object_get(choice, "text");
    said = json_is_object(part) ? json_object_get(part, "content") : said;
    if (json_is_string(said) && !add_text(r, json_string_value(said), json_string_length(said)))
        return false;
    const json_t *reason = json_object_get(choice, "finish_reason");
    if (json_is_string(reason)) {
        note(r->answer->reason, sizeof r->answer->reason, reason);
        r->answer->end = strcmp(r->answer->reason, "length") == 0 ? REMOTE_LENGTH : REMOTE_COMPLETE;
        r->done = true;
    }
    return true;
}

static bool take_document(reply_reader *r, const json_t *root) {
    const json_t *error = json_object_get(root, "error");
    const json_t *object = json_object_get(root, "object");
    const bool is_error = json_is_string(object) && strcmp(json_string_value(object), "error") == 0;
    if ((error != NULL && !json_is_null(error)) || is_error) {
        const char *message = find_message(is_error ? root : error);
        return fail(r, message != NULL ? message : "it failed, and does not say why");
    }
    note(r->answer->model, sizeof r->answer->model, json_object_get(root, "model"));
    note_usage(r->answer, json_object_get(root, "usage"));
    note(r->answer->digest, sizeof r->answer->digest,
         json_array_get(json_object_get(json_object_get(root, "tern"), "digest"), 0));
    const json_t *choice = json_array_get(json_object_get(root, "choices"), 0);
    return choice == NULL || take_choice(r, choice);
}

bool reply_take(void *reader, char *data, size_t size) {
    reply_reader *r = reader;
    if (strcmp(data, "[DONE]") == 0) {
        r->done = true;
        return true;
    }
    json_t *root = json_read(data, size, r->place, &r->fault);
    const bool going =
        root != NULL &&
        (json_is_object(root) ? take_document(r, root) : fail(r, "sent what is not an answer"));
    json_decref(root);
    return going;
}
