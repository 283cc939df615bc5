/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_WORD_LIST_H
#define TERN_BASE_WORD_LIST_H

/* Parts of texts: the words of a list, the last part of a path, an ending. */

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

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

static inline bool text_ends_with(const char *whole, const char *end) {
    const size_t n = strlen(whole), m = strlen(end);
    return n >= m && strcmp(whole + n - m, end) == 0;
}

#endif
