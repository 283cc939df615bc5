/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/model/prompts.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_tree/read.h"
#include "tools/cli/output.h"
#include "tools/cli/whole_file.h"

static const size_t file_limit = (size_t)1 << 28; /* bytes; more are no prompts */

static int add(prompts *p, const char *text, size_t size) {
    if (p->n == p->capacity) {
        const size_t capacity = 2 * p->capacity + 64;
        prompt *grown = reallocarray(p->items, capacity, sizeof *grown);
        if (grown == NULL) {
            complain("no memory for %zu prompts", capacity);
            return EXIT_FAILED;
        }
        p->items = grown;
        p->capacity = capacity;
    }
    char *copy = malloc(size + 1);
    if (copy == NULL) {
        complain("no memory for a prompt of %zu bytes", size);
        return EXIT_FAILED;
    }
    memcpy(copy, text, size);
    copy[size] = '\0';
    p->items[p->n++] = (prompt){.text = copy, .size = size};
    return EXIT_DONE;
}

static int add_json(prompts *p, const char *path, size_t line, const char *text, size_t size) {
    tern_error err = {0};
    json_t *root = json_read_lines(text, size, file_shown(path), (uint32_t)line, &err);
    const json_t *value = json_object_get(root, "prompt");
    int status = EXIT_FAILED;
    if (root == NULL)
        (void)complain_error(&err);
    else if (!json_is_string(value))
        complain("%s: line %zu: the object has no text \"prompt\"", file_shown(path), line);
    else
        status = add(p, json_string_value(value), json_string_length(value));
    json_decref(root);
    return status;
}

static int read_lines(const char *path, const char *bytes, size_t size, prompts *p) {
    int status = EXIT_DONE;
    const char *end = bytes + size;
    for (size_t line = 1; status == EXIT_DONE && bytes < end; line++) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
        size_t n = (size_t)((newline != NULL ? newline : end) - bytes);
        const char *next = newline != NULL ? newline + 1 : end;
        n -= n > 0 && bytes[n - 1] == '\r';
        if (n > 0)
            status = bytes[0] == '{' ? add_json(p, path, line, bytes, n) : add(p, bytes, n);
        bytes = next;
    }
    return status;
}

int prompts_read(const char *path, prompts *p) {
    char *bytes;
    size_t size;
    int status = file_read(path, file_limit, &bytes, &size);
    if (status != EXIT_DONE)
        return status;
    status = read_lines(path, bytes, size, p);
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
