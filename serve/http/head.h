/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_HEAD_H
#define TERN_SERVE_HTTP_HEAD_H

/*
 * The head of a request: its first line and its fields, read strictly as RFC 9112 defines them. A
 * lenient reader repairs what is slightly wrong, the next reader repairs it differently, and then
 * they disagree about where a request ends. So nothing is repaired: lines end with CR LF alone,
 * lines are not folded, control bytes are refused, and only a name may stand before the colon.
 */

#include <stdbool.h>
#include <stddef.h>

typedef enum http_head_verdict {
    HTTP_HEAD_MORE,   /* no byte is wrong so far, but the head is not complete */
    HTTP_HEAD_WHOLE,  /* it is complete and valid */
    HTTP_HEAD_WRONG,  /* a byte or a line that HTTP does not allow */
    HTTP_HEAD_VERSION /* a version of HTTP other than 1.0 and 1.1 */
} http_head_verdict;

/* How far a head has been scanned; {0} before the first byte. */
typedef struct http_scan {
    size_t at;         /* bytes scanned */
    size_t line;       /* where the last line begins */
    unsigned lines;    /* complete lines, without an empty one before the first */
    bool skipped;      /* an empty line came first: RFC 9112, 2.2 */
    bool after_return; /* the last byte is a CR */
} http_scan;

/* Scans bytes[size], which begin with those that were scanned already. HTTP_HEAD_WHOLE: the head is
 * bytes[s->at]. The scan ends at the first wrong byte. */
http_head_verdict http_head_scan(http_scan *s, const char *bytes, size_t size);

typedef struct http_head {
    char *method;       /* a token */
    char *target;       /* visible ASCII: a path, a URL of http or https, or "*" with OPTIONS */
    bool old;           /* HTTP/1.0 */
    const char *fields; /* [fields_size] NAME 0 VALUE 0, one after the other */
    size_t fields_size;
} http_head;

/* Parses bytes[size], for which http_head_scan has returned HTTP_HEAD_WHOLE. Changes the bytes;
 * *out points into them. Returns HTTP_HEAD_WHOLE, or what is wrong. */
http_head_verdict http_head_read(char *bytes, size_t size, http_head *out);

/* Returns the next field; *at is NULL before the first one. False: there are no more. Values have
 * no blanks at their ends. */
bool http_head_next(const http_head *h, const char **at, const char **name, const char **value);

/* Returns the value of the first field with a name, in any case; NULL: there is none. */
const char *http_head_find(const http_head *h, const char *name);

/* True if a text is a token, as the names of fields and methods are. */
bool http_is_token(const char *text);

/* True if a byte may stand in a token; the second: in the value of a field. */
bool http_is_token_byte(unsigned char c);
bool http_is_value_byte(unsigned char c);

#endif
