/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_FILES_GGUF_I2S_DETECT_H
#define TERN_RUNTIME_FILES_GGUF_I2S_DETECT_H

/*
 * Detects what a tensor of GGUF type 36, "I2_S", really is. Several programs write different things
 * under that number. The bytes that a tensor takes in the file tell them apart, except for the
 * order of the codes (tern_i2s_order), which nothing in a file tells.
 */

#include <stdbool.h>
#include <stdint.h>

typedef enum tern_i2s_kind {
    TERN_I2S_ONE_SCALE, /* n/4 bytes of codes, a float, 28 bytes that mean nothing: TERN_FORMAT_I2_S
                         */
    TERN_I2S_NO_SCALE,  /* rows of 64 bytes for 256 columns, the scale elsewhere or nowhere */
    TERN_I2S_SCALE_32,  /* 10 bytes for 32 columns: 8 of codes, a half */
    TERN_I2S_SCALE_256, /* 66 bytes for 256 columns: a half, 64 of codes */
    TERN_I2S_UNKNOWN
} tern_i2s_kind;

/* The place of a tensor in its file. */
typedef struct tern_i2s_place {
    uint64_t rows, cols;
    uint64_t extent;    /* bytes up to the next tensor or the end of the file */
    uint32_t alignment; /* alignment of tensors in the file */
    bool last;          /* up to the end of the file, where padding is optional */
} tern_i2s_place;

/* ONE_SCALE if its size fits, whatever else fits too (only in tensors of a few thousand weights).
 */
tern_i2s_kind tern_i2s_detect(const tern_i2s_place *place);

/* True if a tensor of `bytes` bytes fits the place: padded, or at the end of the file also without
 * padding. */
bool tern_i2s_takes(const tern_i2s_place *place, uint64_t bytes);

/* "blocks of 32 weights with a scale each", for messages. Static storage. */
const char *tern_i2s_kind_text(tern_i2s_kind kind);

#endif
