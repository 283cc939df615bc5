/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/tokenizer/characters.h"

#include <string.h>

#include "base/utf8.h"
#include "runtime/text/tokenizer/normalize.h"
#include "runtime/text/tokenizer/unicode_classes.h"

enum { TALL_I = 0x130, SMALL_I_DOT_BYTES = 3 };

typedef struct range {
    uint32_t first, last;
} range;

static bool within(const range *ranges, size_t n, uint32_t code) {
    for (size_t i = 0; i < n; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}

/* Unicode's White_Space. */
static bool is_space(uint32_t code) {
    static const range spaces[] = {
        {0x9, 0xD},       {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
        {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};
    return within(spaces, sizeof spaces / sizeof *spaces, code);
}

/* The blocks of Han characters that BERT knew, with the gap that the reference has. */
static bool is_han(uint32_t code) {
    static const range blocks[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                   {0x20000, 0x2A6DF}, {0x2A700, 0x2B81F}, {0x2B920, 0x2CEAF},
                                   {0x2F800, 0x2FA1F}};
    return code >= blocks[0].first && within(blocks, sizeof blocks / sizeof *blocks, code);
}

static bool vanishes_in_nmt(uint32_t code) {
    static const range gone[] = {{0x1, 0x8},   {0xB, 0xB},   {0xE, 0x1F},
                                 {0x7F, 0x7F}, {0x8F, 0x8F}, {0x9F, 0x9F}};
    return within(gone, sizeof gone / sizeof *gone, code);
}

static bool is_space_in_nmt(uint32_t code) {
    static const range spaces[] = {{0x9, 0xA},       {0xC, 0xD},       {0x1680, 0x1680},
                                   {0x200B, 0x200F}, {0x2028, 0x2029}, {0x2581, 0x2581},
                                   {0xFEFF, 0xFEFF}, {0xFFFD, 0xFFFD}};
    return within(spaces, sizeof spaces / sizeof *spaces, code);
}

static size_t put_space(char *out) {
    *out = ' ';
    return 1;
}

static size_t lower(uint32_t code, char *out) {
    static const char small_i_dot[] = "i\xCC\x87";
    if (code != TALL_I)
        return tern_utf8_put(tern_lowercase(code), out);
    memcpy(out, small_i_dot, SMALL_I_DOT_BYTES);
    return SMALL_I_DOT_BYTES;
}

static size_t space_han(uint32_t code, char *out) {
    if (!is_han(code))
        return tern_utf8_put(code, out);
    size_t n = put_space(out);
    n += tern_utf8_put(code, out + n);
    return n + put_space(out + n);
}

size_t tern_map_character(tern_character_map map, uint32_t code, char *out) {
    switch (map) {
    case TERN_MAP_CLEAN:
        if (tern_unicode_is(TERN_CLASS_CONTROL, code))
            return 0;
        return is_space(code) ? put_space(out) : tern_utf8_put(code, out);
    case TERN_MAP_SPACE_HAN:
        return space_han(code, out);
    case TERN_MAP_DROP_MN:
        return tern_unicode_is(TERN_CLASS_MN, code) ? 0 : tern_utf8_put(code, out);
    case TERN_MAP_DROP_MARKS:
        return tern_unicode_is(TERN_CLASS_MARK, code) ? 0 : tern_utf8_put(code, out);
    case TERN_MAP_LOWERCASE:
        return lower(code, out);
    case TERN_MAP_NMT:
        break;
    }
    if (vanishes_in_nmt(code))
        return 0;
    return is_space_in_nmt(code) ? put_space(out) : tern_utf8_put(code, out);
}

tern_word_class tern_word_class_of(uint32_t code) {
    if (is_space(code))
        return TERN_BETWEEN_WORDS;
    return tern_unicode_is(TERN_CLASS_PUNCTUATION, code) ? TERN_PUNCTUATION : TERN_IN_WORD;
}
