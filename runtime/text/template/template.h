/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TEMPLATE_TEMPLATE_H
#define TERN_RUNTIME_TEXT_TEMPLATE_TEMPLATE_H

/*
 * Chat templates: the part of Jinja that published ones use, as transformers sets it up
 * (trim_blocks, lstrip_blocks, loop controls, its own tojson). docs/chat.md lists what is there;
 * the rest is refused by name and line. Work, memory, output and nesting are bounded
 * (runtime/text/template/run.h), whatever the template and the messages are.
 */

#include "runtime/text/template/marked.h"
#include "runtime/text/template/run.h"

typedef struct tern_template_token {
    const char *name; /* name of the variable, such as bos_token */
    tern_span text;
} tern_template_token;

typedef struct tern_template_input {
    const tern_conversation *conversation;
    const tern_template_token *tokens; /* [n_tokens] */
    size_t n_tokens;
    int64_t now;                   /* seconds since 1970, for strftime_now */
    const tern_tpl_limits *limits; /* NULL: tern_tpl_usual */
} tern_template_input;

/*
 * Runs the template `source` and sets *out, which must be empty, to its text. Texts of messages are
 * repaired where they are not UTF-8. Arguments of tool calls are objects for the template; only if
 * it cannot use these, they are texts. The text beside tool calls is undefined if there is none;
 * only if the template cannot use that, it is "".
 *
 * TERN_ERR_TEMPLATE: the template uses something that tern does not support, or exceeds a limit;
 * TERN_ERR_CHAT: it refuses the conversation itself; TERN_ERR_JSON: tools, tool calls or variables
 * are not such JSON; TERN_ERR_NOMEM. Messages name no file.
 */
TERN_MUST_CHECK tern_status tern_template_run(tern_span source, const tern_template_input *input,
                                              tern_marked_text *out, tern_error *err);

/* Checks whether a template can be run, as far as parsing it tells; TERN_ERR_TEMPLATE,
 * TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_template_check(tern_span source, tern_error *err);

#endif
