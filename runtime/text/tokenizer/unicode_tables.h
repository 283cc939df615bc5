/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_UNICODE_TABLES_H
#define TERN_RUNTIME_TEXT_TOKENIZER_UNICODE_TABLES_H

/*
 * Properties of characters in one version of Unicode, packed. unicode_tables.c is generated
 * (tests/tokenizers/properties.py); code_set.h reads it. Numbers are written seven bits a byte, the
 * lowest first; all bytes but the last have 0x80 set.
 */

#include <stdint.h>

extern const char tern_unicode_version[]; /* "16.0" */

/* Runs that cover all code points in order: how many, then one byte, which they share. */
extern const uint8_t tern_unicode_categories[]; /* the number of a category */
extern const uint8_t tern_unicode_scripts[];    /* the number of a script */

/* A property that characters have or lack. */
typedef struct tern_property_flag {
    uint32_t categories; /* one bit a category: their characters have it, */
    const uint8_t *runs; /* but where these say 1 it is the other way around */
} tern_property_flag;
extern const tern_property_flag tern_unicode_flags[];

/*
 * Characters that equal others where case does not matter, in order: the distance from the one
 * before, then the distance back to the first of those that are equal. 0 ends the list.
 */
extern const uint8_t tern_unicode_cases[];

typedef enum tern_property_kind {
    TERN_PROPERTY_CATEGORIES, /* value: one bit a category */
    TERN_PROPERTY_SCRIPT,     /* value: a number of tern_unicode_scripts */
    TERN_PROPERTY_FLAG        /* value: an index of tern_unicode_flags */
} tern_property_kind;

/* Names of properties, in small letters without spaces, dashes and underscores. "" ends the list.
 */
typedef struct tern_property_name {
    const char *names; /* "han hani" */
    tern_property_kind kind;
    uint32_t value;
} tern_property_name;
extern const tern_property_name tern_unicode_names[];

#endif
