/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stops.h"

#include <string.h>

size_t tern_stops_match(const tern_stops *s, const char *text, size_t size) {
    size_t longest = 0;
    for (size_t i = 0; i < s->n; i++) {
        const size_t n = strlen(s->texts[i]);
        if (n > longest && n <= size && memcmp(text + size - n, s->texts[i], n) == 0)
            longest = n;
    }
    return longest;
}

/* The longest suffix of text[size] that is a proper beginning of stop, if longer than known. */
static size_t held_by(const char *stop, const char *text, size_t size, size_t known) {
    const size_t n = strlen(stop);
    for (size_t k = n - 1 < size ? n - 1 : size; k > known; k--)
        if (memcmp(text + size - k, stop, k) == 0)
            return k;
    return known;
}

size_t tern_stops_held(const tern_stops *s, const char *text, size_t size) {
    size_t longest = 0;
    for (size_t i = 0; i < s->n; i++)
        longest = held_by(s->texts[i], text, size, longest);
    return longest;
}
