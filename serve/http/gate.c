/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/gate.h"

#include <string.h>
#include <strings.h>

#include "base/authority.h"

/* ---- the list -------------------------------------------------------------------------------- */

/* Returns the word at *at, sets its *size and moves *at past its comma; NULL at the end. */
static const char *next_word(const char **at, size_t *size) {
    const char *word = *at;
    if (word == NULL || *word == '\0')
        return NULL;
    *size = strcspn(word, ",");
    *at = word[*size] == ',' ? word + *size + 1 : NULL;
    return word;
}

static bool is_any(const char *word, size_t size) {
    return size == 1 && word[0] == '*';
}

bool gate_list_is_sound(const char *allowed) {
    size_t size;
    tern_authority read;
    if (allowed[0] == '\0' || allowed[strlen(allowed) - 1] == ',')
        return false;
    for (const char *word; (word = next_word(&allowed, &size)) != NULL;)
        if (!is_any(word, size) && !tern_authority_read(word, size, &read))
            return false;
    return true;
}

/* True if the list has the host; a word without a port matches every port. "*" matches every host
 * if `stars` is set. */
static bool has(const gate *g, const tern_authority *host, bool stars) {
    const char *at = g->allowed;
    size_t size;
    tern_authority read;
    for (const char *word; (word = next_word(&at, &size)) != NULL;) {
        if (stars && is_any(word, size))
            return true;
        if (tern_authority_read(word, size, &read) && tern_authority_same_host(&read, host) &&
            (read.port == TERN_NO_PORT || read.port == host->port))
            return true;
    }
    return false;
}

/* ---- hosts ----------------------------------------------------------------------------------- */

static bool ends_with(const tern_authority *a, const char *end) {
    const size_t n = strlen(end), size = a->size - (a->host[a->size - 1] == '.');
    return size > n && strncasecmp(a->host + size - n, end, n) == 0;
}

/* True for a literal IP address: it is not looked up, so nobody can make it lead elsewhere. */
static bool is_address(const tern_authority *a) {
    size_t n = 0;
    while (n < a->size && (a->host[n] == '.' || (a->host[n] >= '0' && a->host[n] <= '9')))
        n++;
    return a->host[0] == '[' || n == a->size;
}

/* True for names that nobody can register in the public DNS. */
static bool is_private_name(const tern_authority *a) {
    return memchr(a->host, '.', a->size) == NULL || ends_with(a, ".local") ||
           ends_with(a, ".internal") || ends_with(a, ".home.arpa");
}

bool gate_takes_host(const gate *g, const char *host) {
    tern_origin own;
    tern_authority named;
    if (host == NULL || strncmp(g->listening, "unix:", 5) == 0)
        return true;
    if (!tern_authority_read(host, strlen(host), &named))
        return false;
    if (tern_authority_is_loopback(&named) || has(g, &named, true))
        return true;
    if (!tern_origin_read(g->listening, &own))
        return false;
    if (tern_authority_same_host(&own.at, &named))
        return true;
    return !tern_authority_is_loopback(&own.at) && (is_address(&named) || is_private_name(&named));
}

/* ---- origins --------------------------------------------------------------------------------- */

bool gate_takes_origin(const gate *g, const char *host, const char *origin) {
    tern_origin page;
    if (origin == NULL)
        return true;
    if (g->origin != NULL && (strcmp(g->origin, "*") == 0 || strcmp(g->origin, origin) == 0))
        return true;
    if (!tern_origin_read(origin, &page) || page.size != strlen(origin))
        return false;
    return (g->origin != NULL && tern_origin_is_same(g->origin, origin)) ||
           (host != NULL && tern_origin_is_of(&page, host)) || has(g, &page.at, false);
}
