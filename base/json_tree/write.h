/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_JSON_TREE_WRITE_H
#define TERN_BASE_JSON_TREE_WRITE_H

#include "base/json_tree/value.h"

typedef struct json_style {
    unsigned indent; /* blanks for each level, one value a line; 0: all in one line */
    bool ascii;      /* other characters as \uXXXX */
} json_style;

/*
 * The value as text, which the caller frees; NULL when there was no memory (remembered, as with
 * values) or no value. Numbers that are not integers have 17 digits, so that reading gives the same
 * bits.
 */
char *json_dump(const json_t *value, json_style style);

#endif
