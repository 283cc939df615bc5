/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/interfaces/thinking.h"

#include <string.h>

#include "base/stops.h"

static const thinking_marks known[] = {
    {"<think>", "</think>", false},       {"<seed:think>", "</seed:think>", false},
    {"<thinking>", "</thinking>", false}, {"<thought>", "</thought>", false},
    {"[THINK]", "[/THINK]", false},       {"<|START_THINKING|>", "<|END_THINKING|>", false},
};

static const thinking_marks in_channels = {CHANNELS_THOUGHT, CHANNELS_END, true};

const thinking_marks *thinking_find(const tern_tokenizer *t) {
    if (channels_are_spoken(t))
        return &in_channels;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (tern_chat_mentions(t, known[i].close))
            return &known[i];
    return NULL;
}

/* Returns where a mark ends for the last time in bytes[size]; 0: it is not there. */
static size_t last_end(const char *mark, const char *bytes, size_t size) {
    const size_t n = strlen(mark);
    for (size_t end = size; end >= n; end--)
        if (memcmp(bytes + end - n, mark, n) == 0)
            return end;
    return 0;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

bool thinking_is_open(const thinking_marks *m, const char *bytes, size_t size) {
    return m != NULL && last_end(m->open, bytes, size) > last_end(m->close, bytes, size);
}

bool thinking_begins(const thinking_marks *m, const char *bytes, size_t size) {
    while (size > 0 && is_blank(bytes[size - 1]))
        size--;
    return m != NULL && size > 0 && last_end(m->open, bytes, size) == size;
}

static size_t count_leading(const text *t) {
    size_t n = 0;
    while (n < t->size && is_blank(t->bytes[n]))
        n++;
    return n;
}

/* Drops the first n held bytes. */
static void drop(text *t, size_t n) {
    t->size -= n;
    memmove(t->bytes, t->bytes + n, t->size);
}

/* Passes the first n held bytes on. */
static void give(thinking_reader *r, const thinking_sink *s, size_t n) {
    if (n == 0)
        return;
    (r->inside ? s->thought : s->text)(s->user, r->held.bytes, n);
    drop(&r->held, n);
}

/* Before any text: the opening mark begins the thinking, anything else is text. */
static bool begin(thinking_reader *r) {
    const size_t blank = count_leading(&r->held), n = strlen(r->marks->open);
    const size_t left = r->held.size - blank;
    if (memcmp(r->held.bytes + blank, r->marks->open, left < n ? left : n) != 0) {
        r->over = true;
        return true;
    }
    if (left < n)
        return false;
    drop(&r->held, blank + n);
    r->inside = r->blank = true;
    return true;
}

/* White space before the closing mark is held, as it may belong to the mark. */
static void think(thinking_reader *r, const thinking_sink *s) {
    const tern_stops close = {&r->marks->close, 1};
    const char *found =
        memmem(r->held.bytes, r->held.size, r->marks->close, strlen(r->marks->close));
    const size_t ends = found != NULL
                            ? (size_t)(found - r->held.bytes)
                            : r->held.size - tern_stops_held(&close, r->held.bytes, r->held.size);
    size_t certain = ends;
    while (certain > 0 && is_blank(r->held.bytes[certain - 1]))
        certain--;
    const size_t blank = ends - certain;
    give(r, s, certain);
    if (found != NULL) {
        drop(&r->held, blank + strlen(r->marks->close));
        r->inside = false;
        r->over = r->blank = true;
    }
}

static void take_held(thinking_reader *r, const thinking_sink *s) {
    if (r->held.size == 0 || (!r->inside && !r->over && !begin(r)))
        return;
    if (r->blank) {
        drop(&r->held, count_leading(&r->held));
        r->blank = r->held.size == 0;
    }
    if (r->inside && r->held.size > 0)
        think(r, s);
    if (r->over && r->blank && r->held.size > 0) {
        drop(&r->held, count_leading(&r->held));
        r->blank = r->held.size == 0;
    }
    if (r->over)
        give(r, s, r->held.size);
}

/* Lets the reader of channels read, and takes over what others look at. */
static void take_channels(thinking_reader *r, const thinking_sink *s, const char *bytes,
                          size_t size) {
    r->channels.inside = r->inside;
    if (bytes != NULL)
        channels_take(&r->channels, s, bytes, size);
    else
        channels_finish(&r->channels, s);
    r->inside = r->channels.inside;
    r->held.failed = r->channels.held.failed;
}

void thinking_take(thinking_reader *r, const thinking_sink *s, const char *bytes, size_t size) {
    if (r->marks->channels) {
        take_channels(r, s, bytes, size);
        return;
    }
    text_add(&r->held, bytes, size);
    if (!r->held.failed)
        take_held(r, s);
}

void thinking_finish(thinking_reader *r, const thinking_sink *s) {
    if (r->marks != NULL && r->marks->channels)
        take_channels(r, s, NULL, 0);
    while (r->inside && r->held.size > 0 && is_blank(r->held.bytes[r->held.size - 1]))
        r->held.size--;
    if (!r->held.failed)
        give(r, s, r->held.size);
}

void thinking_free(thinking_reader *r) {
    text_free(&r->held);
    channels_free(&r->channels);
}
