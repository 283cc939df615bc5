/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input, cut in front of each "GGUF", as the parts of a split model: what is accepted as one
 * must be readable as one.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/gguf/gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_PARTS = 4 };

static volatile uint64_t sink; /* keeps the reads below from being optimised away */

/* Where the next part begins behind at, or size. */
static size_t next_part(const uint8_t *data, size_t at, size_t size) {
    const uint8_t *found = size - at > 4 ? memmem(data + at + 4, size - at - 4, "GGUF", 4) : NULL;
    return found != NULL ? (size_t)(found - data) : size;
}

static void touch(const tern_gguf *file) {
    size_t tensors = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < tern_gguf_part_count(file); i++) {
        tensors += tern_gguf_part_at(file, i).n_tensors;
        bytes += tern_gguf_part_at(file, i).bytes;
    }
    if (tensors != tern_gguf_tensor_count(file) || bytes != tern_gguf_file_bytes(file))
        abort();
    for (size_t i = 0; i < tensors; i++) {
        const tern_gguf_tensor *t = tern_gguf_tensor_at(file, i);
        char name[256] = "";
        memcpy(name, t->name.data, t->name.size); /* at most 255 bytes */
        if (strlen(name) == t->name.size && tern_gguf_find_tensor(file, name) != t)
            abort();
        sink += t->data[0] + t->data[t->extent - 1];
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tern_gguf *parts[MAX_PARTS] = {NULL};
    tern_gguf *whole = NULL;
    tern_error err = {0};
    size_t n = 0;
    for (size_t at = 0, end; at < size && n < MAX_PARTS; at = end) {
        end = next_part(data, at, size);
        if (tern_gguf_parse(data + at, end - at, "fuzz", &parts[n], &err) == TERN_OK)
            n++;
    }
    if (n > 0 && tern_gguf_join(parts, n, &whole, &err) == TERN_OK)
        touch(whole);
    else if (n > 0 && err.message[0] == '\0')
        abort();
    tern_gguf_close(&whole);
    return 0;
}
