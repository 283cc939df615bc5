/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_CHUNKS_H
#define TERN_SERVE_HTTP_CHUNKS_H

/*
 * A body in chunks, as RFC 9112 writes them and not otherwise: a size is hexadecimal digits and
 * nothing else, lines end with CR LF alone, and a chunk ends where its size says. Extensions and
 * trailers may be there; their bytes are looked at, counted and dropped.
 */

#include <stddef.h>
#include <stdint.h>

enum { HTTP_CHUNK_DIGITS = 15, HTTP_CHUNK_EXTRA = 4096 /* bytes of extensions and trailers */ };

typedef enum http_chunks_state {
    HTTP_CHUNKS_SIZE, /* the first digit of a size comes */
    HTTP_CHUNKS_DIGITS,
    HTTP_CHUNKS_EXTENSION,
    HTTP_CHUNKS_SIZE_END, /* the line feed of that line */
    HTTP_CHUNKS_DATA,
    HTTP_CHUNKS_DATA_RETURN,
    HTTP_CHUNKS_DATA_END,
    HTTP_CHUNKS_LINE, /* a trailer comes, or the end */
    HTTP_CHUNKS_NAME, /* of a trailer */
    HTTP_CHUNKS_VALUE,
    HTTP_CHUNKS_LINE_END,
    HTTP_CHUNKS_LAST, /* the last line feed */
    HTTP_CHUNKS_DONE,
    HTTP_CHUNKS_WRONG
} http_chunks_state;

/* {0} before the first byte. */
typedef struct http_chunks {
    http_chunks_state state;
    uint64_t left; /* of a chunk */
    unsigned digits, extra;
} http_chunks;

/* Takes bytes of bytes[size], and says how many: all, those up to the end of a piece of the body,
 * which is then *body[*n] among them, up to the end of all, or up to a wrong one. */
size_t http_chunks_take(http_chunks *c, const char *bytes, size_t size, const char **body,
                        size_t *n);

#endif
