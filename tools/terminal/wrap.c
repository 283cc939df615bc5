/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/terminal/wrap.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/utf8.h"
#include "tools/cli/output.h"
#include "tools/cli/visible.h"

enum { TAB_COLUMNS = 8 };

void wrap_choose_letters(void) {
    (void)setlocale(LC_CTYPE, "");
    if (MB_CUR_MAX == 1)
        (void)setlocale(LC_CTYPE, "C.UTF-8");
}

bool wrap_is_possible(int fd) {
    const char *terminal = getenv("TERM");
    return isatty(fd) == 1 && terminal != NULL && strcmp(terminal, "dumb") != 0;
}

static void end_word(wrap *w) {
    w->word_bytes = 0;
    w->word_width = 0;
}

void wrap_begin(wrap *w) {
    w->column = 0;
    end_word(w);
}

static unsigned width_of(uint32_t code) {
    const int width = wcwidth((wchar_t)code);
    return width >= 0 ? (unsigned)width : 1;
}

static unsigned next_tab(unsigned column) {
    return column - column % TAB_COLUMNS + TAB_COLUMNS;
}

unsigned wrap_row(const char *text, size_t size, unsigned columns, unsigned *column) {
    unsigned row = 0;
    for (size_t at = 0; at < size;) {
        const tern_utf8 c = tern_utf8_next(text + at, size - at);
        const unsigned width = c.code == '\t' ? next_tab(*column) - *column : width_of(c.code);
        at += c.size;
        if (c.code == '\n' || *column + width > columns) {
            row++;
            *column = 0;
        }
        if (c.code != '\n')
            *column += width;
    }
    if (*column >= columns) { /* a full line: the cursor of an editor stands in the next one */
        row++;
        *column = 0;
    }
    return row;
}

/* Notices a window of another size. Terminals break a line anew that no longer fits. */
static void look_at_window(wrap *w) {
    struct winsize window;
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0;
    const unsigned columns = known ? window.ws_col : 0;
    if (columns == w->columns)
        return;
    w->columns = columns;
    if (columns == 0 || w->column <= columns)
        return;
    w->column %= columns;
    end_word(w);
}

/* The next character would not fit: goes to the next line, with the word that has begun. */
static bool next_line(wrap *w) {
    const unsigned begin = w->column - w->word_width;
    const bool fills_line = w->word_width > 0 && begin == 0;
    if (fills_line) { /* the terminal breaks it */
        wrap_begin(w);
        return true;
    }
    w->column = w->word_width;
    if (w->word_width == 0)
        return out_write("\n", 1);
    char erase[32];
    const int n = snprintf(erase, sizeof erase, "\033[%uG\033[K", begin + 1);
    return out_control(erase, (size_t)n) && out_write("\n", 1) && out_write(w->word, w->word_bytes);
}

/* Spaces and tabs end words. At the edge they are left out: the next word begins a line anyway. */
static bool put_space(wrap *w, char c) {
    const unsigned next = c == '\t' ? next_tab(w->column) : w->column + 1;
    end_word(w);
    const bool fits = next <= w->columns && (c == ' ' || next < w->columns);
    w->column = fits ? next : w->columns;
    return !fits || out_write(&c, 1);
}

static bool put_letter(wrap *w, const char *bytes, size_t size, unsigned width) {
    const bool wide = width > 1; /* characters of Chinese and others: lines break between any two */
    if (wide)
        end_word(w);
    if (w->column + width > w->columns && !next_line(w))
        return false;
    if (wide || w->word_bytes + size > sizeof w->word) {
        end_word(w);
    } else {
        memcpy(w->word + w->word_bytes, bytes, size);
        w->word_bytes += size;
        w->word_width += width;
    }
    w->column += width;
    return out_write(bytes, size);
}

bool wrap_write(wrap *w, const char *bytes, size_t size) {
    if (w->on)
        look_at_window(w);
    if (!w->on || w->columns == 0)
        return out_write(bytes, size);
    bool written = true;
    for (size_t at = 0; at < size && written;) {
        char seen[TERN_UTF8_MAX_BYTES];
        const size_t whole = tern_utf8_next(bytes + at, size - at).size;
        const size_t n = visible_copy(bytes + at, whole, true, seen);
        at += whole;
        if (seen[0] == '\n') {
            wrap_begin(w);
            written = out_write(seen, n);
        } else if (seen[0] == ' ' || seen[0] == '\t') {
            written = put_space(w, seen[0]);
        } else {
            written = put_letter(w, seen, n, width_of(tern_utf8_next(seen, n).code));
        }
    }
    return written;
}
