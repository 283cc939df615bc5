/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/json.h"

#ifdef TERN_HAVE_JANSSON

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

json_t *json_text(const char *bytes, size_t size) {
    json_t *text = json_stringn(bytes, size);
    if (text != NULL) {
        return text;
    }
    char *clean = malloc(3 * size + 1); /* U+FFFD takes three bytes */
    if (clean == NULL) {
        return NULL;
    }
    size_t n = 0;
    for (size_t i = 0; i < size;) {
        size_t k = size - i < 4 ? size - i : 4; /* the longest character that starts here */
        json_t *one = NULL;
        while (k > 0 && (one = json_stringn(bytes + i, k)) == NULL) {
            k--;
        }
        json_decref(one);
        memcpy(clean + n, k > 0 ? bytes + i : "\xef\xbf\xbd", k > 0 ? k : 3);
        n += k > 0 ? k : 3;
        i += k > 0 ? k : 1;
    }
    text = json_stringn(clean, n);
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
