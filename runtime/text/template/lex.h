/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TEMPLATE_LEX_H
#define TERN_RUNTIME_TEXT_TEMPLATE_LEX_H

/* A template as tokens, with white space removed as trim_blocks and lstrip_blocks say. */

#include "runtime/text/template/run.h"

typedef enum tern_tpl_token_kind {
    TERN_TPL_END,         /* end of the template */
    TERN_TPL_DATA,        /* text outside of tags */
    TERN_TPL_OPEN_BLOCK,  /* {% */
    TERN_TPL_CLOSE_BLOCK, /* %} */
    TERN_TPL_OPEN_PRINT,  /* {{ */
    TERN_TPL_CLOSE_PRINT, /* }} */
    TERN_TPL_NAME,
    TERN_TPL_STRING, /* text without quotes, with its escapes replaced */
    TERN_TPL_INTEGER,
    TERN_TPL_REAL,
    TERN_TPL_OPERATOR
} tern_tpl_token_kind;

typedef struct tern_tpl_token {
    tern_tpl_token_kind kind;
    unsigned line;
    tern_span text; /* names, operators and numbers as written */
} tern_tpl_token;

/* All tokens, the last one TERN_TPL_END; NULL after a failure. */
tern_tpl_token *tern_tpl_lex(tern_tpl *x, tern_span source);

#endif
