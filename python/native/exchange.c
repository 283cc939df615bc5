/* SPDX-License-Identifier: Apache-2.0 */
#include "python/native/exchange.h"

#include <stdlib.h>

/* One thread at a time uses an exchange, as it uses the answer that has it. */
struct http_exchange {
    unsigned owners, status;
    text out;
};

http_exchange *exchange_new(void) {
    http_exchange *x = calloc(1, sizeof *x);
    if (x != NULL)
        x->owners = 1;
    return x;
}

text exchange_take(http_exchange *x) {
    const text out = x->out;
    x->out = (text){0};
    return out;
}

void http_keep(http_exchange *x) {
    x->owners++;
}

void http_release(http_exchange *x) {
    if (--x->owners > 0)
        return;
    text_free(&x->out);
    free(x);
}

/* Errors are written in OpenAI's form for every path but those of other interfaces. */
const char *http_path(const http_exchange *x) {
    (void)x;
    return "";
}

unsigned http_status(http_exchange *x) {
    return x->status;
}

void http_reply_header(http_exchange *x, const char *name, const char *value) {
    (void)x;
    (void)name;
    (void)value;
}

void http_reply(http_exchange *x, unsigned status, const char *type, char *bytes, size_t size) {
    (void)type;
    x->status = status;
    x->out.failed = x->out.failed || (bytes == NULL && size > 0);
    if (bytes != NULL)
        text_add(&x->out, bytes, size);
    free(bytes);
}

void http_stream_open(http_exchange *x, const char *type) {
    (void)type;
    x->status = 200;
}

bool http_stream_write(http_exchange *x, const char *bytes, size_t size) {
    text_add(&x->out, bytes, size);
    return !x->out.failed;
}

void http_stream_end(http_exchange *x) {
    (void)x;
}

void http_stream_cut(http_exchange *x) {
    x->out.failed = true;
}
