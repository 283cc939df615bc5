/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_CHUNKS_H
#define TERN_SERVE_HTTP_CHUNKS_H

/*
 * Reads a body in chunks, strictly as RFC 9112 defines them: a size is hexadecimal digits and
 * nothing else, lines end with CR LF alone, and a chunk ends where its size says. Extensions and
 * trailers are allowed; their bytes are checked, counted and dropped.
 */

#include <stddef.h>
#include <stdint.h>

enum { HTTP_CHUNK_DIGITS = 15, HTTP_CHUNK_EXTRA = 4096 /* bytes of extensions and trailers */ };

typedef enum http_chunks_state {
    HTTP_CHUNKS_SIZE, /* the first digit of a size is next */
    HTTP_CHUNKS_DIGITS,
    HTTP_CHUNKS_EXTENSION,
    HTTP_CHUNKS_SIZE_END, /* the line feed after the size is next */
    HTTP_CHUNKS_DATA,
    HTTP_CHUNKS_DATA_RETURN,
    HTTP_CHUNKS_DATA_END,
    HTTP_CHUNKS_LINE, /* a trailer is next, or the end */
    HTTP_CHUNKS_NAME, /* in the name of a trailer */
    HTTP_CHUNKS_VALUE,
    HTTP_CHUNKS_LINE_END,
    HTTP_CHUNKS_LAST, /* the last line feed is next */
    HTTP_CHUNKS_DONE,
    HTTP_CHUNKS_WRONG
} http_chunks_state;

/* {0} before the first byte. */
typedef struct http_chunks {
    http_chunks_state state;
    uint64_t left; /* bytes of the chunk that are still to come */
    unsigned digits, extra;
} http_chunks;

/* Reads from bytes[size] and returns how many bytes it took. It stops at the end of bytes, after a
 * piece of the body (then *body[*n] is that piece; otherwise *body is NULL), after the end of the
 * whole body, or after a wrong byte. */
size_t http_chunks_take(http_chunks *c, const char *bytes, size_t size, const char **body,
                        size_t *n);

#endif
