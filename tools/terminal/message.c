/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a message of one or several lines: "\" at a line's end continues it, """ lines surround a
 * block. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/output.h"
#include "tools/terminal/chat.h"

static const char fence[] = "\"\"\"";

static bool append(chat *c, const char *bytes, size_t size) {
    if (size > LINE_MAX_BYTES - c->message_size) {
        complain("a message of more than %d bytes", LINE_MAX_BYTES);
        return false;
    }
    if (c->message_capacity - c->message_size <= size) {
        const size_t capacity = 2 * c->message_capacity + size + 256;
        char *grown = realloc(c->message, capacity);
        if (grown == NULL) {
            complain("no memory for a message of %zu bytes", capacity);
            return false;
        }
        c->message = grown;
        c->message_capacity = capacity;
    }
    if (size > 0)
        memcpy(c->message + c->message_size, bytes, size);
    c->message_size += size;
    c->message[c->message_size] = '\0';
    return true;
}

static bool is_fence(const char *line, size_t size) {
    return size == sizeof fence - 1 && memcmp(line, fence, size) == 0;
}

/* The end of input ends a message that has begun; what follows begins in a line of its own. */
static line_kind end_message(const chat *c) {
    if (c->terminal)
        (void)fputc('\n', stderr);
    return LINE_READ;
}

/* Reads the lines between two fences. The end of input also ends the block. */
static line_kind read_block(chat *c) {
    for (bool first = true;; first = false) {
        const char *line;
        size_t size;
        const line_kind kind = line_reader_next(c->lines, ". ", &line, &size);
        if (kind == LINE_END)
            return end_message(c);
        if (kind == LINE_READ && is_fence(line, size))
            return LINE_READ;
        if (kind != LINE_READ)
            return kind;
        if ((!first && !append(c, "\n", 1)) || !append(c, line, size))
            return LINE_FAILED;
    }
}

line_kind chat_read_message(chat *c) {
    c->message_size = 0;
    const char *mark = "> ";
    for (;;) {
        const char *line;
        size_t size;
        const line_kind kind = line_reader_next(c->lines, mark, &line, &size);
        if (kind != LINE_READ)
            return kind == LINE_END && c->message_size > 0 ? end_message(c) : kind;
        if (c->message_size == 0 && is_fence(line, size))
            return append(c, "", 0) ? read_block(c) : LINE_FAILED;
        const bool more = size > 0 && line[size - 1] == '\\';
        if (!append(c, line, size - more) || (more && !append(c, "\n", 1)))
            return LINE_FAILED;
        if (!more)
            return LINE_READ;
        mark = ". ";
    }
}
