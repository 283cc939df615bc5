/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of a request's header, a line each, as `name:value`, which say where its body ends. A
 * second reading, written the other way round, must find the same header sound; and a header that
 * is not sound does not become so by a field that follows.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "serve/http_framing.h"

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

/* The lines one after the other. */
static void read_header(char *text, const char *version) {
    http_framing f = {0};
    bool sound = true, said = false;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *colon = strchr(line, ':');
        char *value = colon ? colon + 1 : NULL;
        if (colon)
            *colon = '\0';
        sound = sound && field_is_sound(line, value ? value : "") && !(said && says_length(line));
        said = said || says_length(line);
        http_framing_note(&f, line, value);
        require(http_framing_is_sound(&f, "HTTP/1.1") == sound);
        require(f.length < 1000000000000000000 && (f.length == 0 || f.lengths > 0));
    }
    require(!http_framing_is_sound(&f, version) || (sound && f.codings == 0));
    if (sound && f.lengths == 1)
        require(http_framing_is_sound(&f, version));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = calloc(size + 1, 1);
    if (text == NULL)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    read_header(text, "HTTP/1.0");
    free(text);
    return 0;
}
