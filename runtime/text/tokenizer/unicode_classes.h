/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_UNICODE_CLASSES_H
#define TERN_RUNTIME_TEXT_TOKENIZER_UNICODE_CLASSES_H

/*
 * Classes of characters as Hugging Face's tokenizers define them. They come from an old version of
 * Unicode, so no current library has the same. unicode_classes.c is generated
 * (tests/tokenizers/classes.py).
 */

#include <stdbool.h>
#include <stdint.h>

typedef enum tern_unicode_class {
    TERN_CLASS_CONTROL,     /* Cc, Cf, Co, without tab and line ends; U+FFFD */
    TERN_CLASS_PUNCTUATION, /* P, and the symbols of ASCII */
    TERN_CLASS_MN,          /* Mn */
    TERN_CLASS_MARK,        /* M, from a later version of Unicode than the others */
    TERN_CLASS_COUNT
} tern_unicode_class;

bool tern_unicode_is(tern_unicode_class wanted, uint32_t code);

#endif
