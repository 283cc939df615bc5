/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/interfaces/call_form.h"

#include <stdio.h>
#include <string.h>

#include "serve/interfaces/channels.h"

static const call_form forms[CALL_STYLES] = {
    [CALL_TAGGED] = {.open = "<tool_call>\n{\"name\": \"",
                     .middle = "\", \"arguments\": ",
                     .close = "}\n</tool_call>",
                     .separator = "\n"},
    [CALL_BARE] =
        {.open = "{\"name\": \"", .middle = "\", \"parameters\": ", .close = "}", .single = true},
    [CALL_LISTED] = {.ids = CALL_IDS_NINE,
                     .section_open = "[TOOL_CALLS][",
                     .section_close = "]",
                     .open = "{\"name\": \"",
                     .middle = "\", \"arguments\": ",
                     .close = "}",
                     .separator = ", "},
    [CALL_NAMED] = {.ids = CALL_IDS_NINE, .open = "[TOOL_CALLS]", .middle = "[ARGS]"},
    [CALL_PYTHON] = {.writing = CALL_LITERALS,
                     .section_open = "[",
                     .section_close = "]",
                     .separator = ", ",
                     .at_start = true,
                     .python = true,
                     .bracket = '(',
                     .assign = "=",
                     .comma = ", "},
    [CALL_CHANNELS] = {.open = CHANNELS_CALL_BEFORE CHANNELS_CALL,
                       .middle = CHANNELS_CALL_MIDDLE,
                       .lead = sizeof CHANNELS_CALL_BEFORE - 1,
                       .single = true},
};

const call_form *call_form_of(call_style style) {
    return &forms[style];
}

/* The length of the mark at the beginning of words: a tag or something in brackets, or all of them.
 */
static size_t mark_size(const char *words, size_t size) {
    const char shut = words[0] == '<' ? '>' : words[0] == '[' ? ']' : '\0';
    const char *end = shut != '\0' ? memchr(words, shut, size) : NULL;
    return end != NULL ? (size_t)(end - words) + 1 : size;
}

size_t call_form_trigger(const call_form *f, char out[CALL_TRIGGER_BYTES + 1]) {
    const char *from = f->section_open[0] != '\0' ? f->section_open : f->open + f->lead;
    const char *hole = strchr(from, CALL_HOLE);
    size_t size = hole != NULL ? (size_t)(hole - from) : strlen(from);
    size = mark_size(from, size);
    size = size < CALL_TRIGGER_BYTES ? size : CALL_TRIGGER_BYTES;
    memcpy(out, from, size);
    out[size] = '\0';
    return size;
}
