/* SPDX-License-Identifier: Apache-2.0 */
/* The page at / and its parts, from the table in the program. They tell nothing about the model or
 * its clients, so they need no key. What they ask the server for needs one. */

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "serve/page_files.h"
#include "serve/server_internal.h"

/* The page may run its own scripts and ask its own server, and nothing else, so that text of a
 * model never becomes a script, a style, an image or a frame. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

_Static_assert(sizeof policy <= HTTP_VALUE_BYTES, "a header line holds the policy");

/* True if an item of an Accept line, item[n], is refused by "q=0". */
static bool is_refused(const char *item, size_t n) {
    for (size_t i = 0; i + 2 < n; i++)
        if (strncasecmp(item + i, "q=0", 3) == 0)
            return strspn(item + i + 3, ".0") == strcspn(item + i + 3, ",; \t");
    return false;
}

bool page_is_wanted(const http_exchange *x) {
    static const char html[] = "text/html";
    const char *at = http_request_header(x, "Accept");
    while (at != NULL && *at != '\0') {
        at += strspn(at, ", \t");
        const size_t n = strcspn(at, ",");
        if (strncasecmp(at, html, sizeof html - 1) == 0 &&
            strchr(",; \t", at[sizeof html - 1]) != NULL)
            return !is_refused(at, n);
        at += n;
    }
    return false;
}

/* True if the browser has this version of the file already. */
static bool has_it(const http_exchange *x, const page_file *f) {
    const char *tags = http_request_header(x, "If-None-Match");
    return tags != NULL && (strstr(tags, f->tag) != NULL || strcmp(tags, "*") == 0);
}

static void reply_with_file(http_exchange *x, const page_file *f) {
    http_reply_header(x, "Content-Security-Policy", policy);
    http_reply_header(x, "X-Content-Type-Options", "nosniff");
    http_reply_header(x, "Referrer-Policy", "no-referrer");
    http_reply_header(x, "Cross-Origin-Opener-Policy", "same-origin");
    http_reply_header(x, "Cross-Origin-Resource-Policy", "same-origin");
    http_reply_header(x, "Cache-Control", "no-cache"); /* browsers ask again, with the tag */
    http_reply_header(x, "ETag", f->tag);
    http_reply_header(x, "Vary", "Accept");
    if (has_it(x, f)) {
        http_reply(x, 304, f->type, NULL, 0);
        return;
    }
    char *bytes = malloc(f->size);
    if (bytes != NULL)
        memcpy(bytes, f->bytes, f->size);
    http_reply(x, 200, f->type, bytes, f->size);
}

static const page_file *find(const char *name) {
    for (size_t i = 0; i < n_page_files; i++)
        if (strcmp(page_files[i].name, name) == 0)
            return &page_files[i];
    return NULL;
}

void page_whole(http_exchange *x) {
    reply_with_file(x, find("page.html"));
}

void page_part(server *s, http_exchange *x) {
    const char *name = strstr(http_path(x), "/page/") + strlen("/page/");
    const page_file *f = find(name);
    refusal r;
    (void)s;
    if (f != NULL && strcmp(name, "page.html") != 0) { /* the page itself is at / */
        reply_with_file(x, f);
        return;
    }
    (void)refuse(&r, 404, NULL, "the page has no part %.100s", name);
    refusal_reply(&r, x);
}
