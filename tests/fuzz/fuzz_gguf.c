/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes go into the GGUF reader; what it accepts must be readable to the last byte. */
#include <stdint.h>
#include <stdlib.h>

#include "runtime/gguf.h"

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
    for (size_t i = 0; i < tern_gguf_tensor_count(file); i++)
        touch_tensor(tern_gguf_tensor_at(file, i));
    touch_typed(file);
    tern_gguf_close(&file);
    return 0;
}
