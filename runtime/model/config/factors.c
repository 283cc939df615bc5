/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/model/config/factors.h"

#include <stdio.h>
#include <string.h>

#include "base/word_list.h"

static const char weight[] = "weight";

static bool ends_with(tern_span name, const char *ending) {
    const size_t n = strlen(ending);
    return name.size > n && memcmp(name.data + name.size - n, ending, n) == 0;
}

tern_factor_kind tern_factor_of_name(tern_span name, tern_span *stem) {
    static const struct {
        const char *ending;
        tern_factor_kind kind;
    } endings[] = {{".scale", TERN_FACTOR_RESULTS}, {".input_scale", TERN_FACTOR_INPUTS}};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (!ends_with(name, endings[i].ending))
            continue;
        *stem = (tern_span){name.data, name.size - strlen(endings[i].ending) + 1};
        return endings[i].kind;
    }
    return TERN_FACTOR_NONE;
}

void tern_factor_name(const char *matrix, const char *ending, char out[TERN_FACTOR_NAME_BYTES]) {
    const size_t n = strlen(matrix), last = strlen(weight);
    snprintf(out, TERN_FACTOR_NAME_BYTES, "%.*s%s", (int)(n > last ? n - last : 0), matrix, ending);
}

const tern_gguf_tensor *tern_factor_first(const tern_gguf *file) {
    for (size_t i = 0; i < tern_gguf_tensor_count(file); i++) {
        const tern_gguf_tensor *t = tern_gguf_tensor_at(file, i);
        tern_span stem;
        if (tern_factor_of_name(t->name, &stem) == TERN_FACTOR_RESULTS &&
            (tern_span_begins_with(stem, "blk.") || tern_span_begins_with(stem, "output.")))
            return t;
    }
    return NULL;
}
