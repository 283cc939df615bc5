/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/json.h"

#ifdef TERN_HAVE_JANSSON

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/utf8.h"
#include "tools/out.h"

static bool memory_failed;

void *json_reserve(size_t size) {
    void *memory = malloc(size);
    memory_failed |= memory == NULL;
    return memory;
}

void json_watch_memory(void) {
    json_set_alloc_funcs(json_reserve, free);
}

bool json_memory_failed(void) {
    return memory_failed;
}

json_t *json_read(const char *bytes, size_t size, json_error_t *error) {
    const bool failed_before = memory_failed;
    memory_failed = false;
    json_t *root = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, error);
    if (memory_failed) {
        json_decref(root);
        root = NULL;
        error->line = error->line > 0 ? error->line : 1;
        (void)snprintf(error->text, sizeof error->text, "no memory to read it");
    }
    memory_failed |= failed_before;
    return root;
}

int json_print(json_t *root) {
    char *line = root != NULL && !memory_failed
                     ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17))
                     : NULL;
    json_decref(root);
    if (line == NULL || memory_failed) {
        free(line);
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
    char *clean = json_reserve(TERN_UTF8_REPLACEMENT_BYTES * size + 1);
    if (clean == NULL) {
        return NULL;
    }
    const size_t n = tern_utf8_repair(bytes, size, clean, NULL);
    json_t *text = json_stringn(clean, n);
    free(clean);
    return text;
}

void json_set_kernels(json_t *root, const loaded *l) {
    const tern_kernel_refusal *refusals;
    const size_t n_refused = tern_model_refusals(l->model, &refusals);
    json_t *kernels = json_array();
    json_t *refused = json_array();
    for (size_t i = 0; i < l->n_kernels; i++) {
        json_array_append_new(kernels, json_string(l->kernels[i]->name));
    }
    for (size_t i = 0; i < n_refused; i++) {
        json_array_append_new(refused, json_pack("{s:s, s:s}", "kernel", refusals[i].row->name,
                                                 "where", refusals[i].where));
    }
    json_object_set_new(root, "isa", json_string(tern_model_isa(l->model)));
    json_object_set_new(root, "choice", json_string(tern_model_choice(l->model)));
    json_object_set_new(root, "kernels", kernels);
    json_object_set_new(root, "refused_kernels", refused);
}

void json_set_loading(json_t *root, const loaded *l) {
    json_object_set_new(root, "load_seconds", json_number(l->loading.seconds));
    json_object_set_new(root, "weights", json_string(l->loading.mapped ? "mapped" : "packed"));
}

#endif
