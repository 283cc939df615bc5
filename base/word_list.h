/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_WORD_LIST_H
#define TERN_BASE_WORD_LIST_H

/* Parts of texts: the words of a list, the last part of a path, a beginning, an ending. */

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "tern/span.h"

enum { WORD_BYTES = 64 }; /* of the longest word, terminator included */

/* Copies the next word of a list separated by spaces and moves *list after it; false at its end.
 */
static inline bool word_next(const char **list, char word[WORD_BYTES]) {
    if (*list == NULL)
        return false;
    *list += strspn(*list, " ");
    const size_t n = strcspn(*list, " ");
    if (n == 0 || n >= WORD_BYTES)
        return false;
    memcpy(word, *list, n);
    word[n] = '\0';
    *list += n;
    return true;
}

/* Returns the part of a path after its last '/'; the whole path if it has none. */
static inline const char *file_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static inline bool text_begins_with(const char *whole, const char *begin) {
    return strncmp(whole, begin, strlen(begin)) == 0;
}

static inline bool tern_span_begins_with(tern_span whole, const char *begin) {
    return whole.size >= strlen(begin) && memcmp(whole.data, begin, strlen(begin)) == 0;
}

static inline bool text_ends_with(const char *whole, const char *end) {
    const size_t n = strlen(whole), m = strlen(end);
    return n >= m && strcmp(whole + n - m, end) == 0;
}

#endif
