/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/tokenizer/normalize.h"

#include <stdlib.h>

#include "base/utf8.h"

#ifdef TERN_HAVE_UTF8PROC

#include <utf8proc.h>

bool tern_can_normalize(void) {
    return true;
}

/* ASCII is the same in every form, and Latin-1 in NFC: characters that compose begin at U+0300. */
static bool is_normal(tern_span text, tern_normal_form form) {
    const unsigned char first_that_may_change = form == TERN_NFC ? 0xCC : 0x80;
    for (size_t i = 0; i < text.size; i++)
        if ((unsigned char)text.data[i] >= first_that_may_change)
            return false;
    return true;
}

tern_status tern_normalize(tern_span text, tern_normal_form form, char **out, size_t *size) {
    static const utf8proc_option_t options[] = {
        [TERN_NFC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE,
        [TERN_NFD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE,
        [TERN_NFKC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
        [TERN_NFKD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT,
    };
    *out = NULL;
    if (is_normal(text, form))
        return TERN_OK;
    utf8proc_uint8_t *normal = NULL;
    const utf8proc_ssize_t n = utf8proc_map((const utf8proc_uint8_t *)text.data,
                                            (utf8proc_ssize_t)text.size, &normal, options[form]);
    if (n < 0) /* the text is valid, so nothing else can go wrong */
        return TERN_ERR_NOMEM;
    *out = (char *)normal;
    *size = (size_t)n;
    return TERN_OK;
}

uint32_t tern_lowercase(uint32_t code) {
    return (uint32_t)utf8proc_tolower((utf8proc_int32_t)code);
}

size_t tern_whole_character(tern_span text) {
    utf8proc_int32_t state = 0;
    size_t size = 0;
    for (int32_t before = 0; size < text.size;) {
        const tern_utf8 c = tern_utf8_next(text.data + size, text.size - size);
        if (size > 0 && utf8proc_grapheme_break_stateful(before, (int32_t)c.code, &state))
            break;
        before = (int32_t)c.code;
        size += c.size;
    }
    return size;
}

#else

bool tern_can_normalize(void) {
    return false;
}

tern_status tern_normalize(tern_span text, tern_normal_form form, char **out, size_t *size) {
    (void)text;
    (void)form;
    (void)size;
    *out = NULL;
    return TERN_OK; /* never reached with text: such vocabularies are refused */
}

uint32_t tern_lowercase(uint32_t code) {
    return code;
}

size_t tern_whole_character(tern_span text) {
    return text.size > 0 ? tern_utf8_next(text.data, text.size).size : 0;
}

#endif
