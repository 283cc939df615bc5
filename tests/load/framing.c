/* SPDX-License-Identifier: Apache-2.0 */
/* Reads replies without trusting them: anything that is not framed exactly is wrong. */

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tests/load/load.h"

static bool begins(const char *line, const char *words) {
    return strncasecmp(line, words, strlen(words)) == 0;
}

static void read_line(framing *f, const char *line) {
    if (begins(line, "Content-Length: ")) {
        char *end;
        f->left = strtoull(line + 16, &end, 10);
        f->state = f->state == FRAMING_HEAD && *end == '\r' ? FRAMING_LENGTH : FRAMING_WRONG;
    } else if (begins(line, "Transfer-Encoding: ")) {
        const bool chunked = begins(line + 19, "chunked\r");
        f->state = f->state == FRAMING_HEAD && chunked ? FRAMING_CHUNK_SIZE : FRAMING_WRONG;
    } else if (begins(line, "Connection: close\r")) {
        f->closes = true;
    } else if (begins(line, "Retry-After: ")) {
        f->retry = true;
    }
}

/* Takes the complete header. That of 100 Continue is passed over: another one follows. */
static void read_head(framing *f) {
    const char *head = f->head.data;
    f->status = begins(head, "HTTP/1.1 ") ? (unsigned)strtoul(head + 9, NULL, 10) : 0;
    for (const char *at = strstr(head, "\r\n"); at != NULL; at = strstr(at + 2, "\r\n"))
        read_line(f, at + 2);
    if (f->status == 100 && f->state == FRAMING_HEAD)
        return;
    if (f->status < 200 || f->status > 599 || f->state == FRAMING_HEAD)
        f->state = FRAMING_WRONG;
    else if (f->state == FRAMING_LENGTH && f->left == 0)
        f->state = FRAMING_DONE;
}

/* Takes the line with a chunk's size, in hexadecimal. */
static void read_size(framing *f) {
    const size_t digits = strspn(f->head.data, "0123456789abcdefABCDEF");
    if (digits == 0 || digits > 8 || strcmp(f->head.data + digits, "\r\n") != 0) {
        f->state = FRAMING_WRONG;
        return;
    }
    f->left = strtoull(f->head.data, NULL, 16);
    f->state = f->left > 0 ? FRAMING_CHUNK : FRAMING_LAST_END;
}

/* Takes one byte outside a body. */
static void take_byte(framing *f, char byte) {
    const char *end = f->state == FRAMING_HEAD ? "\r\n\r\n" : "\r\n";
    const size_t n = strlen(end);
    bytes_add(&f->head, &byte, 1);
    if (f->head.size < n || strcmp(f->head.data + f->head.size - n, end) != 0)
        return;
    if (f->state == FRAMING_HEAD)
        read_head(f);
    else if (f->state == FRAMING_CHUNK_SIZE)
        read_size(f);
    else if (f->head.size != n)
        f->state = FRAMING_WRONG;
    else
        f->state = f->state == FRAMING_LAST_END ? FRAMING_DONE : FRAMING_CHUNK_SIZE;
    bytes_drop(&f->head, f->head.size);
}

size_t framing_take(framing *f, const char *data, size_t size) {
    size_t i = 0;
    while (i < size && f->state != FRAMING_DONE && f->state != FRAMING_WRONG) {
        if (f->state != FRAMING_LENGTH && f->state != FRAMING_CHUNK) {
            take_byte(f, data[i++]);
            continue;
        }
        const size_t n = f->left < size - i ? f->left : size - i;
        bytes_add(&f->body, data + i, n);
        i += n;
        f->left -= n;
        if (f->left == 0)
            f->state = f->state == FRAMING_LENGTH ? FRAMING_DONE : FRAMING_CHUNK_END;
    }
    return i;
}

void framing_clear(framing *f) {
    bytes_drop(&f->head, f->head.size);
    bytes_drop(&f->body, f->body.size);
    *f = (framing){.head = f->head, .body = f->body};
}

void framing_free(framing *f) {
    bytes_free(&f->head);
    bytes_free(&f->body);
}
