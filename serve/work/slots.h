/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_WORK_SLOTS_H
#define TERN_SERVE_WORK_SLOTS_H

/*
 * The tokens that each place for answers held last, so that their computed pages can be saved in a
 * file, and taken back from one. Pages belong to the owner of a key, named by its digest; NULL: the
 * requests without a key. All functions are called by the thread that steps the engine.
 */

#include <stdbool.h>

#include "tern/engine.h"

typedef struct slots slots;

typedef enum slot_action { SLOT_SAVE, SLOT_RESTORE, SLOT_ERASE } slot_action;

/* An order about a place, and how it went. */
typedef struct slot_order {
    slot_action action;
    size_t at;
    const uint8_t *owner;
    const char *path; /* the file; of SLOT_ERASE NULL */

    size_t n; /* positions that were saved or taken, or tokens that were forgotten */
    double seconds;
    tern_status status; /* errors as tern_engine_save and tern_engine_load */
    tern_error err;
} slot_order;

/* n places that hold nothing; NULL: no memory. */
slots *slots_new(size_t n);

/* Sets *s to NULL; NULL is fine. */
void slots_free(slots **s);

/* Notes an answer: its prompt and its tokens. It goes into place `wanted`, or where there is none
 * of that number, into the one that was used the longest ago. Without memory the place is empty. */
void slots_note(slots *s, long wanted, const uint8_t *owner, const int32_t *prompt, size_t n_prompt,
                const int32_t *tokens, size_t n_tokens);

/* Carries an order out. The tokens of another owner do not count. A place that was
 * restored holds nothing until its next answer. */
void slots_do(slots *s, tern_engine *engine, slot_order *order);

#endif
