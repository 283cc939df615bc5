/* SPDX-License-Identifier: Apache-2.0 */
/* Reads chat templates from the places where folders of Hugging Face and GGUF files have them. */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/in_file.h"
#include "base/word_list.h"
#include "runtime/text/tokenizer/index.h"
#include "runtime/text/tokenizer/vocabulary_gguf.h"
#include "runtime/text/tokenizer/vocabulary_json.h"

enum { MAX_TEMPLATE_BYTES = 1 << 24, NAME_BYTES = 256, PATH_BYTES = 4096 };

static const char ending[] = ".jinja";

/* Adds a template, or replaces the one of that name. There is room for a few; others are left out.
 */
static void add(tern_vocabulary *v, tern_named_template made) {
    size_t i = 0;
    while (i < v->n_templates && !tern_spans_equal(v->templates[i].name, made.name))
        i++;
    if (i == TERN_TOKENIZER_MAX_TEMPLATES) {
        free(made.own);
        return;
    }
    if (i == v->n_templates)
        v->n_templates++;
    else
        free(v->templates[i].own);
    v->templates[i] = made;
}

void tern_gguf_vocabulary_templates(tern_vocabulary *v, const tern_gguf *file) {
    static const char start[] = "tokenizer.chat_template.";
    const size_t n = sizeof start - 1;
    for (size_t i = 0; i < tern_gguf_value_count(file); i++) {
        const tern_gguf_value *value = tern_gguf_value_at(file, i);
        if (value->type != TERN_GGUF_STRING || value->key.size <= n ||
            memcmp(value->key.data, start, n) != 0)
            continue;
        const uint8_t *text = value->data;
        add(v, (tern_named_template){.name = {value->key.data + n, value->key.size - n},
                                     .text = tern_gguf_next_string(&text)});
    }
}

void tern_json_read_templates(tern_vocabulary *v, const tern_json_value *x) {
    if (x != NULL && x->type == TERN_JSON_STRING)
        v->chat_template = x->text;
    if (x == NULL || x->type != TERN_JSON_ARRAY)
        return;
    const tern_json_value *at = x + 1;
    for (uint32_t i = 0; i < x->count; i++, at += at->size) {
        const tern_json_value *name = tern_json_get(at, "name");
        const tern_json_value *text = tern_json_get(at, "template");
        if (name == NULL || name->type != TERN_JSON_STRING || text == NULL ||
            text->type != TERN_JSON_STRING)
            continue;
        if (tern_json_is_string(name, "default"))
            v->chat_template = text->text;
        else
            add(v, (tern_named_template){.name = name->text, .text = text->text});
    }
}

/* ---- files ------------------------------------------------------------------------------------
 */

/* Drops the templates of tokenizer_config.json. */
static void forget(tern_vocabulary *v) {
    for (size_t i = 0; i < v->n_templates; i++)
        free(v->templates[i].own);
    v->n_templates = 0;
    v->chat_template = (tern_span){"", 0};
}

static tern_status read_usual(tern_vocabulary *v, const char *path, tern_error *err) {
    char *file = tern_json_beside(path, "chat_template.jinja");
    size_t size;
    if (file == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for a path", v->file);
    tern_status status = TERN_OK;
    if (access(file, F_OK) == 0) {
        forget(v);
        status = tern_in_file_read(file, MAX_TEMPLATE_BYTES, &v->own_template, &size, err);
        if (status == TERN_OK)
            v->chat_template = (tern_span){v->own_template, size};
    }
    free(file);
    return status;
}

/* Reads FOLDER/NAME.jinja. */
static tern_status read_named(tern_vocabulary *v, const char *folder, const char *file,
                              tern_error *err) {
    char path[PATH_BYTES];
    char *text;
    size_t size;
    const size_t n = strlen(file) - strlen(ending);
    if (snprintf(path, sizeof path, "%s/%s", folder, file) >= (int)sizeof path)
        return tern_fail(err, TERN_ERR_IO, "%.64s...: the path is too long", folder);
    const tern_status status = tern_in_file_read(path, MAX_TEMPLATE_BYTES, &text, &size, err);
    if (status != TERN_OK)
        return status;
    char *own = malloc(n + size + 1);
    if (own != NULL) {
        memcpy(own, file, n);
        memcpy(own + n, text, size);
        add(v, (tern_named_template){.name = {own, n}, .text = {own + n, size}, .own = own});
    }
    free(text);
    return own != NULL ? TERN_OK
                       : tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for a template", path);
}

/* True for NAME.jinja. */
static int is_template(const struct dirent *entry) {
    const size_t n = strlen(entry->d_name);
    return n > strlen(ending) && n < NAME_BYTES && text_ends_with(entry->d_name, ending);
}

/* The same on every file system, and in every locale. */
static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Reads the files of a folder in the order of their names. */
static tern_status read_folder(tern_vocabulary *v, const char *path, const char *name, bool *first,
                               tern_error *err) {
    struct dirent **entries = NULL;
    char *folder = tern_json_beside(path, name);
    const int n = folder != NULL ? scandir(folder, &entries, is_template, by_name) : 0;
    tern_status status = folder != NULL && (n >= 0 || errno != ENOMEM)
                             ? TERN_OK
                             : tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for a path", v->file);
    for (int i = 0; i < n; i++) {
        if (*first && v->own_template == NULL)
            forget(v);
        *first = false;
        if (status == TERN_OK)
            status = read_named(v, folder, entries[i]->d_name, err);
        free(entries[i]);
    }
    free(entries);
    free(folder);
    return status;
}

tern_status tern_json_read_template_files(tern_vocabulary *v, const char *path, tern_error *err) {
    bool first = true;
    tern_status status = read_usual(v, path, err);
    if (status == TERN_OK)
        status = read_folder(v, path, "additional_chat_templates", &first, err);
    return status == TERN_OK ? read_folder(v, path, "chat_templates", &first, err) : status;
}
