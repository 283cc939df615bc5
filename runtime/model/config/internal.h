/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_CONFIG_INTERNAL_H
#define TERN_RUNTIME_MODEL_CONFIG_INTERNAL_H

/* What config.c (sizes, heads, kinds of layers) and read_rope.c share. */

#include <string.h>

#include "runtime/model/config/config.h"

enum { TERN_KEY_BYTES = 128 }; /* of a key that is looked for */

static inline bool tern_span_is(tern_span text, const char *name) {
    return strlen(name) == text.size && memcmp(name, text.data, text.size) == 0;
}

/*
 * Reads ARCH.<suffix>, a number from low to high; a fallback > 0 stands in for a missing key.
 * TERN_ERR_KEY_MISSING, TERN_ERR_KEY_TYPE, TERN_ERR_KEY_RANGE and what a size of 0 gives.
 */
TERN_MUST_CHECK tern_status tern_config_u32(const tern_gguf *file, const tern_arch *arch,
                                            const char *suffix, uint32_t fallback, uint32_t low,
                                            uint32_t high, uint32_t *out, tern_error *err);
TERN_MUST_CHECK tern_status tern_config_f32(const tern_gguf *file, const tern_arch *arch,
                                            const char *suffix, float fallback, float low,
                                            float high, float *out, tern_error *err);

/* Reads ARCH.<suffix>, a text in the file; empty where there is none. TERN_ERR_KEY_TYPE. */
TERN_MUST_CHECK tern_status tern_config_name(const tern_gguf *file, const tern_arch *arch,
                                             const char *suffix, tern_span *out, tern_error *err);

/* How the first kind of layers scales its angles: rope_scale, rope_gain and yarn. */
TERN_MUST_CHECK tern_status tern_config_rope_scaling(const tern_gguf *file, tern_config *c,
                                                     tern_error *err);

/* What the file says of pooling; config_pooling.c. TERN_ERR_KEY_*. */
TERN_MUST_CHECK tern_status tern_config_pooling(const tern_gguf *file, tern_config *c,
                                                tern_error *err);

#endif
