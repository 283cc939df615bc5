/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_THINKING_H
#define TERN_SERVE_INTERFACES_THINKING_H

/*
 * Tells the thinking at the beginning of an answer from the rest while the answer arrives. The
 * result depends on the bytes alone, never on how they were split.
 */

#include "base/json_tree/text.h"
#include "serve/interfaces/channels.h"
#include "tern/tokenizer.h"

/* The texts around a model's thinking. */
typedef struct thinking_marks {
    const char *open, *close;
    bool channels; /* thinking is a message in a channel of its own, and so is the rest */
} thinking_marks;

/* The marks that the tokenizer's chat template writes or looks for; NULL: none that are known. */
const thinking_marks *thinking_find(const tern_tokenizer *t);

/* True if bytes[size] ends with the opening mark, and perhaps white space. */
bool thinking_begins(const thinking_marks *m, const char *bytes, size_t size);

/* True if bytes[size] has the opening mark after the last closing one. */
bool thinking_is_open(const thinking_marks *m, const char *bytes, size_t size);

/* Receives what was found, in the order of the text. */
typedef struct thinking_sink {
    void *user;
    void (*thought)(void *user, const char *bytes, size_t size);
    void (*text)(void *user, const char *bytes, size_t size);
} thinking_sink;

/* Zero-initialise it, then set the marks (NULL: all is text) and, perhaps, `inside`. */
typedef struct thinking_reader {
    const thinking_marks *marks;
    bool inside; /* thinking has begun and not ended */
    bool over;   /* what follows is text */
    bool blank;  /* white space at the beginning of the thinking, or after it, is left out */
    text held;   /* bytes whose meaning is not known yet */
    channels_reader channels; /* reads in place of all this where the marks say so */
} thinking_reader;

/* Reads more of the text and calls the sink. The marks, and white space beside them, belong to
 * neither. `held.failed` is set if there was no memory. */
void thinking_take(thinking_reader *r, const thinking_sink *s, const char *bytes, size_t size);

/* Ends the text: held bytes are what they seemed to be. */
void thinking_finish(thinking_reader *r, const thinking_sink *s);

void thinking_free(thinking_reader *r);

#endif
