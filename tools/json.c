/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/json.h"

#ifdef TERN_HAVE_JANSSON

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/utf8.h"
#include "tools/out.h"

int json_print(json_t *root) {
    char *line = root != NULL ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(root);
    if (line == NULL) {
        complain("no memory for JSON");
        return EXIT_FAILED;
    }
    out_print("%s\n", line);
    free(line);
    return EXIT_DONE;
}

json_t *json_number(double x) {
    return json_real(isfinite(x) ? x : 0.0);
}

json_t *json_unsigned(uint64_t x) {
    if (x <= INT64_MAX) {
        return json_integer((json_int_t)x);
    }
    return json_sprintf("%" PRIu64, x);
}

json_t *json_text(const char *bytes, size_t size) {
    char *clean = malloc(TERN_UTF8_REPLACEMENT_BYTES * size + 1);
    if (clean == NULL) {
        return NULL;
    }
    const size_t n = tern_utf8_repair(bytes, size, clean, NULL);
    json_t *text = json_stringn(clean, n);
    free(clean);
    return text;
}

json_t *json_kernels(const tern_kernel_row *const *rows, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(list, json_string(rows[i]->name));
    }
    return list;
}

#endif
