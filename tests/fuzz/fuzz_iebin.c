/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input up to its first zero byte is a list of tensors. The rest is the contents of every file
 * that the list names. From a "GGUF" in it on, it is also a file of keys, and a model to which the
 * list's tensors are applied. If the list is accepted, every byte can be read.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/files/gguf/iebin.h"
#include "runtime/files/gguf/int4.h"
#include "runtime/files/gguf/sidecar.h"
#include "tests/fuzz/whole.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink; /* keeps the reads below from being optimised away */

typedef struct input {
    const uint8_t *data;
    size_t size;
} input;

/* The bytes from the first "GGUF" on, or no bytes if there is none. */
static input gguf_in(const input *files) {
    const uint8_t *found = memmem(files->data, files->size, "GGUF", 4);
    return found == NULL ? (input){NULL, 0}
                         : (input){found, files->size - (size_t)(found - files->data)};
}

/* All files have the same bytes, except those with names that end in ".gguf". */
static tern_status open_file(void *user, const char *name, tern_gguf **out, tern_error *err) {
    const input *files = user;
    const size_t n = strlen(name);
    input file = *files;
    if (n > 5 && strcmp(name + n - 5, ".gguf") == 0) {
        file = gguf_in(files);
        if (file.data == NULL)
            return tern_fail(err, TERN_ERR_IO, "%s: is not there", name);
    }
    if (file.size == 0)
        return tern_fail(err, TERN_ERR_TRUNCATED, "%s: is empty", name);
    return tern_gguf_raw(file.data, file.size, NULL, name, out, err);
}

/* Reads every row of an int4 tensor: checks it, and converts it to blocks. */
static void touch_int4(const tern_gguf_tensor *t) {
    const size_t rows = (size_t)(t->ne[1] * t->ne[2] * t->ne[3]), cols = (size_t)t->ne[0];
    uint8_t *blocks = malloc(rows * (cols / TERN_INT4_BLOCK) * TERN_INT4_BLOCK_BYTES);
    sink += (uint64_t)tern_int4_check(&t->int4, t->data, cols, 0, rows, NULL);
    if (blocks != NULL) {
        tern_int4_blocks(&t->int4, t->data, rows, cols, blocks);
        sink += blocks[0];
    }
    free(blocks);
}

static void touch(const tern_gguf *file) {
    sink += check_whole(file);
    for (size_t i = 0; i < tern_gguf_tensor_count(file); i++) {
        const tern_gguf_tensor *t = tern_gguf_tensor_at(file, i);
        sink += (uint64_t)tern_gguf_tensor_type(t)[0];
        sink += (uint64_t)tern_gguf_format(t);
        if (t->int4.group > 0)
            touch_int4(t);
    }
    for (size_t i = 0; i < tern_gguf_value_count(file); i++)
        sink += tern_gguf_value_at(file, i)->key.size;
}

/* Applies the list to the model, and takes ownership of the list. */
static void put_beside(const input *files, tern_gguf *list) {
    const input bytes = gguf_in(files);
    tern_gguf *model = NULL;
    tern_error err = {0};
    if (bytes.data != NULL &&
        tern_gguf_parse(bytes.data, bytes.size, "model", &model, &err) == TERN_OK) {
        const tern_status status = tern_sidecar_apply(model, list, &err);
        size_t n;
        list = NULL;
        if ((status == TERN_OK) != (tern_gguf_sidecar(model, &n) != NULL) ||
            (status != TERN_OK && err.message[0] == '\0'))
            abort();
        touch(model);
    }
    tern_gguf_close(&model);
    tern_gguf_close(&list);
}

/* Sparse blocks begin at multiples of 64, as they do in mapped files. */
static uint8_t *aligned(const uint8_t *bytes, size_t size) {
    void *copy = NULL;
    if (posix_memalign(&copy, 64, size + (size == 0)) != 0)
        abort();
    memcpy(copy, bytes, size);
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tern_gguf *list = NULL, *file = NULL;
    tern_error err = {0};
    const uint8_t *end = memchr(data, 0, size);
    const size_t n = end != NULL ? (size_t)(end - data) : size;
    uint8_t *bytes = end != NULL ? aligned(end + 1, size - n - 1) : aligned(data, 0);
    const input files = {.data = bytes, .size = end != NULL ? size - n - 1 : 0};
    if (tern_gguf_raw(data, n, NULL, "fuzz", &list, &err) != TERN_OK)
        abort();
    const tern_status status =
        tern_iebin_parse(list, open_file, (void *)(uintptr_t)&files, NULL, &file, &err);
    if ((status == TERN_OK) != (file != NULL) || (status != TERN_OK && err.message[0] == '\0'))
        abort();
    if (file != NULL) {
        touch(file);
        put_beside(&files, file);
    }
    free(bytes);
    return 0;
}
