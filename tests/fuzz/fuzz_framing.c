/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of a request's header, one per line as `name:value`, which say where its body ends and
 * which host it is for. A second reader, written in the opposite way, must agree that the header is
 * sound. An unsound header does not become sound through a later field.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "serve/http/framing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition)
        abort();
}

static bool all_of(const char *text, const char *set) {
    return text[0] != '\0' && text[strspn(text, set)] == '\0';
}

static bool field_is_sound(const char *name, const char *value) {
    static const char digits[] = "0123456789";
    static const char marks[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789!#$%&'*+-.^_`|~";
    if (!all_of(name, marks))
        return false;
    if (strcasecmp(name, "content-length") == 0)
        return all_of(value, digits) && strlen(value) < 19;
    return strcasecmp(name, "transfer-encoding") != 0 || strcasecmp(value, "chunked") == 0;
}

static bool says_length(const char *name) {
    return strcasecmp(name, "content-length") == 0 || strcasecmp(name, "transfer-encoding") == 0;
}

/* Reads HOST or HOST:PORT from its end. */
static bool host_is_sound(const char *value) {
    static const char name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
    char host[256];
    if (strlen(value) >= sizeof host)
        return false;
    (void)strcpy(host, value);
    char *port = strrchr(host, ':');
    if (port != NULL && (host[0] != '[' || port[-1] == ']')) {
        *port++ = '\0';
        if (!all_of(port, "0123456789") || strlen(port) > 5 || atol(port) > 65535)
            return false;
    }
    const size_t n = strlen(host);
    if (host[0] != '[')
        return all_of(host, name);
    host[n - 1] = host[n - 1] == ']' ? '\0' : '!';
    return n > 3 && all_of(host + 1, "0123456789abcdefABCDEF:.");
}

/* Reads the lines one after the other, in both ways. */
static void read_header(char *text) {
    http_framing f = {0};
    bool sound = true, said = false, one = true;
    unsigned hosts = 0, origins = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *colon = strchr(line, ':');
        char *value = colon ? colon + 1 : NULL;
        if (colon)
            *colon = '\0';
        sound = sound && field_is_sound(line, value ? value : "") && !(said && says_length(line));
        said = said || says_length(line);
        hosts += strcasecmp(line, "host") == 0;
        origins += strcasecmp(line, "origin") == 0;
        one = one && hosts < 2 && origins < 2 &&
              (strcasecmp(line, "host") != 0 || host_is_sound(value ? value : ""));
        http_framing_note(&f, line, value);
        require(http_framing_has_one_host(&f, true) == one);
        require(http_framing_has_one_host(&f, false) == (one && hosts == 1));
        require(http_framing_is_sound(&f, false) == sound);
        require(f.length < 1000000000000000000 && (f.length == 0 || f.lengths > 0));
    }
    require(http_framing_is_sound(&f, true) == (sound && f.codings == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = calloc(size + 1, 1);
    if (text == NULL)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    read_header(text);
    free(text);
    return 0;
}
