/* SPDX-License-Identifier: Apache-2.0 */
#include "tern/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/stops.h"
#include "base/utf8.h"

struct tern_answer_text {
    tern_text_stream *stream;
    tern_stop_finder *stops;
    char *text; /* bytes given since the last turn, then bytes held back */
    size_t size, given;
    bool drop_space; /* a leading space is still to be dropped */
    bool stopped;    /* a stop text is complete */
    size_t stop;     /* number of that text */
};

/* Sets *longest to the length of the longest stop text. */
static tern_status take_stops(tern_answer_text *t, const char *const *stops, size_t n,
                              size_t *longest, tern_error *err) {
    enum { MOST_BYTES = 1 << 30 };
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t size = stops[i] != NULL ? strlen(stops[i]) : 0;
        if (size == 0)
            return tern_fail(err, TERN_ERR_ARG, "stop text %zu is empty", i);
        *longest = size > *longest ? size : *longest;
        bytes += size;
    }
    if (bytes > MOST_BYTES)
        return tern_fail(err, TERN_ERR_ARG, "stop texts of %zu bytes; at most %d are supported",
                         bytes, MOST_BYTES);
    t->stops = tern_stop_finder_new(&(tern_stops){.texts = stops, .n = n});
    return t->stops != NULL ? TERN_OK
                            : tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu stop texts", n);
}

size_t tern_tokenizer_longest(const tern_tokenizer *t) {
    const size_t tokens = tern_tokenizer_size(t);
    size_t longest = 0;
    for (size_t i = 0; i < tokens; i++) {
        size_t bytes;
        (void)tern_token_bytes(t, (int32_t)i, false, &bytes);
        longest = bytes > longest ? bytes : longest;
    }
    return longest;
}

static tern_status open_text(tern_answer_text *t, const tern_tokenizer *tokenizer,
                             const tern_answer_text_params *p, tern_error *err) {
    const size_t piece = p->piece_bytes > 0 ? p->piece_bytes : tern_tokenizer_longest(tokenizer);
    const size_t each = TERN_UTF8_REPLACEMENT_BYTES * (TERN_UTF8_MAX_BYTES + piece);
    const size_t most = p->most > 0 ? p->most : 1;
    size_t longest = 0;
    tern_status status = take_stops(t, p->stops, p->n_stops, &longest, err);
    if (status == TERN_OK)
        status = tern_text_stream_new(tokenizer, false, &t->stream, err);
    if (status != TERN_OK)
        return status;
    t->drop_space = p->drop_space;
    t->text = malloc(longest + (most + 1) * each);
    return t->text != NULL ? TERN_OK
                           : tern_fail(err, TERN_ERR_NOMEM, "no memory for the text of an answer");
}

tern_status tern_answer_text_new(const tern_tokenizer *tokenizer,
                                 const tern_answer_text_params *params, tern_answer_text **out,
                                 tern_error *err) {
    if (tokenizer == NULL || params == NULL || out == NULL ||
        (params->stops == NULL && params->n_stops > 0))
        return tern_fail(err, TERN_ERR_NULL, "tern_answer_text_new: NULL argument");
    tern_answer_text *t = calloc(1, sizeof *t);
    if (t == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the text of an answer");
    const tern_status status = open_text(t, tokenizer, params, err);
    if (status == TERN_OK)
        *out = t;
    else
        tern_answer_text_free(&t);
    return status;
}

void tern_answer_text_free(tern_answer_text **text) {
    tern_answer_text *t = text != NULL ? *text : NULL;
    if (t == NULL)
        return;
    tern_text_stream_free(&t->stream);
    tern_stop_finder_free(t->stops);
    free(t->text);
    free(t);
    *text = NULL;
}

bool tern_answer_text_stopped(const tern_answer_text *t, size_t *stop) {
    if (stop != NULL)
        *stop = t->stop;
    return t->stopped;
}

void tern_answer_text_turn(tern_answer_text *t) {
    t->size -= t->given;
    if (t->given > 0)
        memmove(t->text, t->text + t->given, t->size);
    t->given = 0;
}

/* Appends bytes up to a stop text, which is cut off again together with all that follows. */
static void append(tern_answer_text *t, const char *bytes, size_t size) {
    if (t->drop_space && size > 0) {
        const size_t dropped = *bytes == ' ';
        bytes += dropped;
        size -= dropped;
        t->drop_space = false;
    }
    for (size_t i = 0; i < size && !t->stopped; i++) {
        size_t matched = 0;
        t->text[t->size++] = bytes[i];
        t->stopped = tern_stop_finder_add(t->stops, bytes[i], &matched, &t->stop);
        t->size -= matched;
    }
}

/* Gives all bytes that were not given yet, except the last `held` ones. */
static const char *give(tern_answer_text *t, size_t held, size_t *size) {
    const char *bytes = t->text + t->given;
    *size = t->size - held - t->given;
    t->given = t->size - held;
    return bytes;
}

const char *tern_answer_text_push(tern_answer_text *t, int32_t token, size_t *size) {
    size_t n;
    const char *bytes = tern_text_stream_push(t->stream, token, &n);
    append(t, bytes, n);
    return give(t, t->stopped ? 0 : tern_stop_finder_held(t->stops), size);
}

const char *tern_answer_text_finish(tern_answer_text *t, size_t *size) {
    size_t n;
    const char *bytes = tern_text_stream_flush(t->stream, &n);
    append(t, bytes, n);
    return give(t, 0, size);
}
