/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes go into the GGUF reader. An accepted file must be readable to the last byte, its
 * ternary tensors in every order, meaning and cut of their codes. It may be an adapter of a small
 * model, too.
 */
#include <stdint.h>
#include <stdlib.h>

#include "kernels/pack.h"
#include "runtime/files/gguf/gguf.h"
#include "runtime/files/gguf/reading.h"
#include "runtime/model/adapters/adapters.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Keeps the reads below from being optimised away. */
static volatile uint64_t sink;

static void touch_span(tern_span span) {
    for (size_t i = 0; i < span.size; i++)
        sink += (uint8_t)span.data[i];
}

static void touch_value(const tern_gguf_value *value) {
    uint32_t element;
    touch_span(value->key);
    for (uint64_t i = 0; i < value->count; i++)
        sink += tern_gguf_element_u32(value, i, &element) ? element : 0;
    const uint8_t *cursor = value->data;
    for (uint64_t i = 0; value->element == TERN_GGUF_STRING && i < value->count; i++)
        touch_span(tern_gguf_next_string(&cursor));
}

static void touch_tensor(const tern_gguf_tensor *tensor) {
    touch_span(tensor->name);
    if (tensor->bytes > tensor->extent || tensor->extent == 0)
        abort();
    sink += tensor->data[0];
    sink += tensor->data[tensor->extent - 1];
}

/* Reads the first and last rows of an I2_S, TL1 or TL2 tensor with one interpretation of its
 * codes. */
static void import_rows(const tern_gguf_tensor *tensor, const tern_reading *reading) {
    const size_t rows = (size_t)(tensor->ne[1] * tensor->ne[2] * tensor->ne[3]);
    const size_t cols = (size_t)tensor->ne[0];
    const size_t end = rows < TERN_STRIP_ROWS ? rows : TERN_STRIP_ROWS;
    float *scales = malloc(rows * sizeof *scales);
    tern_import how;
    if (tern_reading_of(reading, tensor, &how, NULL) != TERN_OK ||
        tern_import_check(&how, tensor->data, rows, cols, NULL) != TERN_OK) {
        free(scales);
        return;
    }
    if (scales != NULL)
        sink += (uint64_t)tern_import_scales(&how, tensor->data, rows, cols, scales, NULL);
    free(scales);
    uint8_t *stream = malloc(TERN_STRIP_ROWS * cols / 4);
    if (stream != NULL &&
        tern_import_rows(&how, tensor->data, rows, cols, 0, end, stream, NULL) == TERN_OK)
        sink += stream[0];
    if (stream != NULL && rows > end) /* the last rows, too */
        sink += (uint64_t)tern_import_rows(&how, tensor->data, rows, cols, rows - end, rows, stream,
                                           NULL);
    free(stream);
}

static void touch_ternary(const tern_gguf_tensor *tensor) {
    static const char *const tiles[] = {NULL, "32x32", "64x64x64", "32x96", "64x480", "96x24"};
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
        tern_reading reading;
        const tern_i2s_order order = (tern_i2s_order)(i % 4);
        if (tern_reading_init(&reading, order, i % 2 ? "zero-first" : NULL, tiles[i], NULL) !=
            TERN_OK)
            abort();
        import_rows(tensor, &reading);
    }
}

/* Typed access to keys that the input may hold, whatever their types. */
static void touch_typed(const tern_gguf *file) {
    static const char *const keys[] = {"a", "general.alignment", "general.architecture"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        tern_error err = {0};
        uint32_t u = 0;
        float f = 0;
        bool b = false;
        tern_span s = {NULL, 0};
        const tern_gguf_value *v = NULL;
        sink += (uint64_t)tern_gguf_u32(file, keys[i], &u, &err) + u;
        sink += (uint64_t)tern_gguf_f32(file, keys[i], &f, &err);
        sink += (uint64_t)tern_gguf_bool(file, keys[i], &b, &err) + b;
        sink += (uint64_t)tern_gguf_string(file, keys[i], &s, &err) + s.size;
        sink += (uint64_t)tern_gguf_array(file, keys[i], TERN_GGUF_STRING, &v, &err);
        sink += tern_gguf_find_tensor(file, keys[i]) != NULL;
    }
}

/* Reads the file as an adapter of a model of one layer. */
static void read_adapter(const tern_gguf *file) {
    const tern_config config = {.arch = tern_arch_find((tern_span){"llama", 5}),
                                .n_layer = 1,
                                .n_kinds = 1,
                                .period = 1,
                                .n_embd = 8,
                                .n_ff = 4,
                                .n_head = 2,
                                .n_head_kv = 1,
                                .head_dim = 4};
    const tern_adapter_base base = {.config = &config, .name = "base"};
    tern_adapter adapter = {.pairs = NULL};
    tern_adapter_info info = {.path = NULL};
    tern_error err = {0};
    if (tern_adapter_read(&base, file, &adapter, &info, &err) == TERN_OK)
        sink += info.rank + (uint8_t)info.digest[0];
    else if (err.message[0] == '\0')
        abort();
    tern_arena_free(&adapter.arena);
    free(adapter.pairs);
    free(adapter.name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tern_gguf *file = NULL;
    tern_error err = {0};
    if (tern_gguf_parse(data, size, "fuzz", &file, &err) != TERN_OK) {
        if (file != NULL || err.message[0] == '\0')
            abort();
        return 0;
    }
    for (size_t i = 0; i < tern_gguf_value_count(file); i++)
        touch_value(tern_gguf_value_at(file, i));
    for (size_t i = 0; i < tern_gguf_tensor_count(file); i++) {
        const tern_gguf_tensor *tensor = tern_gguf_tensor_at(file, i);
        touch_tensor(tensor);
        if (tern_gguf_format(tensor) == TERN_FORMAT_I2_S)
            touch_ternary(tensor);
    }
    touch_typed(file);
    read_adapter(file);
    tern_gguf_close(&file);
    return 0;
}
