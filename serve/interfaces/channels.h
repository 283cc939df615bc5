/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_CHANNELS_H
#define TERN_SERVE_INTERFACES_CHANNELS_H

/*
 * Reads answers that consist of messages in channels, as gpt-oss writes them (Harmony):
 *
 *   <|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>final<|message|>...
 *
 * The channel "analysis" is thinking, all others are text. A message to a function is a call: in
 * the text stand CHANNELS_CALL, the name, CHANNELS_CALL_MIDDLE and the arguments, however the
 * header was written. The result depends on the bytes alone, never on how they were split.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/json_tree/text.h"
#include "tern/tokenizer.h"

#define CHANNELS_CALL "to=functions."
#define CHANNELS_CALL_BEFORE "<|channel|>commentary " /* in front of it, as models write it */
#define CHANNELS_CALL_MIDDLE " <|constrain|>json<|message|>"
#define CHANNELS_THOUGHT "<|channel|>analysis<|message|>"
#define CHANNELS_END "<|end|>"

struct thinking_sink;

/* True if the tokenizer's chat template writes messages in channels. */
bool channels_are_spoken(const tern_tokenizer *t);

/* Zero-initialise it. An answer that goes on from a message begins with that message's text. */
typedef struct channels_reader {
    int state;
    bool inside;  /* in a message of thinking; set before the first bytes: it has begun */
    bool dropped; /* the message is passed on to nobody */
    bool thought; /* thinking was passed on */
    bool told;    /* text was passed on */
    bool parted;  /* an empty line comes before the next bytes */
    text held;    /* bytes whose meaning is not known yet */
} channels_reader;

/*
 * Reads more of the answer and calls the sink. Messages of a kind are told with an empty line
 * between them. Thinking after the first text, and messages to something else than a function, are
 * left out. `held.failed` is set if there was no memory.
 */
void channels_take(channels_reader *r, const struct thinking_sink *s, const char *bytes,
                   size_t size);

/* Ends the answer: the beginning of a header is left out. */
void channels_finish(channels_reader *r, const struct thinking_sink *s);

void channels_free(channels_reader *r);

#endif
