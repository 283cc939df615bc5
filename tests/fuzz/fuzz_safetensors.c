/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a safetensors file. An accepted file can be read to the last byte. Most random
 * inputs fail on a single length, so the mutator corrects the header's.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "authoring/convert/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size); /* libFuzzer's own */

static volatile uint64_t sink; /* keeps the reads below from being optimised away */

/* Every tensor is found by name, and its size follows from shape and type. */
static void touch(const safetensors *file) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const safetensors_tensor *t = safetensors_at(file, i);
        if (safetensors_find(file, t->name) != t || t->n_dims > SAFETENSORS_MAX_DIMS)
            abort();
        for (uint64_t k = 0; k < t->bytes; k++)
            sink += t->data[k];
        sink += (uint64_t)safetensors_type_name(t->type)[0];
        bytes += t->bytes;
    }
    sink += bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    safetensors *file = NULL;
    tern_error err = {0};
    const tern_status status = safetensors_parse(data, size, "fuzz", &file, &err);
    if ((status == TERN_OK) != (file != NULL) || (status != TERN_OK && err.message[0] == '\0'))
        abort();
    if (file != NULL)
        touch(file);
    safetensors_close(&file);
    return 0;
}

/* The end of the first object, given that names rarely hold braces. 0 if it has no end. */
static size_t header_end(const uint8_t *data, size_t size) {
    size_t depth = 0;
    for (size_t i = 8; i < size; i++) {
        depth += data[i] == '{';
        if (data[i] == '}' && depth > 0 && --depth == 0)
            return i + 1;
    }
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    size = LLVMFuzzerMutate(data, size, max_size);
    const size_t end = header_end(data, size);
    if (end > 0 && seed % 8 != 0) {
        const uint64_t length = end - 8;
        memcpy(data, &length, sizeof length);
    }
    return size;
}
