/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/tokenizer/white_space.h"

#include <string.h>

/* Bytes of the White_Space character at a place, 0 if there is none. */
static size_t space_at(tern_span text, size_t at) {
    static const char *const spaces[] = {"\t",           "\n",           "\v",
                                         "\f",           "\r",           " ",
                                         "\xC2\x85",     "\xC2\xA0",     "\xE1\x9A\x80",
                                         "\xE2\x80\x80", "\xE2\x80\x81", "\xE2\x80\x82",
                                         "\xE2\x80\x83", "\xE2\x80\x84", "\xE2\x80\x85",
                                         "\xE2\x80\x86", "\xE2\x80\x87", "\xE2\x80\x88",
                                         "\xE2\x80\x89", "\xE2\x80\x8A", "\xE2\x80\xA8",
                                         "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F",
                                         "\xE3\x80\x80"};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        const size_t size = strlen(spaces[i]);
        if (text.size - at >= size && memcmp(text.data + at, spaces[i], size) == 0)
            return size;
    }
    return 0;
}

size_t tern_space_before(tern_span text) {
    size_t at = 0;
    for (size_t size; at < text.size && (size = space_at(text, at)) > 0;)
        at += size;
    return at;
}

size_t tern_space_behind(tern_span text) {
    size_t n = 0;
    while (n < text.size) {
        size_t size = 0;
        for (size_t back = 1; back <= 3 && back <= text.size - n && size == 0; back++) {
            const tern_span tail = {text.data, text.size - n};
            size = space_at(tail, tail.size - back) == back ? back : 0;
        }
        if (size == 0)
            break;
        n += size;
    }
    return n;
}
