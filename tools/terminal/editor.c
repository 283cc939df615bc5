/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/terminal/editor.h"

#ifdef TERN_HAVE_LIBEDIT

#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/in_file.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"

enum { HISTORY_LINES = 1000 };

struct editor {
    EditLine *line;
    History *history;
    char *path; /* of the history; NULL: it is not saved */
    const char *prompt;
    bool cancelled;
};

static editor *of(EditLine *line) {
    void *e = NULL;
    (void)el_get(line, EL_CLIENTDATA, &e);
    return e;
}

static char *show_prompt(EditLine *line) {
    return (char *)(uintptr_t)of(line)->prompt;
}

/* Ctrl-C leaves the line. */
static unsigned char cancel(EditLine *line, int key) {
    (void)key;
    of(line)->cancelled = true;
    return CC_NEWLINE;
}

/* Selects UTF-8 in a locale with single-byte characters, which containers often have. */
static void choose_letters(void) {
    (void)setlocale(LC_CTYPE, "");
    if (MB_CUR_MAX == 1)
        (void)setlocale(LC_CTYPE, "C.UTF-8");
}

/* Ctrl-C arrives as a key while a line is edited; at all other times it is SIGINT. */
static void bind_keys(EditLine *line) {
    (void)el_set(line, EL_EDITOR, "emacs");
    (void)el_set(line, EL_SETTY, "-d", "-isig", NULL);
    /* Wide: for narrow names libedit makes copies and never frees them. */
    (void)el_wset(line, EL_ADDFN, L"tern-cancel", L"leave the line", cancel);
    (void)el_set(line, EL_BIND, "^C", "tern-cancel", NULL);
    (void)el_set(line, EL_BIND, "^R", "em-inc-search-prev", NULL);
    (void)el_source(line, NULL); /* the user's ~/.editrc comes last */
}

static bool open_history(editor *e, const char *path) {
    HistEvent event;
    e->history = history_init();
    if (e->history == NULL)
        return false;
    (void)history(e->history, &event, H_SETSIZE, HISTORY_LINES);
    (void)history(e->history, &event, H_SETUNIQUE, 1);
    (void)el_set(e->line, EL_HIST, history, e->history);
    tern_error err = {0};
    if (path == NULL)
        return true;
    if (access(path, F_OK) == 0 && tern_in_file_check(path, TERN_IN_FILE, &err) != TERN_OK) {
        complain("%s; the history is not kept", err.message);
        return true;
    }
    e->path = strdup(path);
    (void)history(e->history, &event, H_LOAD, path);
    return true;
}

editor *editor_open(const char *history) {
    editor *e = calloc(1, sizeof *e);
    if (e == NULL)
        return NULL;
    choose_letters();
    e->line = el_init("tern", stdin, isatty(STDOUT_FILENO) == 1 ? stdout : stderr, stderr);
    if (e->line == NULL || !open_history(e, history)) {
        editor_close(&e);
        return NULL;
    }
    (void)el_set(e->line, EL_CLIENTDATA, e);
    (void)el_set(e->line, EL_PROMPT, show_prompt);
    bind_keys(e->line);
    return e;
}

line_kind editor_read(editor *e, const char *prompt, const char **line, size_t *size) {
    int n = 0;
    e->prompt = prompt;
    e->cancelled = false;
    errno = 0;
    const char *text = el_gets(e->line, &n);
    if (e->cancelled || interrupt_seen()) {
        (void)fputs("^C\n", stderr);
        return LINE_CANCELLED;
    }
    if (text == NULL || n <= 0)
        return LINE_END;
    if (n > 1) {
        HistEvent event;
        (void)history(e->history, &event, H_ENTER, text);
    }
    *line = text;
    *size = (size_t)n;
    return LINE_READ;
}

/* Writes a temporary file first, so that two chats that end at once leave one complete file. */
static void save_history(const editor *e) {
    char temporary[4096];
    const int n = snprintf(temporary, sizeof temporary, "%s.XXXXXX", e->path);
    if (n < 0 || (size_t)n >= sizeof temporary)
        return;
    const int fd = mkstemp(temporary); /* with mode 0600 */
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (file == NULL) {
        complain("%s: the history cannot be saved: %s", e->path, strerror(errno));
        if (fd >= 0) {
            (void)close(fd);
            (void)unlink(temporary);
        }
        return;
    }
    HistEvent event;
    const bool saved = history(e->history, &event, H_SAVE_FP, file) >= 0;
    const bool closed = fclose(file) == 0;
    if (!saved || !closed || rename(temporary, e->path) != 0) {
        complain("%s: the history cannot be saved: %s", e->path, strerror(errno));
        (void)unlink(temporary);
    }
}

void editor_close(editor **closed) {
    editor *e = *closed;
    if (e == NULL)
        return;
    if (e->path != NULL)
        save_history(e);
    if (e->line != NULL)
        el_end(e->line);
    if (e->history != NULL)
        history_end(e->history);
    free(e->path);
    free(e);
    *closed = NULL;
}

#else

#include <stddef.h>

editor *editor_open(const char *history) {
    (void)history;
    return NULL;
}

line_kind editor_read(editor *e, const char *prompt, const char **line, size_t *size) {
    (void)e, (void)prompt, (void)line, (void)size;
    return LINE_END;
}

void editor_close(editor **e) {
    (void)e;
}

#endif
