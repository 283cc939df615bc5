/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/text/tokenizer/internal.h"

struct tern_text_stream {
    const tern_tokenizer *t;
    bool strip;       /* a leading space is still to be dropped */
    size_t n_pending; /* bytes of an unfinished character, at most 3 */
    char *pending;    /* [TERN_UTF8_MAX_BYTES + max_piece] and the next piece */
    char *text;       /* the text that the last call returned */
};

/* All buffers are sized for the longest token, so that no call allocates. */
tern_status tern_text_stream_new(const tern_tokenizer *t, bool strip_first, tern_text_stream **out,
                                 tern_error *err) {
    if (t == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_text_stream_new: NULL argument");
    const size_t raw = TERN_UTF8_MAX_BYTES + t->max_piece; /* max_piece is below the file's size */
    tern_text_stream *s = malloc(sizeof *s + raw + TERN_UTF8_REPLACEMENT_BYTES * raw);
    if (s == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for a text stream", t->file);
    char *bytes = (char *)(s + 1);
    *s = (tern_text_stream){t, strip_first && t->drops_space, 0, bytes, bytes + raw};
    *out = s;
    return TERN_OK;
}

const char *tern_text_stream_push(tern_text_stream *s, int32_t id, size_t *size) {
    size_t bytes;
    const char *piece = tern_token_bytes(s->t, id, false, &bytes);
    if (bytes > 0 && s->strip) {
        s->strip = false;
        if (piece[0] == ' ') {
            piece++;
            bytes--;
        }
    }
    memcpy(s->pending + s->n_pending, piece, bytes);
    const size_t total = s->n_pending + bytes;
    *size = tern_utf8_repair(s->pending, total, s->text, &s->n_pending);
    memmove(s->pending, s->pending + total - s->n_pending, s->n_pending);
    return s->text;
}

const char *tern_text_stream_flush(tern_text_stream *s, size_t *size) {
    *size = tern_utf8_repair(s->pending, s->n_pending, s->text, NULL);
    s->n_pending = 0;
    return s->text;
}

void tern_text_stream_free(tern_text_stream **s) {
    if (s == NULL)
        return;
    free(*s);
    *s = NULL;
}
