/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of every accepted model, whether of one part, of several, or a list of tensors. */
#ifndef TERN_TESTS_FUZZ_WHOLE_H
#define TERN_TESTS_FUZZ_WHOLE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/files/gguf/gguf.h"

/* A name in a GGUF file may hold a zero byte, which a caller's string cannot. */
static inline bool is_found(const tern_gguf *file, const tern_gguf_tensor *t) {
    char name[256] = "";
    memcpy(name, t->name.data, t->name.size); /* at most 255 bytes */
    return strlen(name) != t->name.size || tern_gguf_find_tensor(file, name) == t;
}

/* Ends the program unless the counts agree with the parts, each tensor is found by its name, and
 * its bytes can be read. Returns their sum, so that the reads are not optimised away. */
static inline uint64_t check_whole(const tern_gguf *file) {
    size_t tensors = 0;
    uint64_t bytes = 0, sum = 0;
    for (size_t i = 0; i < tern_gguf_part_count(file); i++) {
        tensors += tern_gguf_part_at(file, i).n_tensors;
        bytes += tern_gguf_part_at(file, i).bytes;
    }
    if (tensors != tern_gguf_tensor_count(file) || bytes != tern_gguf_file_bytes(file))
        abort();
    for (size_t i = 0; i < tensors; i++) {
        const tern_gguf_tensor *t = tern_gguf_tensor_at(file, i);
        if (!is_found(file, t) || t->bytes > t->extent || t->extent == 0)
            abort();
        for (uint64_t k = 0; k < t->extent; k++)
            sum += t->data[k];
    }
    return sum;
}

#endif
