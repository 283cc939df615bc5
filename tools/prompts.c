/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prompts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/files.h"
#include "tools/json/read.h"
#include "tools/out.h"

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
    if (root == NULL) {
        (void)complain_error(&err);
    } else if (!json_is_string(value)) {
        complain("%s: line %zu: the object has no text \"prompt\"", file_shown(path), line);
    } else {
        status = add(p, json_string_value(value), json_string_length(value));
    }
    json_decref(root);
    return status;
}

static int read_lines(FILE *file, const char *path, prompts *p) {
    char *text = NULL;
    size_t capacity = 0;
    int status = EXIT_DONE;
    ssize_t n;
    for (size_t line = 1;
         status == EXIT_DONE && (errno = 0, n = getline(&text, &capacity, file)) >= 0; line++) {
        size_t size = (size_t)n;
        size -= size > 0 && text[size - 1] == '\n';
        size -= size > 0 && text[size - 1] == '\r';
        if (size > 0) {
            status = text[0] == '{' ? add_json(p, path, line, text, size) : add(p, text, size);
        }
    }
    free(text);
    if (status == EXIT_DONE && !feof(file)) {
        complain("%s: %s", file_shown(path), strerror(errno));
        return EXIT_FAILED;
    }
    return status;
}

int prompts_read(const char *path, prompts *p) {
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    if (file == NULL) {
        complain("%s: %s", path, strerror(errno));
        return EXIT_FAILED;
    }
    const int status = read_lines(file, path, p);
    if (file != stdin) {
        (void)fclose(file); /* only read */
    }
    if (status == EXIT_DONE && p->n == 0) {
        complain("%s: it has no prompts", file_shown(path));
        return EXIT_FAILED;
    }
    return status;
}

void prompts_free(prompts *p) {
    for (size_t i = 0; i < p->n; i++) {
        prompt_free(&p->items[i]);
    }
    free(p->items);
    *p = (prompts){0};
}
