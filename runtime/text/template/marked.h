/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TEMPLATE_MARKED_H
#define TERN_RUNTIME_TEXT_TEMPLATE_MARKED_H

/*
 * Text of which each byte has a mark that says where it comes from: TERN_MARK_TEMPLATE,
 * 1 to TERN_MARK_MESSAGES, TERN_MARK_VARIABLES (tern/tokenizer.h).
 */

#include "tern/span.h"
#include "tern/tokenizer.h"

typedef struct tern_marked_text {
    char *bytes;    /* [size] of [capacity], owned */
    uint8_t *marks; /* the same, owned */
    size_t size, capacity;
} tern_marked_text; /* zero-initialise it */

/* Adds bytes that all have one mark. TERN_ERR_NOMEM; TERN_ERR_ARG when the text would be longer
 * than `most`. On failure nothing is added. */
TERN_MUST_CHECK tern_status tern_marked_add(tern_marked_text *t, tern_span bytes, uint8_t mark,
                                            size_t most);

/* Does the same with a mark for each byte. */
TERN_MUST_CHECK tern_status tern_marked_add_marks(tern_marked_text *t, tern_span bytes,
                                                  const uint8_t *marks, size_t most);

void tern_marked_free(tern_marked_text *t);

/* The mark of message number i. */
uint8_t tern_mark_of_message(size_t i);

#endif
