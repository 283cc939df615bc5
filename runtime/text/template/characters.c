/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/template/characters.h"

#include <string.h>

#include "base/utf8.h"

#ifdef TERN_HAVE_UTF8PROC
#include <utf8proc.h>
#endif

size_t tern_tpl_put_code(uint32_t code, char *out) {
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    const size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    out[0] = (char)(code | (n == 2 ? 0xC0U : n == 3 ? 0xE0U : 0xF0U));
    return n;
}

uint32_t tern_tpl_code(tern_span text, size_t *size) {
    const tern_utf8 c = tern_utf8_next(text.data, text.size);
    *size = c.size;
    return c.code;
}

size_t tern_tpl_count(tern_span text) {
    size_t n = 0;
    for (size_t i = 0; i < text.size; i++)
        n += ((unsigned char)text.data[i] & 0xC0) != 0x80;
    return n;
}

size_t tern_tpl_offset(tern_span text, size_t i) {
    size_t at = 0;
    for (; at < text.size; at++)
        if (((unsigned char)text.data[at] & 0xC0) != 0x80 && i-- == 0)
            break;
    return at;
}

/* ---- stripping ------------------------------------------------------------------------------- */

static bool is_one_of(tern_span c, const tern_span *these) {
    size_t size;
    if (these == NULL)
        return tern_tpl_is_space(tern_tpl_code(c, &size));
    for (size_t at = 0; at < these->size; at += size) {
        (void)tern_tpl_code((tern_span){these->data + at, these->size - at}, &size);
        if (size == c.size && memcmp(these->data + at, c.data, size) == 0)
            return true;
    }
    return false;
}

tern_span tern_tpl_strip_left(tern_span text, const tern_span *these) {
    while (text.size > 0) {
        size_t size;
        (void)tern_tpl_code(text, &size);
        if (!is_one_of((tern_span){text.data, size}, these))
            break;
        text.data += size;
        text.size -= size;
    }
    return text;
}

tern_span tern_tpl_strip_right(tern_span text, const tern_span *these) {
    while (text.size > 0) {
        size_t at = text.size - 1;
        while (at > 0 && ((unsigned char)text.data[at] & 0xC0) == 0x80)
            at--;
        if (!is_one_of((tern_span){text.data + at, text.size - at}, these))
            break;
        text.size = at;
    }
    return text;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

bool tern_tpl_is_space(uint32_t c) {
    return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F) || c == 0x85 ||
           c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

bool tern_tpl_is_line_end(uint32_t c) {
    return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
}

#ifdef TERN_HAVE_UTF8PROC

static utf8proc_category_t category(uint32_t code) {
    return utf8proc_category((utf8proc_int32_t)code);
}

bool tern_tpl_is_printable(uint32_t code) {
    const utf8proc_category_t c = category(code);
    return code == ' ' ||
           (c != UTF8PROC_CATEGORY_CN && c != UTF8PROC_CATEGORY_CC && c != UTF8PROC_CATEGORY_CF &&
            c != UTF8PROC_CATEGORY_CS && c != UTF8PROC_CATEGORY_CO && c != UTF8PROC_CATEGORY_ZS &&
            c != UTF8PROC_CATEGORY_ZL && c != UTF8PROC_CATEGORY_ZP);
}

bool tern_tpl_is_upper(uint32_t code) {
    return category(code) == UTF8PROC_CATEGORY_LU || category(code) == UTF8PROC_CATEGORY_LT;
}

bool tern_tpl_is_lower(uint32_t code) {
    return category(code) == UTF8PROC_CATEGORY_LL;
}

bool tern_tpl_is_alpha(uint32_t code) {
    const utf8proc_category_t c = category(code);
    return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool tern_tpl_is_digit(uint32_t code) {
    return category(code) == UTF8PROC_CATEGORY_ND;
}

uint32_t tern_tpl_upper(uint32_t code) {
    return (uint32_t)utf8proc_toupper((utf8proc_int32_t)code);
}

uint32_t tern_tpl_lower(uint32_t code) {
    return (uint32_t)utf8proc_tolower((utf8proc_int32_t)code);
}

uint32_t tern_tpl_title(uint32_t code) {
    return (uint32_t)utf8proc_totitle((utf8proc_int32_t)code);
}

#else

bool tern_tpl_is_printable(uint32_t code) {
    return code >= ' ' && code != 0x7F;
}

bool tern_tpl_is_upper(uint32_t code) {
    return code >= 'A' && code <= 'Z';
}

bool tern_tpl_is_lower(uint32_t code) {
    return code >= 'a' && code <= 'z';
}

bool tern_tpl_is_alpha(uint32_t code) {
    return tern_tpl_is_upper(code) || tern_tpl_is_lower(code);
}

bool tern_tpl_is_digit(uint32_t code) {
    return code >= '0' && code <= '9';
}

uint32_t tern_tpl_upper(uint32_t code) {
    return tern_tpl_is_lower(code) ? code - ('a' - 'A') : code;
}

uint32_t tern_tpl_lower(uint32_t code) {
    return tern_tpl_is_upper(code) ? code + ('a' - 'A') : code;
}

uint32_t tern_tpl_title(uint32_t code) {
    return tern_tpl_upper(code);
}

#endif
