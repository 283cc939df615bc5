/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is a SentencePiece table of replacements; its last bytes are also the text to look up.
 * Seeds: tests/fuzz/seeds_charsmap.py FOLDER.
 */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/text/tokenizer/charsmap.h"

enum { TEXT_BYTES = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition)
        abort();
}

/* A replacement lies in the table, consists of whole characters, and uses up text. */
static void check_found(tern_span bytes, tern_span text, size_t used, tern_span to) {
    require(used >= 1 && used <= text.size);
    require(to.data >= bytes.data && to.data + to.size < bytes.data + bytes.size);
    for (size_t at = 0; at < to.size;) {
        const tern_utf8 c = tern_utf8_next(to.data + at, to.size - at);
        require(c.kind == TERN_UTF8_VALID);
        at += c.size;
    }
}

static void check_texts(const tern_charsmap *map, tern_span bytes, tern_span text) {
    for (size_t at = 0; at < text.size; at++) {
        const tern_span rest = {text.data + at, text.size - at};
        size_t longest = 0, shortest = 0;
        tern_span to;
        const bool found = tern_charsmap_find(map, rest, false, &longest, &to);
        if (found)
            check_found(bytes, rest, longest, to);
        require(tern_charsmap_find(map, rest, true, &shortest, &to) == found);
        if (found)
            check_found(bytes, rest, shortest, to);
        require(shortest <= longest);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char why[TERN_CHARSMAP_WHY_BYTES] = "";
    tern_charsmap map;
    const tern_span bytes = {(const char *)data, size};
    const size_t tail = size < TEXT_BYTES ? size : TEXT_BYTES;
    if (tern_charsmap_open(bytes, &map, why) == TERN_OK)
        check_texts(&map, bytes, (tern_span){bytes.data + size - tail, tail});
    else
        require(why[0] != '\0');
    return 0;
}
