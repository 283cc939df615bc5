/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/whole_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/in_file.h"
#include "base/sha256.h"
#include "tools/cli/output.h"

enum { STEP = 1 << 16 }; /* bytes read at a time */

const char *file_shown(const char *path) {
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

FILE *file_open_text(const char *path) {
    FILE *file = stdin;
    tern_error err = {0};
    if (strcmp(path, "-") != 0 && tern_in_file_open(path, TERN_IN_TEXT, &file, &err) != TERN_OK) {
        (void)complain_error(&err);
        return NULL;
    }
    return file;
}

static int close_file(FILE *file, const char *path) {
    const int problem = ferror(file) ? errno : 0;
    if (file != stdin)
        (void)fclose(file); /* was only read */
    if (problem != 0) {
        complain("%s: %s", file_shown(path), strerror(problem));
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

/* Makes room for STEP more bytes and the terminator; false without memory. */
static bool grow(char **bytes, size_t *capacity, size_t size) {
    if (*capacity - size > STEP)
        return true;
    const size_t larger = *capacity + *capacity / 2 + STEP + 1;
    char *grown = larger > *capacity ? realloc(*bytes, larger) : NULL;
    if (grown == NULL)
        return false;
    *bytes = grown;
    *capacity = larger;
    return true;
}

int file_read(const char *path, size_t limit, char **bytes, size_t *size) {
    FILE *file = file_open_text(path);
    if (file == NULL)
        return EXIT_FAILED;
    char *content = NULL;
    size_t capacity = 0;
    size_t n = 0;
    size_t got;
    int status = EXIT_DONE;
    do {
        if (!grow(&content, &capacity, n)) {
            complain("%s: no memory for more than %zu bytes", file_shown(path), n);
            status = EXIT_FAILED;
            break;
        }
        got = fread(content + n, 1, STEP, file);
        n += got;
    } while (got > 0 && n <= limit);
    const int closed = close_file(file, path);
    status = status == EXIT_DONE ? closed : status;
    if (status == EXIT_DONE && n > limit) {
        complain("%s: longer than %zu bytes", file_shown(path), limit);
        status = EXIT_FAILED;
    }
    if (status != EXIT_DONE) {
        free(content);
        return status;
    }
    content[n] = '\0';
    *bytes = content;
    *size = n;
    return EXIT_DONE;
}

int file_sha256(const char *path, char hex[65]) {
    FILE *file = file_open_text(path);
    if (file == NULL)
        return EXIT_FAILED;
    tern_sha256 h;
    tern_sha256_start(&h);
    char buffer[STEP];
    size_t got;
    while ((got = fread(buffer, 1, sizeof buffer, file)) > 0)
        tern_sha256_add(&h, buffer, got);
    tern_sha256_finish(&h, hex);
    return close_file(file, path);
}
