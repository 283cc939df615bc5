/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CHAT_LINE_H
#define TERN_TOOLS_CHAT_LINE_H

/*
 * One line of input: from a terminal with editing and history (libedit, where tern was built with
 * it), else as it comes. SIGINT must be caught without SA_RESTART (tools/cli/interrupt.h).
 */

#include <stdbool.h>
#include <stddef.h>

typedef struct line_reader line_reader;

typedef enum line_kind {
    LINE_READ,
    LINE_END,       /* of the input; on an empty line of a terminal Ctrl-D */
    LINE_CANCELLED, /* Ctrl-C */
    LINE_FAILED     /* read error, or a line too long; after a complaint */
} line_kind;

enum { LINE_MAX_BYTES = 1 << 24 }; /* more is a mistake, not a line */

/*
 * terminal: whether a person types. history: a file that lines are remembered in from one program
 * to the next, NULL for none; a missing one is none yet. NULL without memory.
 */
line_reader *line_reader_open(bool terminal, const char *history);

/* The next line, without its line end, valid until the next call; prompt is shown on terminals. */
line_kind line_reader_next(line_reader *r, const char *prompt, const char **line, size_t *size);

/* Saves the history (private to its owner) and frees *r. NULL and *NULL are fine. */
void line_reader_close(line_reader **r);

/* Where the history of chats lies: tern/history in $XDG_STATE_HOME, else in ~/.local/state. False
 * when there is no such folder and none can be made. */
bool history_path(char *path, size_t size);

#endif
