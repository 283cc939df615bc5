/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/framing.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/authority.h"
#include "serve/http/head.h"

/* Reads a length of digits and nothing else, at most 18 of them. */
static bool read_length(const char *value, uint64_t *length) {
    const size_t n = strspn(value, "0123456789");
    const bool sound = n > 0 && n <= 18 && value[n] == '\0';
    *length = sound ? strtoull(value, NULL, 10) : 0;
    return sound;
}

void http_framing_note(http_framing *f, const char *name, const char *value) {
    value = value != NULL ? value : "";
    f->unsound = f->unsound || !http_is_token(name);
    if (strcasecmp(name, "Content-Length") == 0) {
        f->lengths++;
        f->unsound = !read_length(value, &f->length) || f->unsound;
    } else if (strcasecmp(name, "Transfer-Encoding") == 0) {
        f->codings++;
        f->unsound = f->unsound || strcasecmp(value, "chunked") != 0;
    } else if (strcasecmp(name, "Host") == 0) {
        tern_authority host;
        f->hosts++;
        f->stranger = f->stranger || !tern_authority_read(value, strlen(value), &host);
    } else if (strcasecmp(name, "Origin") == 0) {
        f->origins++;
    }
}

bool http_framing_is_sound(const http_framing *f, bool old) {
    return !f->unsound && f->lengths + f->codings <= 1 && !(old && f->codings > 0);
}

bool http_framing_has_one_host(const http_framing *f, bool old) {
    return f->hosts <= 1 && (old || f->hosts == 1) && f->origins <= 1 && !f->stranger;
}
