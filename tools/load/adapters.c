/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/load/adapters.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* True if all of the text is a number. */
static bool read_scale(const char *text, float *scale) {
    char *end;
    const float value = strtof(text, &end);
    if (end == text || *end != '\0')
        return false;
    *scale = value;
    return true;
}

tern_status adapters_split(const char *text, char *path, size_t size, float *scale,
                           tern_error *err) {
    const char *mark = strrchr(text, '=');
    *scale = 1.0f;
    const size_t n =
        mark != NULL && read_scale(mark + 1, scale) ? (size_t)(mark - text) : strlen(text);
    if (n == 0 || n >= size)
        return tern_fail(err, TERN_ERR_ARG, "an adapter's path of %zu bytes, must be 1 to %zu", n,
                         size - 1);
    memcpy(path, text, n);
    path[n] = '\0';
    return TERN_OK;
}

tern_status adapters_read(const options *o, option_id id, tern_model_params *params,
                          tern_error *err) {
    static tern_adapter_file files[TERN_MOST_ADAPTERS];
    static char paths[TERN_MOST_ADAPTERS][PATH_MAX];
    const size_t n = options_count(o, id);
    if (n > TERN_MOST_ADAPTERS)
        return tern_fail(err, TERN_ERR_ARG, "%zu adapters, at most %d", n, (int)TERN_MOST_ADAPTERS);
    if (n > 0 && options_given(o, OPT_RECORD_ANSWERS))
        return tern_fail(err, TERN_ERR_ARG,
                         "--lora: answers with adapters cannot be recorded by --record-answers");
    for (size_t i = 0; i < n; i++) {
        const tern_status status = adapters_split(options_nth(o, id, (unsigned)i)->text, paths[i],
                                                  sizeof paths[i], &files[i].scale, err);
        if (status != TERN_OK)
            return status;
        files[i].path = paths[i];
    }
    params->adapters = files;
    params->n_adapters = n;
    return TERN_OK;
}
