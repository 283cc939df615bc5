/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/chunks.h"

#include <stdbool.h>

#include "serve/http/head.h"

static int digit(unsigned char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    const int low = c | 0x20;
    return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

static http_chunks_state only(unsigned char c, char wanted, http_chunks_state next) {
    return c == (unsigned char)wanted ? next : HTTP_CHUNKS_WRONG;
}

static http_chunks_state read_size(http_chunks *c, unsigned char byte) {
    const int value = digit(byte);
    if (value >= 0 && c->digits < HTTP_CHUNK_DIGITS) {
        c->left = c->left * 16 + (unsigned)value;
        c->digits++;
        return HTTP_CHUNKS_DIGITS;
    }
    if (value >= 0 || c->digits == 0)
        return HTTP_CHUNKS_WRONG;
    return byte == ';' ? HTTP_CHUNKS_EXTENSION : only(byte, '\r', HTTP_CHUNKS_SIZE_END);
}

static http_chunks_state begin_size(http_chunks *c, unsigned char byte) {
    c->left = 0;
    c->digits = 0;
    return read_size(c, byte);
}

/* Counts a byte of an extension or a trailer: all of them together have a limit. */
static http_chunks_state extra(http_chunks *c, bool fits, http_chunks_state next) {
    return fits && ++c->extra <= HTTP_CHUNK_EXTRA ? next : HTTP_CHUNKS_WRONG;
}

static http_chunks_state read_extension(http_chunks *c, unsigned char byte) {
    if (byte == '\r')
        return HTTP_CHUNKS_SIZE_END;
    return extra(c, byte < 128 && http_is_value_byte(byte), HTTP_CHUNKS_EXTENSION);
}

static http_chunks_state read_name(http_chunks *c, unsigned char byte) {
    if (byte == ':')
        return extra(c, true, HTTP_CHUNKS_VALUE);
    return extra(c, http_is_token_byte(byte), HTTP_CHUNKS_NAME);
}

static http_chunks_state read_trailer(http_chunks *c, unsigned char byte) {
    if (byte == '\r')
        return HTTP_CHUNKS_LAST;
    return extra(c, http_is_token_byte(byte), HTTP_CHUNKS_NAME);
}

static http_chunks_state read_value(http_chunks *c, unsigned char byte) {
    if (byte == '\r')
        return HTTP_CHUNKS_LINE_END;
    return extra(c, http_is_value_byte(byte), HTTP_CHUNKS_VALUE);
}

static http_chunks_state take_byte(http_chunks *c, unsigned char byte) {
    switch (c->state) {
    case HTTP_CHUNKS_SIZE:
        return begin_size(c, byte);
    case HTTP_CHUNKS_DIGITS:
        return read_size(c, byte);
    case HTTP_CHUNKS_EXTENSION:
        return read_extension(c, byte);
    case HTTP_CHUNKS_SIZE_END:
        return only(byte, '\n', c->left > 0 ? HTTP_CHUNKS_DATA : HTTP_CHUNKS_LINE);
    case HTTP_CHUNKS_DATA_RETURN:
        return only(byte, '\r', HTTP_CHUNKS_DATA_END);
    case HTTP_CHUNKS_DATA_END:
        return only(byte, '\n', HTTP_CHUNKS_SIZE);
    case HTTP_CHUNKS_LINE:
        return read_trailer(c, byte);
    case HTTP_CHUNKS_NAME:
        return read_name(c, byte);
    case HTTP_CHUNKS_VALUE:
        return read_value(c, byte);
    case HTTP_CHUNKS_LINE_END:
        return only(byte, '\n', HTTP_CHUNKS_LINE);
    case HTTP_CHUNKS_LAST:
        return only(byte, '\n', HTTP_CHUNKS_DONE);
    case HTTP_CHUNKS_DATA:
    case HTTP_CHUNKS_DONE:
    case HTTP_CHUNKS_WRONG:
        break;
    }
    return HTTP_CHUNKS_WRONG;
}

size_t http_chunks_take(http_chunks *c, const char *bytes, size_t size, const char **body,
                        size_t *n) {
    size_t i = 0;
    *body = NULL;
    *n = 0;
    while (i < size && c->state != HTTP_CHUNKS_DATA && c->state != HTTP_CHUNKS_DONE &&
           c->state != HTTP_CHUNKS_WRONG)
        c->state = take_byte(c, (unsigned char)bytes[i++]);
    if (c->state != HTTP_CHUNKS_DATA || i == size)
        return i;
    *body = bytes + i;
    *n = c->left < size - i ? (size_t)c->left : size - i;
    c->left -= *n;
    if (c->left == 0)
        c->state = HTTP_CHUNKS_DATA_RETURN;
    return i + *n;
}
