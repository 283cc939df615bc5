/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/hub/hub_name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/word_list.h"

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

static bool read_name(const char *text, hub_name *out) {
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

/* ---- addresses ------------------------------------------------------------------------------- */

/* Returns what follows the Hub's host in an address; NULL: the text is not one. */
static const char *path_of(const char *text) {
    static const char *const schemes[] = {"https://", "http://"};
    static const char *const hosts[] = {"huggingface.co/", "www.huggingface.co/", "hf.co/"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strncasecmp(text, schemes[i], strlen(schemes[i])) == 0) {
            text += strlen(schemes[i]);
            break;
        }
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        if (strncasecmp(text, hosts[i], strlen(hosts[i])) == 0)
            return text + strlen(hosts[i]);
    return NULL;
}

/* The bytes up to the next slash or the end. */
static int part_size(const char *path) {
    return (int)strcspn(path, "/");
}

/* Reads what follows OWNER/NAME/ in an address: tree, blob, resolve or raw, REVISION, and a file.
 */
static bool read_page(const char *repo, const char *page, hub_name *out) {
    static const char *const kinds[] = {"tree/", "blob/", "resolve/", "raw/"};
    char whole[HUB_WHOLE_BYTES];
    size_t i = 0;
    while (i < sizeof kinds / sizeof *kinds && strncmp(page, kinds[i], strlen(kinds[i])) != 0)
        i++;
    if (i == sizeof kinds / sizeof *kinds)
        return page[0] == '\0' && read_name(repo, out);
    const char *revision = page + strlen(kinds[i]);
    const char *file = revision + part_size(revision);
    file += *file == '/';
    const int n = snprintf(whole, sizeof whole, "%s@%.*s%s%s", repo, part_size(revision), revision,
                           *file != '\0' ? ":" : "", file);
    return n > 0 && (size_t)n < sizeof whole && read_name(whole, out);
}

static bool read_address(const char *path, hub_name *out) {
    char plain[HUB_WHOLE_BYTES], repo[HUB_REPO_BYTES];
    const size_t size = strcspn(path, "?#");
    if (size == 0 || size >= sizeof plain)
        return false;
    memcpy(plain, path, size);
    plain[size] = '\0';
    if (plain[size - 1] == '/')
        plain[size - 1] = '\0';
    const size_t owner = strcspn(plain, "/"), name = plain[owner] == '/' ? owner + 1 : owner;
    const size_t end = name + strcspn(plain + name, "/");
    if (memchr(plain, ':', end) != NULL || plain[end] == '\0')
        return read_name(plain, out);
    (void)snprintf(repo, sizeof repo, "%.*s", (int)end, plain);
    return end < sizeof repo && read_page(repo, plain + end + 1, out);
}

bool hub_name_read(const char *text, hub_name *out) {
    const char *path = path_of(text);
    *out = (hub_name){.revision = "main"};
    return path != NULL ? read_address(path, out) : read_name(text, out);
}

void hub_name_write(const hub_name *name, char out[HUB_WHOLE_BYTES]) {
    const bool usual = strcmp(name->revision, "main") == 0, file = name->file[0] != '\0';
    (void)snprintf(out, HUB_WHOLE_BYTES, "%s%s%s%s%s", name->repo, usual ? "" : "@",
                   usual ? "" : name->revision, file ? ":" : "", name->file);
}

const char *hub_short_name(const hub_name *name) {
    return strchr(name->repo, '/') + 1;
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

static bool has_part(const char *file, const char *wanted) {
    const size_t size = strlen(wanted), n = strlen(file);
    for (size_t i = 0; i + size <= n; i++)
        if (strncasecmp(file + i, wanted, size) == 0)
            return true;
    return false;
}

bool hub_is_model(const char *file) {
    static const char *const beside[] = {"mmproj", "imatrix"};
    const size_t n = strlen(file);
    unsigned part = 1, parts;
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
        if (has_part(file_base_name(file), beside[i]))
            return false;
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
