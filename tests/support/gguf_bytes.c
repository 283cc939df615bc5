/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/gguf_bytes.h"

#include <stdlib.h>
#include <string.h>

void gguf_bytes_free(gguf_bytes *b) {
    free(b->data);
    *b = (gguf_bytes){NULL, 0};
}

/* Makes room for `size` bytes at the end, which are uninitialised. */
static uint8_t *extend(gguf_bytes *b, size_t size) {
    uint8_t *grown = realloc(b->data, b->size + size);
    if (grown == NULL)
        abort();
    uint8_t *added = grown + b->size;
    b->data = grown;
    b->size += size;
    return added;
}

void gguf_add(gguf_bytes *b, const void *bytes, size_t size) {
    if (size > 0)
        memcpy(extend(b, size), bytes, size);
}

void gguf_add_zeros(gguf_bytes *b, size_t size) {
    if (size > 0)
        memset(extend(b, size), 0, size);
}

void gguf_add_u8(gguf_bytes *b, uint8_t value) {
    gguf_add(b, &value, sizeof value);
}

void gguf_add_u32(gguf_bytes *b, uint32_t value) {
    gguf_add(b, &value, sizeof value);
}

void gguf_add_u64(gguf_bytes *b, uint64_t value) {
    gguf_add(b, &value, sizeof value);
}

void gguf_add_string(gguf_bytes *b, const char *text) {
    gguf_add_u64(b, strlen(text));
    gguf_add(b, text, strlen(text));
}

void gguf_add_header(gguf_bytes *b, uint32_t version, uint64_t n_tensors, uint64_t n_values) {
    gguf_add(b, "GGUF", 4);
    gguf_add_u32(b, version);
    gguf_add_u64(b, n_tensors);
    gguf_add_u64(b, n_values);
}

void gguf_add_key_u32(gguf_bytes *b, const char *key, uint32_t value) {
    gguf_add_string(b, key);
    gguf_add_u32(b, 4);
    gguf_add_u32(b, value);
}

void gguf_add_key_string(gguf_bytes *b, const char *key, const char *value) {
    gguf_add_string(b, key);
    gguf_add_u32(b, 8);
    gguf_add_string(b, value);
}

void gguf_add_key_array(gguf_bytes *b, const char *key, uint32_t element, uint64_t count) {
    gguf_add_string(b, key);
    gguf_add_u32(b, 9);
    gguf_add_u32(b, element);
    gguf_add_u64(b, count);
}

void gguf_add_tensor(gguf_bytes *b, const char *name, uint32_t type, uint64_t ne0, uint64_t ne1,
                     uint64_t offset) {
    gguf_add_string(b, name);
    gguf_add_u32(b, ne1 == 0 ? 1 : 2);
    gguf_add_u64(b, ne0);
    if (ne1 != 0)
        gguf_add_u64(b, ne1);
    gguf_add_u32(b, type);
    gguf_add_u64(b, offset);
}

void gguf_align(gguf_bytes *b, size_t alignment) {
    gguf_add_zeros(b, (alignment - b->size % alignment) % alignment);
}

void gguf_patch_u32(gguf_bytes *b, size_t at, uint32_t value) {
    if (at + sizeof value > b->size)
        abort();
    memcpy(b->data + at, &value, sizeof value);
}

void gguf_patch_u64(gguf_bytes *b, size_t at, uint64_t value) {
    if (at + sizeof value > b->size)
        abort();
    memcpy(b->data + at, &value, sizeof value);
}
