/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input, cut at its first zero byte: an index of shared bytes, and the bytes of every file that
 * it names. The list has four tensors, two of them with bytes of their own. If the index is
 * accepted, every byte can be read, and is the same from memory and from a file.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/files/gguf/dedup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char list[] =
    "{\"tensors\":[{\"name\":\"a\",\"dtype\":\"u8\",\"shape\":[64],\"dedup\":true},"
    "{\"name\":\"b\",\"dtype\":\"u8\",\"shape\":[64],\"dedup\":true},"
    "{\"name\":\"c\",\"dtype\":\"u8\",\"shape\":[9],\"file\":\"own\",\"offset\":0},"
    "{\"name\":\"d\",\"dtype\":\"f32\",\"shape\":[2,2],\"file\":\"own\",\"offset\":16}]}";

static const uint8_t own[32] = {1, 2, 3};

typedef struct input {
    const uint8_t *data;
    size_t index, size; /* the files begin after the index */
} input;

static tern_status open_file(void *user, const char *name, tern_gguf **out, tern_error *err) {
    const input *in = user;
    if (strcmp(name, TERN_DEDUP_INDEX) == 0)
        return tern_gguf_raw(in->data, in->index, NULL, name, out, err);
    if (strcmp(name, "own") == 0)
        return tern_gguf_raw(own, sizeof own, NULL, name, out, err);
    if (in->size == in->index)
        return tern_fail(err, TERN_ERR_TRUNCATED, "%s: is empty", name);
    return tern_gguf_raw(in->data + in->index, in->size - in->index, NULL, name, out, err);
}

/* The sum of all bytes of all tensors; 0 if the index is refused. */
static uint64_t open_all(input *in, tern_dedup_use use, uint64_t cache) {
    const tern_dedup_params params = {.use = use, .cache_bytes = cache};
    tern_gguf *raw = NULL, *file = NULL;
    tern_error err = {0};
    uint64_t sum = 1;
    if (tern_gguf_raw((const uint8_t *)list, sizeof list - 1, NULL, "list", &raw, &err) != TERN_OK)
        abort();
    const tern_status status = tern_iebin_parse(raw, open_file, in, &params, &file, &err);
    if ((status == TERN_OK) != (file != NULL) || (status != TERN_OK && err.message[0] == '\0'))
        abort();
    if (file == NULL)
        return 0;
    for (size_t i = 0; i < tern_gguf_tensor_count(file); i++) {
        const tern_gguf_tensor *t = tern_gguf_tensor_at(file, i);
        for (uint64_t k = 0; k < t->bytes; k++)
            sum = sum * 31 + t->data[k];
    }
    tern_gguf_close(&file);
    return sum | 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *end = memchr(data, 0, size);
    input in = {.data = data, .index = end != NULL ? (size_t)(end - data) : size, .size = size};
    const uint64_t memory = open_all(&in, TERN_DEDUP_ON, 0);
    if (memory != open_all(&in, TERN_DEDUP_ON, 1))
        abort();
    const uint64_t strict = open_all(&in, TERN_DEDUP_STRICT, 0);
    if (strict != 0 && strict != memory)
        abort();
    return 0;
}
