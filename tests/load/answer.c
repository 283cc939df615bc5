/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of replies: texts, log-probabilities, reasons, digests, counts. */

#include <stdio.h>
#include <string.h>

#include "base/json_tree/read.h"
#include "tests/load/load.h"

static bool complain(answer *a, const char *what) {
    if (a->wrong[0] == '\0')
        (void)snprintf(a->wrong, sizeof a->wrong, "%s", what);
    return false;
}

static json_t *get(const json_t *from, const char *outer, const char *inner) {
    return json_object_get(json_object_get(from, outer), inner);
}

/* Adds log-probabilities. A completion has an array of numbers, a chat an array of objects. */
static void take_logs(answer *a, size_t i, const json_t *logs) {
    const json_t *chat = json_object_get(logs, "content");
    const json_t *list = chat != NULL ? chat : json_object_get(logs, "token_logprobs");
    if (a->logs[i] == NULL)
        a->logs[i] = json_array();
    for (size_t k = 0; k < json_array_size(list); k++) {
        json_t *entry = json_array_get(list, k);
        entry = chat != NULL ? json_object_get(entry, "logprob") : entry;
        (void)json_array_append_new(a->logs[i], json_incref(entry));
    }
}

static void take_choice(answer *a, const json_t *choice) {
    const json_t *index = json_object_get(choice, "index");
    const json_int_t i = json_integer_value(index);
    if (!json_is_integer(index) || i < 0 || i >= LOAD_MOST_CHOICES) {
        (void)complain(a, "a choice has no index");
        return;
    }
    const json_t *text = json_object_get(choice, "text");
    text = text != NULL ? text : get(choice, "message", "content");
    text = text != NULL ? text : get(choice, "delta", "content");
    const json_t *reason = json_object_get(choice, "finish_reason");
    if (json_is_string(text) && json_string_length(text) > 0) {
        bytes_add(&a->texts[i], json_string_value(text), json_string_length(text));
        a->n_texts++;
    }
    take_logs(a, (size_t)i, json_object_get(choice, "logprobs"));
    if (a->reasons[i][0] != '\0')
        (void)complain(a, "a choice goes on after its end");
    else if (json_is_string(reason))
        (void)snprintf(a->reasons[i], sizeof a->reasons[i], "%s", json_string_value(reason));
}

/* Takes a whole reply, or a chunk of a stream. */
static void take(answer *a, const json_t *document) {
    const json_t *choices = json_object_get(document, "choices");
    const json_t *digests = get(document, "tern", "digest");
    if (!json_is_array(choices)) {
        (void)complain(a, "a document has no choices");
        return;
    }
    for (size_t i = 0; i < json_array_size(choices); i++)
        take_choice(a, json_array_get(choices, i));
    for (size_t i = 0; i < json_array_size(digests) && i < LOAD_MOST_CHOICES; i++) {
        const char *digest = json_string_value(json_array_get(digests, i));
        (void)snprintf(a->digests[i], sizeof a->digests[i], "%s", digest != NULL ? digest : "");
        a->n_choices = i + 1;
    }
    if (json_is_object(json_object_get(document, "usage"))) {
        a->prompt_tokens = json_integer_value(get(document, "usage", "prompt_tokens"));
        a->generated_tokens = json_integer_value(get(document, "usage", "completion_tokens"));
    }
}

static void take_document(answer *a, const char *data, size_t size) {
    tern_error err = {0};
    json_t *document = json_read(data, size, "reply", &err);
    if (document == NULL)
        (void)complain(a, err.message);
    else
        take(a, document);
    json_decref(document);
}

void answer_take_whole(answer *a, const bytes *body) {
    take_document(a, body->data, body->size);
    a->done = a->wrong[0] == '\0';
}

static void take_event(answer *a, const char *event, size_t size) {
    static const char done[] = "data: [DONE]";
    if (size > 0 && event[0] == ':')
        return; /* only a ping */
    if (a->done || size < 6 || strncmp(event, "data: ", 6) != 0)
        (void)complain(a, a->done ? "a stream goes on after its end" : "an event is not data");
    else if (size == sizeof done - 1 && memcmp(event, done, size) == 0)
        a->done = true;
    else
        take_document(a, event + 6, size - 6);
}

void answer_take_stream(answer *a, const bytes *body) {
    while (a->read < body->size && a->wrong[0] == '\0') {
        const char *event = body->data + a->read;
        const char *end = strstr(event, "\n\n");
        if (end == NULL)
            return;
        take_event(a, event, (size_t)(end - event));
        a->read = (size_t)(end + 2 - body->data);
    }
}

static bool text_agrees(const answer *a, const answer *expected, size_t i, bool cut) {
    const bytes *is = &a->texts[i], *should = &expected->texts[i];
    const bool fits = cut ? is->size <= should->size : is->size == should->size;
    return fits && (is->size == 0 || memcmp(is->data, should->data, is->size) == 0);
}

bool answer_agrees(answer *a, const answer *expected, bool cut) {
    if (a->wrong[0] != '\0')
        return false;
    for (size_t i = 0; i < LOAD_MOST_CHOICES; i++) {
        if (!text_agrees(a, expected, i, cut))
            return complain(a, "its text is another");
        if (!cut && json_array_size(a->logs[i]) + json_array_size(expected->logs[i]) > 0 &&
            !json_equal(a->logs[i], expected->logs[i]))
            return complain(a, "its log-probabilities are others");
        if (!cut && strcmp(a->reasons[i], expected->reasons[i]) != 0)
            return complain(a, "it ended for another reason");
        if (!cut && strcmp(a->digests[i], expected->digests[i]) != 0)
            return complain(a, "its digest is another");
    }
    if (!cut && (!a->done || a->n_choices != expected->n_choices ||
                 a->prompt_tokens != expected->prompt_tokens ||
                 a->generated_tokens != expected->generated_tokens))
        return complain(a, a->done ? "its counts are others" : "it is truncated");
    return true;
}

void answer_clear(answer *a) {
    for (size_t i = 0; i < LOAD_MOST_CHOICES; i++) {
        bytes_free(&a->texts[i]);
        json_decref(a->logs[i]);
    }
    *a = (answer){0};
}
