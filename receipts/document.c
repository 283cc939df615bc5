/* SPDX-License-Identifier: Apache-2.0 */
#include "receipts/document.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/json_tree/read.h"

void receipt_find(receipt_findings *f, const char *format, ...) {
    char *line = NULL;
    va_list args;
    if (!tern_grow((void **)&f->lines, &f->capacity, f->n, sizeof *f->lines,
                   SIZE_MAX / sizeof *f->lines)) {
        f->out_of_memory = true;
        return;
    }
    va_start(args, format);
    const int n = vasprintf(&line, format, args);
    va_end(args);
    if (n < 0) {
        f->out_of_memory = true;
        return;
    }
    for (char *c = line; *c != '\0'; c++) /* foreign text must stay in one line */
        *c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
    f->lines[f->n++] = line;
}

void receipt_findings_free(receipt_findings *f) {
    for (size_t i = 0; i < f->n; i++)
        free(f->lines[i]);
    free(f->lines);
    *f = (receipt_findings){0};
}

json_t *receipt_parse(const char *bytes, size_t size, const char *name, tern_error *err) {
    json_t *root = json_read(bytes, size, name, err);
    if (root != NULL && !json_is_object(root)) {
        (void)tern_fail(err, TERN_ERR_ARG, "%s: line 1: not a JSON object", name);
        json_decref(root);
        root = NULL;
    }
    return root;
}
