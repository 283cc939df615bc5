/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_TOOLS_H
#define TERN_SERVE_INTERFACES_TOOLS_H

/* Tools that a request declares: the text about them for the model, and those that it may call. */

#include "base/json_tree/value.h"
#include "serve/http/refusal.h"
#include "serve/interfaces/call_text.h"
#include "tern/tokenizer.h"

typedef struct tool {
    const char *name;     /* has only letters, digits, '_', '-' and '.' */
    const json_t *schema; /* schema of its arguments, an object; NULL: none was given */
    char place[64];       /* place of the schema in the request, for messages */
} tool;

/* The dialect in which an interface writes tools. */
typedef enum tools_dialect {
    TOOLS_OF_CHATS,     /* {"type": "function", "function": {"name", "parameters", ...}} */
    TOOLS_OF_RESPONSES, /* {"type": "function", "name", "parameters", ...} */
    TOOLS_OF_MESSAGES   /* {"name", "input_schema", ...} */
} tools_dialect;

enum { MOST_TOOLS = 128 };

/* Points into the body of the request. */
typedef struct toolset {
    tool *list; /* [n] tools that may be called */
    size_t n;
    bool required;    /* the answer must be a call */
    bool single;      /* the answer has at most one call */
    const call_form *form; /* of calls in the answer; NULL: there are none */
    text left_out;    /* tools that are not the client's, as `"tools.TYPE",...` */
    char *told;       /* text for the template: a JSON array in OpenAI's dialect; NULL: nothing */
} toolset;

/* Reads `tools`, `tool_choice` and `parallel_tool_calls` of a body. `form` is that of the model's
 * calls, which must outlive the set. False after a refusal. Call tools_free in any case. */
bool tools_read(toolset *set, tools_dialect dialect, const json_t *body, const call_form *form,
                refusal *r);
void tools_free(toolset *set);

/* Says what an argument may be, by the schema of its tool: for a call_types. `set`: a toolset. */
call_value tools_value(const void *set, const char *called, const char *key, size_t size);

#endif
