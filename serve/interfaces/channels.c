/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/interfaces/channels.h"

#include <string.h>

#include "base/stops.h"
#include "serve/interfaces/thinking.h"

/* A header of more bytes is not one: its bytes are text. */
enum { MOST_HEADER = 512 };

/* States of a reader. OPEN: before a message. HEADER: in what stands before its text. BODY: in its
 * text. */
enum { OPEN, HEADER, BODY };

static const char message[] = "<|message|>";

/* The beginnings of headers. A prompt ends after the role, so the first one may lack it. */
static const char *const openings[] = {"<|start|>", "<|channel|>", message, "to=", " to="};

/* The marks that end a text, the first two of which begin a header. */
static const char *const ends[] = {"<|start|>", "<|channel|>", CHANNELS_END, "<|call|>",
                                   "<|return|>"};

bool channels_are_spoken(const tern_tokenizer *t) {
    return tern_chat_mentions(t, "<|channel|>") && tern_chat_mentions(t, message);
}

static void drop(channels_reader *r, size_t n) {
    r->held.size -= n;
    memmove(r->held.bytes, r->held.bytes + n, r->held.size);
}

/* Passes bytes of the message on. */
static void give(channels_reader *r, const thinking_sink *s, const char *bytes, size_t size) {
    void (*pass)(void *user, const char *bytes, size_t size) = r->inside ? s->thought : s->text;
    if (size == 0 || r->dropped)
        return;
    if (r->parted)
        pass(s->user, "\n\n", 2);
    r->parted = false;
    *(r->inside ? &r->thought : &r->told) = true;
    pass(s->user, bytes, size);
}

/* ---- headers --------------------------------------------------------------------------------- */

typedef struct word {
    const char *data;
    size_t size;
} word;

/* The word after a mark in a header: up to a blank or another mark. Empty if it is not there. */
static word word_after(const text *header, size_t size, const char *mark) {
    const char *at = memmem(header->bytes, size, mark, strlen(mark));
    const char *end = header->bytes + size;
    if (at == NULL)
        return (word){"", 0};
    at += strlen(mark);
    size_t n = 0;
    while (at + n < end && at[n] != ' ' && at[n] != '<')
        n++;
    return (word){at, n};
}

static bool is_word(word a, const char *other) {
    return a.size == strlen(other) && memcmp(a.data, other, a.size) == 0;
}

/* Begins the message whose header has the first `size` held bytes. */
static void begin_message(channels_reader *r, const thinking_sink *s, size_t size) {
    static const char function[] = "functions.";
    const size_t n = sizeof function - 1;
    const word to = word_after(&r->held, size, "to=");
    const bool call = to.size > n && memcmp(to.data, function, n) == 0;
    r->inside = to.size == 0 && is_word(word_after(&r->held, size, "<|channel|>"), "analysis");
    r->dropped = (to.size > 0 && !call) || (r->inside && r->told);
    r->parted = !call && (r->inside ? r->thought : r->told);
    if (call) {
        give(r, s, CHANNELS_CALL, sizeof CHANNELS_CALL - 1);
        give(r, s, to.data + n, to.size - n);
        give(r, s, CHANNELS_CALL_MIDDLE, sizeof CHANNELS_CALL_MIDDLE - 1);
    }
    r->state = BODY;
}

/* Reads a header; false: more must come. */
static bool read_header(channels_reader *r, const thinking_sink *s) {
    const char *end = memmem(r->held.bytes, r->held.size, message, sizeof message - 1);
    if (end == NULL && r->held.size < MOST_HEADER)
        return false;
    if (end == NULL) {
        r->inside = r->dropped = false;
        r->parted = r->told;
        r->state = BODY;
        give(r, s, r->held.bytes, r->held.size);
        text_clear(&r->held);
        return false;
    }
    const size_t size = (size_t)(end - r->held.bytes);
    begin_message(r, s, size);
    drop(r, size + sizeof message - 1);
    return true;
}

/* Before a message: a header begins, or a text without one. */
static bool open_message(channels_reader *r) {
    bool may = false;
    for (size_t i = 0; i < sizeof openings / sizeof *openings; i++) {
        const size_t n = strlen(openings[i]);
        const size_t seen = r->held.size < n ? r->held.size : n;
        const bool same = memcmp(r->held.bytes, openings[i], seen) == 0;
        if (same && seen == n) {
            r->state = HEADER;
            return true;
        }
        may = may || same;
    }
    if (may)
        return false;
    r->dropped = false;
    r->parted = r->inside ? r->thought : r->told;
    r->state = BODY;
    return true;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* Returns where the first mark that ends a text stands among the held bytes, and its number. */
static const char *find_end(const channels_reader *r, size_t *which) {
    const char *first = NULL;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const char *at = memmem(r->held.bytes, r->held.size, ends[i], strlen(ends[i]));
        if (at != NULL && (first == NULL || at < first)) {
            first = at;
            *which = i;
        }
    }
    return first;
}

/* Passes on what certainly belongs to the message; false: more must come. */
static bool read_body(channels_reader *r, const thinking_sink *s) {
    const tern_stops marks = {ends, sizeof ends / sizeof *ends};
    size_t which = 0;
    const char *end = find_end(r, &which);
    const size_t size = end != NULL
                            ? (size_t)(end - r->held.bytes)
                            : r->held.size - tern_stops_held(&marks, r->held.bytes, r->held.size);
    give(r, s, r->held.bytes, size);
    drop(r, size);
    if (end == NULL)
        return false;
    const bool header = which < 2;
    if (!header)
        drop(r, strlen(ends[which]));
    r->inside = false;
    r->state = header ? HEADER : OPEN;
    return true;
}

void channels_take(channels_reader *r, const thinking_sink *s, const char *bytes, size_t size) {
    bool more = true;
    text_add(&r->held, bytes, size);
    if (r->state == OPEN && r->inside)
        r->state = BODY;
    while (more && r->held.size > 0 && !r->held.failed)
        more = r->state == OPEN     ? open_message(r)
               : r->state == HEADER ? read_header(r, s)
                                    : read_body(r, s);
}

void channels_finish(channels_reader *r, const thinking_sink *s) {
    if (r->state == BODY && !r->held.failed)
        give(r, s, r->held.bytes, r->held.size);
    text_clear(&r->held);
}

void channels_free(channels_reader *r) {
    text_free(&r->held);
}
