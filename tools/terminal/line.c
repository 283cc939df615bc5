/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/terminal/line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/terminal/editor.h"

struct line_reader {
    bool terminal;
    editor *editor; /* NULL: lines are read without editing */
    char *line;
    size_t capacity;
};

line_reader *line_reader_open(bool terminal, const char *history) {
    line_reader *r = calloc(1, sizeof *r);
    if (r != NULL) {
        r->terminal = terminal;
        r->editor = terminal ? editor_open(history) : NULL;
    }
    return r;
}

/* Reads a line of standard input without editing. */
static line_kind read_plain(line_reader *r, const char *prompt, const char **line, size_t *size) {
    if (r->terminal)
        (void)fputs(prompt, stderr);
    errno = 0;
    const ssize_t n = getline(&r->line, &r->capacity, stdin);
    if (n < 0 && interrupt_seen()) {
        clearerr(stdin);
        return LINE_CANCELLED;
    }
    if (n < 0 && !feof(stdin)) {
        complain("standard input: %s", strerror(errno));
        return LINE_FAILED;
    }
    if (n < 0)
        return LINE_END;
    *line = r->line;
    *size = (size_t)n;
    return LINE_READ;
}

line_kind line_reader_next(line_reader *r, const char *prompt, const char **line, size_t *size) {
    interrupt_wakes(true);
    const line_kind kind = r->editor != NULL ? editor_read(r->editor, prompt, line, size)
                                             : read_plain(r, prompt, line, size);
    interrupt_wakes(false);
    if (kind != LINE_READ)
        return kind;
    *size -= *size > 0 && (*line)[*size - 1] == '\n';
    *size -= *size > 0 && (*line)[*size - 1] == '\r';
    if (*size > LINE_MAX_BYTES) {
        complain("a line of %zu bytes: at most %d are read", *size, LINE_MAX_BYTES);
        return LINE_FAILED;
    }
    return LINE_READ;
}

void line_reader_close(line_reader **r) {
    if (r == NULL || *r == NULL)
        return;
    editor_close(&(*r)->editor);
    free((*r)->line);
    free(*r);
    *r = NULL;
}
