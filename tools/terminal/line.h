/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_TERMINAL_LINE_H
#define TERN_TOOLS_TERMINAL_LINE_H

/*
 * Reads a line of input: from a terminal with editing and history, if tern was built with libedit,
 * otherwise unedited. SIGINT must be caught without SA_RESTART (tools/cli/interrupt.h).
 */

#include <stdbool.h>
#include <stddef.h>

typedef struct line_reader line_reader;

typedef enum line_kind {
    LINE_READ,
    LINE_END,       /* the end of input, or Ctrl-D on an empty line of a terminal */
    LINE_CANCELLED, /* Ctrl-C */
    LINE_FAILED     /* read error, or a line too long; after a complaint */
} line_kind;

enum { LINE_MAX_BYTES = 1 << 24 }; /* longer lines are mistakes */

/*
 * terminal: a person types. history: a file that keeps lines between runs of the program, or NULL;
 * the file may not exist yet. NULL without memory.
 */
line_reader *line_reader_open(bool terminal, const char *history);

/* The next line without its line end, valid until the next call; terminals show the prompt. */
line_kind line_reader_next(line_reader *r, const char *prompt, const char **line, size_t *size);

/* Saves the history (private to its owner) and frees *r. NULL and *NULL are fine. */
void line_reader_close(line_reader **r);

/* The file for the history of chats: tern/history in $XDG_STATE_HOME, or in ~/.local/state. False
 * if there is no such folder and it cannot be made. */
bool history_path(char *path, size_t size);

#endif
