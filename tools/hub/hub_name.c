/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/hub/hub_name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { PART_DIGITS = 5, PART_BYTES = 20 /* "-00001-of-00003.gguf" */, LONGEST_PART = 96 };

static bool is_plain(char c) {
    return isalnum((unsigned char)c) != 0 || c == '-' || c == '_' || c == '.';
}

/* An owner or a name: begins with a letter or digit, and has no two consecutive dots or dashes. */
static bool is_word(const char *word, size_t size) {
    if (size == 0 || size > LONGEST_PART || isalnum((unsigned char)word[0]) == 0)
        return false;
    for (size_t i = 0; i < size; i++) {
        const bool twice = i > 0 && word[i] == word[i - 1] && (word[i] == '.' || word[i] == '-');
        if (!is_plain(word[i]) || twice)
            return false;
    }
    return true;
}

/* True for a path below a folder, of at most `capacity` bytes with the terminator. */
static bool is_below(const char *path, size_t size, size_t capacity) {
    if (size == 0 || size >= capacity || memchr(path, '\\', size) != NULL)
        return false;
    for (size_t begin = 0; begin <= size;) {
        const char *slash = memchr(path + begin, '/', size - begin);
        const size_t length = slash != NULL ? (size_t)(slash - path) - begin : size - begin;
        const bool dots = length <= 2 && strspn(path + begin, ".") >= length;
        if (length == 0 || dots)
            return false;
        begin += length + 1;
    }
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)path[i] < ' ' || path[i] == 0x7f)
            return false;
    return true;
}

bool hub_file_is_sound(const char *file) {
    return is_below(file, strlen(file), HUB_FILE_BYTES);
}

static bool read_revision(const char *text, size_t size, hub_name *out) {
    for (size_t i = 0; i < size; i++)
        if (!is_plain(text[i]) && text[i] != '/')
            return false;
    if (!is_below(text, size, sizeof out->revision))
        return false;
    (void)snprintf(out->revision, sizeof out->revision, "%.*s", (int)size, text);
    return true;
}

bool hub_name_read(const char *text, hub_name *out) {
    *out = (hub_name){.revision = "main"};
    const char *slash = strchr(text, '/');
    const size_t end = strcspn(text, "@:");
    if (slash == NULL || (size_t)(slash - text) >= end || !is_word(text, (size_t)(slash - text)) ||
        !is_word(slash + 1, end - (size_t)(slash + 1 - text)))
        return false;
    (void)snprintf(out->repo, sizeof out->repo, "%.*s", (int)end, text);
    const char *rest = text + end;
    if (*rest == '@') {
        const size_t size = strcspn(rest + 1, ":");
        if (!read_revision(rest + 1, size, out))
            return false;
        rest += 1 + size;
    }
    if (*rest == '\0')
        return true;
    if (!hub_file_is_sound(rest + 1))
        return false;
    (void)snprintf(out->file, sizeof out->file, "%s", rest + 1);
    return true;
}

bool hub_is_commit(const char *text) {
    return strspn(text, "0123456789abcdef") == 40 && text[40] == '\0';
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Reads from a file's name which part of how many it is; false if the name does not say. */
static bool is_part(const char *file, unsigned *part, unsigned *parts) {
    const size_t n = strlen(file);
    return n > PART_BYTES && sscanf(file + n - PART_BYTES, "-%5u-of-%5u.gguf", part, parts) == 2 &&
           *part >= 1 && *part <= *parts;
}

bool hub_is_model(const char *file) {
    const size_t n = strlen(file);
    unsigned part = 1, parts;
    return n > 5 && strcasecmp(file + n - 5, ".gguf") == 0 &&
           (!is_part(file, &part, &parts) || part == 1);
}

unsigned hub_parts(const char *file) {
    unsigned part, parts;
    return is_part(file, &part, &parts) ? parts : 1;
}

void hub_part(const char *file, unsigned i, char out[HUB_FILE_BYTES]) {
    (void)snprintf(out, HUB_FILE_BYTES, "%s", file);
    if (hub_parts(file) > 1) {
        char digits[PART_DIGITS + 1];
        (void)snprintf(digits, sizeof digits, "%05u", i % 100000);
        memcpy(out + strlen(out) - PART_BYTES + 1, digits, PART_DIGITS);
    }
}

static bool has_part(const char *file, const char *wanted) {
    const size_t size = strlen(wanted), n = strlen(file);
    for (size_t i = 0; i + size <= n; i++)
        if (strncasecmp(file + i, wanted, size) == 0)
            return true;
    return false;
}

size_t hub_choose(const char *const *files, size_t n, const char *wanted, size_t *found) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(files[i], wanted) == 0) {
            *found = i;
            return 1;
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (!hub_is_model(files[i]) || !has_part(files[i], wanted))
            continue;
        if (count++ == 0)
            *found = i;
    }
    return count;
}
