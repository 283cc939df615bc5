/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_HEAD_H
#define TERN_SERVE_HTTP_HEAD_H

/*
 * The head of a request: its first line and its fields, as RFC 9112 writes them and not otherwise.
 * A lenient reader mends what is not quite right, the next one mends it in another way, and then
 * they disagree about where a request ends. So nothing is mended: lines end with CR LF alone, no
 * line is folded, no control byte stands anywhere, nothing stands before the colon but a name.
 */

#include <stdbool.h>
#include <stddef.h>

typedef enum http_head_verdict {
    HTTP_HEAD_MORE,   /* no byte is wrong so far, and the end has not come */
    HTTP_HEAD_WHOLE,  /* it is sound */
    HTTP_HEAD_WRONG,  /* a byte or a line that no request has */
    HTTP_HEAD_VERSION /* a request of another version of HTTP */
} http_head_verdict;

/* How far the bytes of a head were looked at; {0} before the first one. */
typedef struct http_scan {
    size_t at;         /* bytes that were looked at */
    size_t line;       /* where the last line begins */
    unsigned lines;    /* that are whole, without an empty one before the first */
    bool skipped;      /* there was such an empty line: RFC 9112, 2.2 */
    bool after_return; /* the last byte is a CR */
} http_scan;

/* Looks at bytes[size], which begin with those that were looked at already. HTTP_HEAD_WHOLE: the
 * head is bytes[s->at]. Of a wrong byte nothing behind it is looked at. */
http_head_verdict http_head_scan(http_scan *s, const char *bytes, size_t size);

typedef struct http_head {
    char *method;       /* a token */
    char *target;       /* visible ASCII: a path, the URL of http or https, or "*" of OPTIONS */
    bool old;           /* HTTP/1.0 */
    const char *fields; /* [fields_size] NAME 0 VALUE 0, one after the other */
    size_t fields_size;
} http_head;

/* Reads bytes[size], a head that http_head_scan has found whole; *out points into them, and they
 * are changed. HTTP_HEAD_WHOLE, or what is wrong. */
http_head_verdict http_head_read(char *bytes, size_t size, http_head *out);

/* Goes to the next field; *at is NULL before the first one. False: there is none. A value has no
 * blanks at its ends. */
bool http_head_next(const http_head *h, const char **at, const char **name, const char **value);

/* The value of the first field of a name, in letters of any case; NULL: there is none. */
const char *http_head_find(const http_head *h, const char *name);

/* True if a text is a token: what names fields and methods. */
bool http_is_token(const char *text);

/* True if a byte may stand in a token, and in the value of a field. */
bool http_is_token_byte(unsigned char c);
bool http_is_value_byte(unsigned char c);

#endif
