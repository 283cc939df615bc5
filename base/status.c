/* SPDX-License-Identifier: Apache-2.0 */
/* Errors as values, and the version: what every part of the library needs. */

#include "tern/status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

const char *tern_version(void) {
    return TERN_VERSION;
}

const char *tern_status_str(tern_status status) {
    switch (status) {
#define STATUS_TEXT(name, value, text)                                                             \
    case TERN_##name:                                                                              \
        return text;
        TERN_STATUS_LIST(STATUS_TEXT)
#undef STATUS_TEXT
    }
    return "unknown status";
}

/*
 * Bytes of the UTF-8 character at s if it may be shown: 1 to 4, or 0 for a control character (C0,
 * DEL, C1: terminals act on them) or an invalid sequence. s is terminated, so looking at the next
 * byte is safe as long as all before it were continuation bytes.
 */
static size_t printable_length(const unsigned char *s) {
    if (s[0] < 0x80)
        return s[0] >= 0x20 && s[0] != 0x7f;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    size_t length = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    switch (s[0]) { /* C1 controls, overlong forms, surrogates, above U+10FFFF */
    case 0xc2:
        return s[1] >= 0xa0 ? length : 0;
    case 0xe0:
        return s[1] >= 0xa0 ? length : 0;
    case 0xed:
        return s[1] < 0xa0 ? length : 0;
    case 0xf0:
        return s[1] >= 0x90 ? length : 0;
    case 0xf4:
        return s[1] < 0x90 ? length : 0;
    default:
        return length;
    }
}

static void sanitise(char *message) {
    for (size_t i = 0; message[i] != '\0';) {
        size_t length = printable_length((const unsigned char *)message + i);
        if (length == 0)
            message[i] = '?';
        i += length == 0 ? 1 : length;
    }
}

static bool inside_character(char c) {
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* A message that is too long loses its middle: paths are what is long, and what is wrong stands
 * after them. */
static void copy_ends(const char *whole, char *message) {
    static const char gap[] = "...";
    const size_t bytes = strlen(whole);
    size_t head = TERN_ERROR_MESSAGE_BYTES / 3;
    if (bytes < TERN_ERROR_MESSAGE_BYTES) {
        memcpy(message, whole, bytes + 1);
        return;
    }
    while (inside_character(whole[head]))
        head--;
    size_t tail = TERN_ERROR_MESSAGE_BYTES - head - sizeof gap;
    while (inside_character(whole[bytes - tail]))
        tail--;
    memcpy(message, whole, head);
    memcpy(message + head, gap, sizeof gap - 1);
    memcpy(message + head + sizeof gap - 1, whole + bytes - tail, tail + 1);
}

tern_status tern_fail(tern_error *err, tern_status status, const char *format, ...) {
    if (err == NULL)
        return status;
    err->status = status;
    enum { WHOLE_BYTES = 9000 }; /* two paths fit */
    char whole[WHOLE_BYTES];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(whole, sizeof whole, format, args);
    va_end(args);
    if (length < 0) /* only a broken format or locale can cause this; say what is known */
        snprintf(whole, sizeof whole, "%s", tern_status_str(status));
    sanitise(whole);
    copy_ends(whole, err->message);
    return status;
}
