/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <string.h>

const char tern_utf8_replacement[] = "\xEF\xBF\xBD";

/* Bytes of the character that a lead byte announces; 0 when it cannot lead. */
static size_t lead_size(unsigned char lead) {
    if (lead < 0x80)
        return 1;
    if (lead >= 0xC2 && lead <= 0xDF)
        return 2;
    if (lead >= 0xE0 && lead <= 0xEF)
        return 3;
    if (lead >= 0xF0 && lead <= 0xF4)
        return 4;
    return 0;
}

/*
 * The second byte is where overlong forms (E0, F0), surrogates (ED) and code points above
 * U+10FFFF (F4) show; all later bytes are 80 to BF.
 */
static int continues(unsigned char lead, size_t index, unsigned char byte) {
    unsigned char low = 0x80, high = 0xBF;
    if (index == 1 && lead == 0xE0)
        low = 0xA0;
    if (index == 1 && lead == 0xF0)
        low = 0x90;
    if (index == 1 && lead == 0xED)
        high = 0x9F;
    if (index == 1 && lead == 0xF4)
        high = 0x8F;
    return byte >= low && byte <= high;
}

tern_utf8 tern_utf8_next(const char *text, size_t size) {
    const unsigned char *bytes = (const unsigned char *)text;
    const size_t wanted = lead_size(bytes[0]);
    if (wanted == 0)
        return (tern_utf8){TERN_UTF8_BROKEN, 0, 1};
    if (wanted == 1)
        return (tern_utf8){TERN_UTF8_VALID, bytes[0], 1};
    uint32_t code = bytes[0] & (0x7Fu >> wanted);
    for (size_t i = 1; i < wanted; i++) {
        if (i == size)
            return (tern_utf8){TERN_UTF8_PARTIAL, 0, size};
        if (!continues(bytes[0], i, bytes[i]))
            return (tern_utf8){TERN_UTF8_BROKEN, 0, i};
        code = code << 6 | (bytes[i] & 0x3Fu);
    }
    return (tern_utf8){TERN_UTF8_VALID, code, wanted};
}

bool tern_utf8_is_valid(const char *text, size_t size) {
    for (size_t at = 0; at < size;) {
        const tern_utf8 c = tern_utf8_next(text + at, size - at);
        if (c.kind != TERN_UTF8_VALID)
            return false;
        at += c.size;
    }
    return true;
}

size_t tern_utf8_put(uint32_t code, char *out) {
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xC0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xE0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3F));
        out[2] = (char)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3F));
    out[2] = (char)(0x80 | (code >> 6 & 0x3F));
    out[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}

size_t tern_utf8_repair(const char *text, size_t size, char *out, size_t *pending) {
    size_t written = 0;
    if (pending != NULL)
        *pending = 0;
    for (size_t at = 0; at < size;) {
        const tern_utf8 c = tern_utf8_next(text + at, size - at);
        if (c.kind == TERN_UTF8_PARTIAL && pending != NULL) {
            *pending = c.size;
            break;
        }
        const int valid = c.kind == TERN_UTF8_VALID;
        const size_t bytes = valid ? c.size : (size_t)TERN_UTF8_REPLACEMENT_BYTES;
        if (out != NULL)
            memcpy(out + written, valid ? text + at : tern_utf8_replacement, bytes);
        written += bytes;
        at += c.size;
    }
    return written;
}
