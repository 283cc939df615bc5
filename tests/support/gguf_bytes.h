/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_SUPPORT_GGUF_BYTES_H
#define TERN_TESTS_SUPPORT_GGUF_BYTES_H

/*
 * Assembles GGUF bytes piece by piece, without any check, so that tests can make files that no
 * writer would produce. Memory errors and overflow abort the test program.
 */

#include <stddef.h>
#include <stdint.h>

typedef struct gguf_bytes {
    uint8_t *data; /* of exactly `size` bytes, so that a sanitizer sees a read past the end */
    size_t size;
} gguf_bytes;

void gguf_bytes_free(gguf_bytes *b);

void gguf_add(gguf_bytes *b, const void *bytes, size_t size);
void gguf_add_zeros(gguf_bytes *b, size_t size);
void gguf_add_u8(gguf_bytes *b, uint8_t value);
void gguf_add_u32(gguf_bytes *b, uint32_t value);
void gguf_add_u64(gguf_bytes *b, uint64_t value);
void gguf_add_string(gguf_bytes *b, const char *text); /* u64 length and bytes */

void gguf_add_header(gguf_bytes *b, uint32_t version, uint64_t n_tensors, uint64_t n_values);
void gguf_add_key_u32(gguf_bytes *b, const char *key, uint32_t value);
void gguf_add_key_string(gguf_bytes *b, const char *key, const char *value);
/* Key, type "array", element type and count. Other calls add the elements. */
void gguf_add_key_array(gguf_bytes *b, const char *key, uint32_t element, uint64_t count);

/* A tensor's description. The tensor is one-dimensional if ne1 is 0. */
void gguf_add_tensor(gguf_bytes *b, const char *name, uint32_t type, uint64_t ne0, uint64_t ne1,
                     uint64_t offset);

/* Zeros up to the next multiple of alignment. */
void gguf_align(gguf_bytes *b, size_t alignment);

/* Overwrites existing bytes. */
void gguf_patch_u32(gguf_bytes *b, size_t at, uint32_t value);
void gguf_patch_u64(gguf_bytes *b, size_t at, uint64_t value);

#endif
