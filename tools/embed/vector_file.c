/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/embed/vector_file.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/word_list.h"
#include "tools/cli/output.h"

/* Writes the buffered line and empties it. */
static int send_line(vector_file *v) {
    tern_error err = {0};
    int status = EXIT_DONE;
    if (v->line.failed) {
        complain("no memory for a vector of %zu numbers", v->width);
        status = EXIT_FAILED;
    } else if (v->file == NULL) {
        status = out_write(v->line.bytes, v->line.size) && out_flush() ? EXIT_DONE : EXIT_FAILED;
    } else if (tern_out_file_write(v->file, v->line.bytes, v->line.size, &err) != TERN_OK) {
        status = complain_error(&err);
    }
    text_clear(&v->line);
    return status;
}

/* Writes magic, version, and a text whose length puts the numbers at a multiple of 64. */
static int write_header(vector_file *v) {
    char words[192];
    const int size = snprintf(words, sizeof words,
                              "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }",
                              v->rows, v->width);
    const size_t before = 10, all = (before + (size_t)size + 1 + 63) / 64 * 64;
    const size_t length = all - before;
    const char lead[] = {
        '\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)(length & 0xff), (char)(length >> 8)};
    text_add(&v->line, lead, sizeof lead);
    text_print(&v->line, "%s%*s\n", words, (int)(length - (size_t)size - 1), "");
    return send_line(v);
}

int vector_file_open(vector_file *v, const char *path, tern_out_mode mode, size_t rows,
                     size_t width) {
    tern_error err = {0};
    v->rows = rows;
    v->width = width;
    v->is_array = path != NULL && text_ends_with(path, ".npy");
    if (path != NULL && tern_out_file_create(path, mode, &v->file, &err) != TERN_OK)
        return complain_error(&err);
    return v->is_array ? write_header(v) : EXIT_DONE;
}

static void add_bytes(text *line, float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const char bytes[] = {(char)(bits & 0xff), (char)(bits >> 8 & 0xff), (char)(bits >> 16 & 0xff),
                          (char)(bits >> 24)};
    text_add(line, bytes, sizeof bytes);
}

static void add_json(vector_file *v, const vector_row *row) {
    text_print(&v->line, "{\"index\":%zu,\"tokens\":%zu", row->number, row->n_tokens);
    text_string(&v->line, "digest", row->digest);
    text_name(&v->line, "embedding");
    for (size_t i = 0; i < v->width; i++) {
        text_add(&v->line, i > 0 ? "," : "[", 1);
        text_float(&v->line, row->x[i]);
    }
    text_add(&v->line, "]}\n", 3);
}

int vector_file_add(vector_file *v, const vector_row *row) {
    if (v->is_array)
        for (size_t i = 0; i < v->width; i++)
            add_bytes(&v->line, row->x[i]);
    else
        add_json(v, row);
    return send_line(v);
}

int vector_file_commit(vector_file *v) {
    tern_error err = {0};
    if (v->file != NULL && tern_out_file_commit(&v->file, &err) != TERN_OK)
        return complain_error(&err);
    return EXIT_DONE;
}

void vector_file_close(vector_file *v) {
    tern_out_file_discard(&v->file);
    text_free(&v->line);
}
