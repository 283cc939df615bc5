/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* Own copies of the stop strings in one block; *longest is the length of the longest. */
static tern_status copy_stops(tern_answer_text *t, const char *const *stops, size_t n,
                              size_t *longest, tern_error *err) {
    size_t bytes = n * sizeof(char *);
    for (size_t i = 0; i < n; i++) {
        const size_t size = stops[i] ? strlen(stops[i]) : 0;
        if (size == 0)
            return tern_fail(err, TERN_ERR_ARG, "stop text %zu is empty", i);
        *longest = size > *longest ? size : *longest;
        bytes += size + 1;
    }
    const char **texts = malloc(bytes ? bytes : 1);
    if (!texts)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu stop texts", n);
    char *end = (char *)(texts + n);
    for (size_t i = 0; i < n; i++) {
        texts[i] = end;
        end = stpcpy(end, stops[i]) + 1;
    }
    t->stops = (tern_stops){.texts = texts, .n = n};
    return TERN_OK;
}

tern_status tern_answer_text_open(tern_answer_text *t, const tern_tokenizer *tokenizer,
                                  const char *const *stops, size_t n_stops, bool drop_space,
                                  size_t piece_bytes, size_t most, tern_error *err) {
    size_t longest = 0;
    *t = (tern_answer_text){.drop_space = drop_space};
    if (!tokenizer)
        return n_stops == 0 ? TERN_OK
                            : tern_fail(err, TERN_ERR_TOKENIZER_MISSING,
                                        "stop texts of a model without a tokenizer");
    tern_status status = copy_stops(t, stops, n_stops, &longest, err);
    if (status == TERN_OK)
        status = tern_text_stream_new(tokenizer, false, &t->stream, err);
    if (status != TERN_OK)
        return status;
    const size_t each = TERN_UTF8_REPLACEMENT_BYTES * (TERN_UTF8_MAX_BYTES + piece_bytes);
    t->capacity = longest + (most + 1) * each;
    t->text = malloc(t->capacity);
    return t->text ? TERN_OK
                   : tern_fail(err, TERN_ERR_NOMEM, "no memory for the text of an answer");
}

void tern_answer_text_close(tern_answer_text *t) {
    tern_text_stream_free(&t->stream);
    free((void *)t->stops.texts);
    free(t->text);
    *t = (tern_answer_text){0};
}

void tern_answer_text_turn(tern_answer_text *t) {
    t->size -= t->given;
    if (t->given > 0)
        memmove(t->text, t->text + t->given, t->size);
    t->given = 0;
}

/* The stop string that text[size] is. */
static size_t which(const tern_stops *s, const char *text, size_t size) {
    for (size_t i = 0; i < s->n; i++)
        if (strlen(s->texts[i]) == size && memcmp(s->texts[i], text, size) == 0)
            return i;
    return 0;
}

/* Appends bytes up to a stop string, which is cut off again together with all that follows. */
static void append(tern_answer_text *t, const char *bytes, size_t size) {
    if (t->drop_space && size > 0) {
        const size_t dropped = *bytes == ' ';
        bytes += dropped;
        size -= dropped;
        t->drop_space = false;
    }
    for (size_t i = 0; i < size && !t->stopped; i++) {
        t->text[t->size++] = bytes[i];
        const size_t matched = tern_stops_match(&t->stops, t->text + t->given, t->size - t->given);
        t->size -= matched;
        t->stopped = matched > 0;
        t->stop = t->stopped ? which(&t->stops, t->text + t->size, matched) : 0;
    }
}

/* All but `held` bytes at the end. */
static tern_text_part give(tern_answer_text *t, size_t held) {
    const tern_text_part part = {t->text + t->given, t->size - held - t->given};
    t->given = t->size - held;
    return part;
}

tern_text_part tern_answer_text_push(tern_answer_text *t, int32_t token) {
    if (!t->stream)
        return (tern_text_part){"", 0};
    size_t size;
    const char *bytes = tern_text_stream_push(t->stream, token, &size);
    append(t, bytes, size);
    return give(t, t->stopped ? 0
                              : tern_stops_held(&t->stops, t->text + t->given, t->size - t->given));
}

tern_text_part tern_answer_text_finish(tern_answer_text *t) {
    if (!t->stream)
        return (tern_text_part){"", 0};
    size_t size;
    const char *bytes = tern_text_stream_flush(t->stream, &size);
    append(t, bytes, size);
    return give(t, 0);
}
