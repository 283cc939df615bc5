/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prompt/prompt_file.h"
#include "tools/prompt/prompt.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/json_tree/read.h"
#include "tools/cli/output.h"
#include "tools/cli/whole_file.h"

static const size_t file_limit = (size_t)1 << 28; /* bytes; a larger file is a mistake */

/* Appends an empty prompt; NULL after a complaint. */
static prompt *next_item(prompts *p) {
    if (!tern_grow((void **)&p->items, &p->capacity, p->n, sizeof *p->items,
                   SIZE_MAX / (4 * sizeof *p->items))) {
        complain("no memory for more than %zu prompts", p->n);
        return NULL;
    }
    p->items[p->n] = (prompt){0};
    return &p->items[p->n++];
}

int prompts_add(prompts *p, const char *text, size_t size) {
    prompt *item = next_item(p);
    if (item == NULL)
        return EXIT_FAILED;
    item->text = malloc(size + 1);
    if (item->text == NULL) {
        complain("no memory for a prompt of %zu bytes", size);
        return EXIT_FAILED;
    }
    memcpy(item->text, text, size);
    item->text[size] = '\0';
    item->size = size;
    return EXIT_DONE;
}

/* Adds ids instead of a text; the engine checks their range. */
static int add_ids(prompts *p, const json_t *ids, const char *path, size_t line) {
    const size_t n = json_array_size(ids);
    prompt *item = next_item(p);
    if (item == NULL)
        return EXIT_FAILED;
    item->ids = malloc((n + 1) * sizeof *item->ids);
    if (item->ids == NULL) {
        complain("no memory for %zu tokens", n);
        return EXIT_FAILED;
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(ids, i);
        const json_int_t x = json_integer_value(id);
        if (!json_is_integer(id) || x < 0 || x > INT32_MAX) {
            complain("%s: line %zu: element %zu of \"tokens\" is not a token id", file_shown(path),
                     line, i);
            return EXIT_FAILED;
        }
        item->ids[item->n++] = (int32_t)x;
    }
    return EXIT_DONE;
}

static int add_json(prompts *p, bool ids, const char *path, size_t line, const char *text,
                    size_t size) {
    tern_error err = {0};
    json_t *root = json_read_lines(text, size, file_shown(path), (uint32_t)line, &err);
    const json_t *value = json_object_get(root, "prompt");
    const json_t *tokens = ids ? json_object_get(root, "tokens") : NULL;
    int status = EXIT_FAILED;
    if (root == NULL)
        (void)complain_error(&err);
    else if (json_is_string(value))
        status = prompts_add(p, json_string_value(value), json_string_length(value));
    else if (json_is_array(tokens))
        status = add_ids(p, tokens, path, line);
    else
        complain("%s: line %zu: the object has no text \"prompt\"", file_shown(path), line);
    json_decref(root);
    return status;
}

static int read_lines(const char *path, bool ids, const char *bytes, size_t size, prompts *p) {
    int status = EXIT_DONE;
    const char *end = bytes + size;
    for (size_t line = 1; status == EXIT_DONE && bytes < end; line++) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
        size_t n = (size_t)((newline != NULL ? newline : end) - bytes);
        const char *next = newline != NULL ? newline + 1 : end;
        n -= n > 0 && bytes[n - 1] == '\r';
        if (n > 0)
            status =
                bytes[0] == '{' ? add_json(p, ids, path, line, bytes, n) : prompts_add(p, bytes, n);
        bytes = next;
    }
    return status;
}

int prompts_read(const char *path, bool ids, prompts *p) {
    char *bytes;
    size_t size;
    int status = file_read(path, file_limit, &bytes, &size);
    if (status != EXIT_DONE)
        return status;
    status = read_lines(path, ids, bytes, size, p);
    free(bytes);
    if (status == EXIT_DONE && p->n == 0) {
        complain("%s: it has no prompts", file_shown(path));
        return EXIT_FAILED;
    }
    return status;
}

void prompts_free(prompts *p) {
    for (size_t i = 0; i < p->n; i++)
        prompt_free(&p->items[i]);
    free(p->items);
    *p = (prompts){0};
}
