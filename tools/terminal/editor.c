/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/terminal/editor.h"

#ifdef TERN_HAVE_LIBEDIT

#include <errno.h>
#include <histedit.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/in_file.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/terminal/wrap.h"

enum { HISTORY_LINES = 1000 };

/* A terminal that understands these marks what is pasted. */
static const char paste_on[] = "\033[?2004h", paste_off[] = "\033[?2004l";
static const wchar_t paste_end[] = L"\033[201~";
enum { PASTE_END = sizeof paste_end / sizeof *paste_end - 1 };

struct editor {
    EditLine *line;
    History *history;
    FILE *out;
    char *path; /* of the history; NULL: it is not saved */
    const char *prompt;
    mbstate_t letter; /* bytes of a character that has begun */
    sigset_t open;    /* signals that are let in while a key is waited for */
    bool cancelled;
};

static volatile sig_atomic_t resized; /* the window has another size than the editor knows */
static pthread_t reader;              /* the thread that waits for keys */

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

/* ---- the window's size ----------------------------------------------------------------------- */

/* The system may tell any thread; only the reader's wait has to end. */
static void note_resize(int number) {
    resized = 1;
    if (!pthread_equal(pthread_self(), reader))
        (void)pthread_kill(reader, number);
}

/* Lets a change of the window interrupt only the wait for a key, so that none is missed. */
static void watch_window(editor *e) {
    struct sigaction action = {.sa_handler = note_resize, .sa_flags = SA_RESTART};
    sigset_t window;
    (void)sigemptyset(&action.sa_mask);
    reader = pthread_self();
    (void)sigaction(SIGWINCH, &action, NULL);
    (void)sigemptyset(&window);
    (void)sigaddset(&window, SIGWINCH);
    (void)pthread_sigmask(SIG_BLOCK, &window, &e->open);
    (void)sigdelset(&e->open, SIGWINCH);
}

/*
 * Draws the line again in a window of another size. The terminal has broken the line anew, so the
 * cursor may stand in another row below the prompt than before.
 */
static void draw_again(const editor *e) {
    const LineInfo *now = el_line(e->line);
    struct winsize window;
    unsigned column = 0;
    resized = 0;
    if (ioctl(fileno(e->out), TIOCGWINSZ, &window) != 0 || window.ws_col == 0)
        return;
    unsigned row = wrap_row(e->prompt, strlen(e->prompt), window.ws_col, &column);
    row += wrap_row(now->buffer, (size_t)(now->cursor - now->buffer), window.ws_col, &column);
    (void)fputc('\r', e->out);
    if (row > 0)
        (void)fprintf(e->out, "\033[%uA", row);
    (void)fputs("\033[J", e->out);
    (void)fflush(e->out);
    el_resize(e->line);
    (void)el_set(e->line, EL_REFRESH);
}

/* Waits until a key can be read; false if a signal asks to end. */
static bool wait_for_key(const editor *e) {
    for (;;) {
        struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
        if (resized != 0)
            draw_again(e);
        if (ppoll(&in, 1, NULL, &e->open) > 0)
            return true;
        if (errno != EINTR || interrupt_seen())
            return false;
    }
}

/* Reads a character: 1, 0 at the end of input, -1 after an error. */
static int read_key(EditLine *line, wchar_t *key) {
    editor *e = of(line);
    for (;;) {
        char byte;
        const ssize_t n = wait_for_key(e) ? read(STDIN_FILENO, &byte, 1) : -1;
        if (n <= 0) {
            *key = L'\0';
            return (int)n;
        }
        const size_t size = mbrtowc(key, &byte, 1, &e->letter);
        if (size == (size_t)-2)
            continue;
        if (size == (size_t)-1) {
            e->letter = (mbstate_t){0};
            *key = 0xfffd;
        }
        return 1;
    }
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Adds a character of a pasted text: line ends are those of C, other control characters go. */
static void add_pasted(wchar_t *text, size_t *n, wchar_t c) {
    if (c == L'\r')
        c = L'\n';
    if ((c == L'\n' || c == L'\t' || (c >= L' ' && c != 0x7f)) && *n <= LINE_MAX_BYTES)
        text[(*n)++] = c;
}

/* Reads a pasted text up to the terminal's mark, to be freed; NULL without memory or input. */
static wchar_t *read_pasted(EditLine *line) {
    size_t n = 0, matched = 0, capacity = 1024;
    wchar_t *text = malloc(capacity * sizeof *text), key = L'\0', before = L'\0';
    while (text != NULL && matched < PASTE_END) {
        if (el_wgetc(line, &key) != 1)
            break;
        matched = key == paste_end[matched] ? matched + 1 : (size_t)(key == paste_end[0]);
        if (matched == 0 && !(key == L'\n' && before == L'\r'))
            add_pasted(text, &n, key);
        before = key;
        if (n + 1 < capacity)
            continue;
        wchar_t *grown = realloc(text, 2 * capacity * sizeof *text);
        if (grown == NULL)
            break;
        text = grown;
        capacity *= 2;
    }
    if (text == NULL || matched < PASTE_END) {
        free(text);
        return NULL;
    }
    while (n > 0 && text[n - 1] == L'\n')
        n--; /* the line end that a selection of whole lines has */
    text[n] = L'\0';
    return text;
}

/* Puts a pasted text into the line, with its line ends: it is one message. */
static unsigned char paste(EditLine *line, int key) {
    (void)key;
    wchar_t *text = read_pasted(line);
    const bool inserted = text != NULL && (text[0] == L'\0' || el_winsertstr(line, text) == 0);
    free(text);
    return inserted ? CC_REFRESH : CC_ERROR;
}

/* Ctrl-C arrives as a key while a line is edited; at all other times it is SIGINT. */
static void bind_keys(EditLine *line) {
    (void)el_set(line, EL_EDITOR, "emacs");
    (void)el_set(line, EL_SETTY, "-d", "-isig", NULL);
    /* Wide: for narrow names libedit makes copies and never frees them. */
    (void)el_wset(line, EL_ADDFN, L"tern-cancel", L"leave the line", cancel);
    (void)el_wset(line, EL_ADDFN, L"tern-paste", L"insert what is pasted", paste);
    (void)el_set(line, EL_BIND, "^C", "tern-cancel", NULL);
    (void)el_set(line, EL_BIND, "^[[200~", "tern-paste", NULL);
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
    e->out = isatty(STDOUT_FILENO) == 1 ? stdout : stderr;
    e->line = el_init("tern", stdin, e->out, stderr);
    if (e->line == NULL || !open_history(e, history)) {
        editor_close(&e);
        return NULL;
    }
    (void)el_set(e->line, EL_CLIENTDATA, e);
    (void)el_set(e->line, EL_PROMPT, show_prompt);
    (void)el_set(e->line, EL_GETCFN, read_key);
    watch_window(e);
    bind_keys(e->line);
    return e;
}

static void mark_pastes(const editor *e, bool marks) {
    if (!wrap_is_possible(fileno(e->out)))
        return;
    (void)fputs(marks ? paste_on : paste_off, e->out);
    (void)fflush(e->out);
}

line_kind editor_read(editor *e, const char *prompt, const char **line, size_t *size) {
    int n = 0;
    e->prompt = prompt;
    e->cancelled = false;
    errno = 0;
    mark_pastes(e, true);
    const char *text = el_gets(e->line, &n);
    mark_pastes(e, false);
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
