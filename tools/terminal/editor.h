/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_TERMINAL_EDITOR_H
#define TERN_TOOLS_TERMINAL_EDITOR_H

/* The libedit part of tools/terminal/line.h; without libedit nothing can be opened. */

#include "tools/terminal/line.h"

typedef struct editor editor;

/* Opens an editor for the terminal on standard input; NULL: editing is not available. */
editor *editor_open(const char *history);
line_kind editor_read(editor *e, const char *prompt, const char **line, size_t *size);
void editor_close(editor **e);

#endif
