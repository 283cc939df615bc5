/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/visible.h"

#include <string.h>

#include "base/utf8.h"

static bool is_visible(uint32_t code, bool lines) {
    if (code == '\n' || code == '\t')
        return lines;
    const bool control = code < ' ' || (code >= 0x7f && code <= 0x9f);
    const bool direction = code == 0x061c || code == 0x200e || code == 0x200f ||
                           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    return !control && !direction;
}

size_t visible_copy(const char *bytes, size_t size, bool lines, char *out) {
    size_t written = 0;
    for (size_t at = 0; at < size;) {
        const tern_utf8 c = tern_utf8_next(bytes + at, size - at);
        if (c.kind == TERN_UTF8_VALID && is_visible(c.code, lines)) {
            memmove(out + written, bytes + at, c.size);
            written += c.size;
        } else {
            out[written++] = '?';
        }
        at += c.size;
    }
    return written;
}
