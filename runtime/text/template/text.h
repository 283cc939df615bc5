/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TEMPLATE_TEXT_H
#define TERN_RUNTIME_TEXT_TEMPLATE_TEXT_H

/* Texts with marks: building, cutting, writing values as text. */

#include "runtime/text/template/value.h"

/* A text that grows. */
typedef struct tern_tpl_buffer {
    tern_tpl *x;
    char *bytes;
    uint8_t *marks;
    size_t size, capacity;
    bool marked; /* some mark is not TERN_MARK_TEMPLATE */
} tern_tpl_buffer;

/* False after a failure. */
bool tern_tpl_add(tern_tpl_buffer *b, tern_tpl_text text);
bool tern_tpl_add_bytes(tern_tpl_buffer *b, const char *bytes, size_t size, uint8_t mark);
bool tern_tpl_add_word(tern_tpl_buffer *b, const char *text);

/* Its text as a value; NULL after a failure. */
tern_tpl_value *tern_tpl_buffer_value(const tern_tpl_buffer *b);

/* Bytes [from, to) of a text, which share its memory. */
tern_tpl_text tern_tpl_part(tern_tpl_text text, size_t from, size_t to);
uint8_t tern_tpl_mark(const tern_tpl_text *text, size_t at);

/* Write a value as Python's str() and repr() do. */
bool tern_tpl_write(tern_tpl_buffer *b, const tern_tpl_value *v);
bool tern_tpl_write_repr(tern_tpl_buffer *b, const tern_tpl_value *v);

/* str() as a text of its own; false after a failure. */
bool tern_tpl_str(tern_tpl *x, const tern_tpl_value *v, tern_tpl_text *out);

typedef struct tern_tpl_json {
    tern_tpl_text indent;    /* text for each level; size 0 and no lines: one line */
    bool lines, ascii, sort; /* sort: members by their names */
    tern_tpl_text comma, colon;
} tern_tpl_json;

/* Writes a value as json.dumps does. */
bool tern_tpl_write_json(tern_tpl_buffer *b, const tern_tpl_value *v, const tern_tpl_json *style,
                         unsigned level);

/* Writes a finite number in the digits that Python writes, at most 32 bytes. */
size_t tern_tpl_format_real(double real, char out[40]);

#endif
