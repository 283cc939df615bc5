/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_FINGERPRINT_H
#define TERN_BASE_FINGERPRINT_H

/* Names the answers that a model gives: the same name on every machine that gives the same ones. */

#include <stdint.h>

enum { TERN_FINGERPRINT = 18 }; /* bytes, with the terminator */

/* "b" and 16 hexadecimal digits of the model (tern_model_identity), the format of its cache and
 * TERN_NUMERICS_VERSION. */
void tern_fingerprint(uint64_t identity, const char *kv, char out[TERN_FINGERPRINT]);

#endif
