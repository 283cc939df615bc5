/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_CODE_SET_H
#define TERN_RUNTIME_TEXT_TOKENIZER_CODE_SET_H

/*
 * Sets of code points, and those that Unicode's properties make. The properties are tern's own
 * table of one version of Unicode (unicode_tables.h), so that a pattern means the same characters
 * everywhere, whichever libraries are installed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/files/gguf/gguf.h"
#include "tern/status.h"

enum { TERN_CODE_END = 0x110000 };

/* Codes from ends[0] to before ends[1] are in the set, those from ends[2] to before ends[3], and so
 * on. Zero-initialise it; tern_code_set_free frees it. */
typedef struct tern_code_set {
    uint32_t *ends; /* [n] increasing; n is even */
    size_t n, capacity;
} tern_code_set;

void tern_code_set_free(tern_code_set *set);
bool tern_code_set_has(const tern_code_set *set, uint32_t code);

/* The functions below return false when memory is short; the set is then as it was. */

/* Adds the codes from first to before end. first < end <= TERN_CODE_END. */
bool tern_code_set_add(tern_code_set *set, uint32_t first, uint32_t end);

bool tern_code_set_join(tern_code_set *set, const tern_code_set *other);
bool tern_code_set_meet(tern_code_set *set, const tern_code_set *other);
bool tern_code_set_invert(tern_code_set *set);

/* Adds every character that equals one of the set where case does not matter. */
bool tern_code_set_fold(tern_code_set *set);

/*
 * Adds the characters of a category, a script or another property: "Lu", "Han", "Emoji". Case,
 * spaces, dashes and underscores of the name do not matter. TERN_ERR_NAME: no such property;
 * TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_code_set_add_property(tern_code_set *set, tern_span name);

#endif
