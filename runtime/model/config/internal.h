/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_CONFIG_INTERNAL_H
#define TERN_RUNTIME_MODEL_CONFIG_INTERNAL_H

/* Functions that config.c (sizes, heads, kinds of layers) and the read_*.c files share. */

#include <string.h>

#include "runtime/model/config/config.h"

enum { TERN_KEY_BYTES = 128 }; /* room for a key that is looked up */

static inline bool tern_span_is(tern_span text, const char *name) {
    return strlen(name) == text.size && memcmp(name, text.data, text.size) == 0;
}

/*
 * Reads ARCH.<suffix>, a number from low to high; a fallback > 0 stands in for a missing key.
 * TERN_ERR_KEY_MISSING, TERN_ERR_KEY_TYPE, TERN_ERR_KEY_RANGE; a whole number that is a size of 0:
 * TERN_ERR_NO_SIZE or TERN_ERR_NO_KV_HEADS.
 */
TERN_MUST_CHECK tern_status tern_config_u32(const tern_gguf *file, const tern_arch *arch,
                                            const char *suffix, uint32_t fallback, uint32_t low,
                                            uint32_t high, uint32_t *out, tern_error *err);
TERN_MUST_CHECK tern_status tern_config_f32(const tern_gguf *file, const tern_arch *arch,
                                            const char *suffix, float fallback, float low,
                                            float high, float *out, tern_error *err);

/* A number from 0 to high; 0 if the key is missing. TERN_ERR_KEY_TYPE, TERN_ERR_KEY_RANGE. */
TERN_MUST_CHECK tern_status tern_config_optional_f32(const tern_gguf *file, const tern_arch *arch,
                                                     const char *suffix, float high, float *out,
                                                     tern_error *err);

/* Reads the text ARCH.<suffix>, which points into the file; empty if the key is missing.
 * TERN_ERR_KEY_TYPE. */
TERN_MUST_CHECK tern_status tern_config_name(const tern_gguf *file, const tern_arch *arch,
                                             const char *suffix, tern_span *out, tern_error *err);

/* Reads how the first kind of layers scales its angles: rope_scale, rope_gain and yarn.
 * TERN_ERR_KEY_*, TERN_ERR_CONFIG. */
TERN_MUST_CHECK tern_status tern_config_rope_scaling(const tern_gguf *file, tern_config *c,
                                                     tern_error *err);

/* Reads how the file pools vectors of texts (read_pooling.c). TERN_ERR_KEY_*. */
TERN_MUST_CHECK tern_status tern_config_pooling(const tern_gguf *file, tern_config *c,
                                                tern_error *err);

#endif
