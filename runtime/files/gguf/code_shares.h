/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_FILES_GGUF_CODE_SHARES_H
#define TERN_RUNTIME_FILES_GGUF_CODE_SHARES_H

/*
 * Checks whether the codes of I2_S tensors can mean the same as those of the published models. A
 * file does not say it. But trained weights have as many -1 as +1, and another number of zeros, so
 * the two codes that are equally frequent are the signs. docs/formats.md has the thresholds and how
 * often they are wrong.
 */

#include "runtime/files/gguf/gguf.h"

enum { TERN_DOUBT_BYTES = 320 };

/* How often each code occurs. */
typedef struct tern_code_shares {
    uint64_t n[4];
} tern_code_shares;

/* Counts codes in a few pages of every I2_S tensor: at most 65,536 of each. */
tern_code_shares tern_code_shares_count(const tern_gguf *file);

/* True if they are improbable as -1, 0 and 1; `text` then says why, and what to do. */
bool tern_code_shares_doubt(const tern_code_shares *shares, char text[TERN_DOUBT_BYTES]);

#endif
