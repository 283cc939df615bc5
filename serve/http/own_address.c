/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/own_address.h"

#include <string.h>

#include "base/authority.h"

bool own_address_is_sound(const char *host) {
    tern_authority read;
    return host != NULL && tern_authority_read(host, strlen(host), &read);
}

const char *own_address_socket(const own_address *a) {
    static const char kind[] = "unix:";
    const size_t n = sizeof kind - 1;
    return strncmp(a->listening, kind, n) == 0 ? a->listening + n : NULL;
}

void own_address_url(const own_address *a, const char *path, text *t) {
    const char *host = strstr(a->listening, "://");
    if (own_address_socket(a) != NULL)
        text_print(t, "http://localhost");
    else if (host != NULL && own_address_is_sound(a->host))
        text_print(t, "%.*s://%s", (int)(host - a->listening), a->listening, a->host);
    else
        text_print(t, "%s", a->listening);
    text_print(t, "%s%s", a->prefix != NULL ? a->prefix : "", path);
}

/* Adds a text quoted as one word of a shell. */
static void add_quoted(text *t, const char *word) {
    text_print(t, "'");
    for (const char *c = word; *c != '\0'; c++)
        text_print(t, *c == '\'' ? "'\\''" : "%c", *c);
    text_print(t, "'");
}

void own_address_curl(const own_address *a, const char *path, text *t) {
    text_print(t, "curl ");
    if (own_address_socket(a) != NULL) {
        text_print(t, "--unix-socket ");
        add_quoted(t, own_address_socket(a));
        text_print(t, " ");
    }
    text_print(t, "'"); /* some shells take the brackets of an IPv6 address for a pattern */
    own_address_url(a, path, t);
    text_print(t, "'");
}
