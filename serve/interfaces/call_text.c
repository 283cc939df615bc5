/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/interfaces/call_text.h"

#include <string.h>

#include "base/stops.h"

enum { MOST_BLANKS = 256 }; /* blanks that are held back before a possible call */

/* States of a reader. HEAD: in a call, before its arguments. TAIL: in a call, after its arguments.
 */
enum { TEXT, HEAD, ARGUMENTS, TAIL };

const call_words *call_words_of(call_style style) {
    static const call_words words[CALL_STYLES] = {
        [CALL_TAGGED] = {.trigger = "<tool_call>",
                         .begin = "<tool_call>\n{\"name\": \"",
                         .middle = "\", \"arguments\": ",
                         .end = "}\n</tool_call>",
                         .separator = "\n",
                         .close = "</tool_call>",
                         .arguments = "arguments",
                         .head = "{n:t,a:{"},
        [CALL_BARE] = {.trigger = "{\"name\": \"",
                       .begin = "{\"name\": \"",
                       .middle = "\", \"parameters\": ",
                       .end = "}",
                       .close = "}",
                       .arguments = "parameters",
                       .head = "t,a:{"},
        [CALL_LISTED] = {.trigger = "[TOOL_CALLS]",
                         .begin = "[TOOL_CALLS][{\"name\": \"",
                         .middle = "\", \"arguments\": ",
                         .end = "}",
                         .open = "[",
                         .shut = "]",
                         .separator = ", ",
                         .close = "]",
                         .arguments = "arguments",
                         .head = "[{n:t,a:{"},
        [CALL_NAMED] = {.trigger = "[TOOL_CALLS]",
                        .begin = "[TOOL_CALLS]",
                        .middle = "[ARGS]",
                        .end = "",
                        .close = "",
                        .arguments = "",
                        .head = "N[ARGS]{"},
    };
    return &words[style];
}

static bool is_blank(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* ---- text ------------------------------------------------------------------------------------ */

static void tell(const call_sink *s, const char *bytes, size_t size) {
    if (size > 0)
        s->text(s->user, bytes, size);
}

/* Passes on the first n held bytes as text. */
static void release(call_reader *r, const call_sink *s, size_t n) {
    if (n == 0)
        return;
    tell(s, r->held.bytes, n);
    r->held.size -= n;
    memmove(r->held.bytes, r->held.bytes + n, r->held.size);
}

/* Counts the blanks at the end of bytes[end], up to MOST_BLANKS. */
static size_t count_blanks(const char *bytes, size_t end) {
    size_t n = 0;
    while (n < end && n < MOST_BLANKS && is_blank(bytes[end - n - 1]))
        n++;
    return n;
}

/* Returns how many held bytes, not counting the last n, are text whatever follows. */
static size_t count_certain(const call_reader *r, size_t n) {
    const size_t before = r->held.size - n;
    return before - count_blanks(r->held.bytes, before);
}

/* Begins the head of a call, after the trigger. The held bytes become text if it is not a call. */
static void begin_head(call_reader *r) {
    r->state = HEAD;
    r->step = 0;
    r->in_string = r->style == CALL_BARE || r->style == CALL_NAMED;
    r->name_size = 0;
}

/* Takes a byte of text, in which a call may begin. */
static void take_text(call_reader *r, const call_sink *s, const tern_stops *triggers, char c) {
    text_add(&r->held, &c, 1);
    const size_t n = r->held.failed ? 0 : tern_stops_match(triggers, r->held.bytes, r->held.size);
    if (n > 0) {
        release(r, s, count_certain(r, n));
        begin_head(r);
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Returns the next item that the head must have. */
static char part_of(const call_reader *r) {
    return call_words_of(r->style)->head[r->step];
}

/* It was not a call: passes the held bytes on as text. */
static void give_up(call_reader *r, const call_sink *s) {
    r->state = TEXT;
    release(r, s, r->held.size);
}

/* Takes a byte of the tool's name; false if a name cannot have it. */
static bool take_name(call_reader *r, char c) {
    r->name[r->name_size] = c;
    return c != '\\' && (unsigned char)c >= ' ' && ++r->name_size < CALL_NAME_BYTES;
}

/* Begins a string of the head, or goes on in it; false if it is not what the head demands. */
static bool take_word(call_reader *r, char c) {
    const char part = part_of(r);
    if (!r->in_string) {
        r->in_string = c == '"';
        r->word = part == 'n' ? "name" : call_words_of(r->style)->arguments;
        return r->in_string;
    }
    if (c == '"') {
        const bool complete = part == 't' ? r->name_size > 0 : *r->word == '\0';
        r->in_string = false;
        r->step++;
        return complete;
    }
    if (part != 't')
        return *r->word++ == c;
    return take_name(r, c);
}

static bool take_part(call_reader *r, char c) {
    const char part = part_of(r);
    if (part == 'N' && c != '[')
        return take_name(r, c);
    if (part == 'N') {
        r->in_string = false;
        r->step += 2;
        return r->name_size > 0;
    }
    if (r->in_string || part == 'n' || part == 't' || part == 'a')
        return take_word(r, c);
    r->step += part == c;
    return part == c;
}

static void take_head(call_reader *r, const call_sink *s, char c) {
    text_add(&r->held, &c, 1);
    if (!r->in_string && is_blank(c) && r->held.size < CALL_HEAD_BYTES)
        return;
    if (!take_part(r, c) || r->held.size >= CALL_HEAD_BYTES) {
        give_up(r, s);
    } else if (part_of(r) == '\0') {
        r->name[r->name_size] = '\0';
        r->state = ARGUMENTS;
        r->depth = 1;
        r->named = true;
        text_clear(&r->held);
        s->begin(s->user, r->name);
        s->arguments(s->user, "{", 1);
    }
}

/* True if c is the last byte of the arguments. */
static bool ends_arguments(call_reader *r, char c) {
    if (r->escaped) {
        r->escaped = false;
    } else if (r->in_string) {
        r->escaped = c == '\\';
        r->in_string = c != '"';
    } else {
        r->in_string = c == '"';
        r->depth += c == '{' || c == '[';
        r->depth -= c == '}' || c == ']';
    }
    return r->depth == 0;
}

/* Takes a byte between two calls of a list: a brace begins another call, and a bracket ends the
 * list. Strings in other members of the call are skipped. */
static void take_list(call_reader *r, char c) {
    if (r->escaped || r->in_string) {
        r->in_string = r->escaped || c != '"';
        r->escaped = !r->escaped && c == '\\';
    } else if (c == '{') {
        begin_head(r);
        r->step = 2;
        text_add(&r->held, &c, 1);
    } else {
        r->in_string = c == '"';
        r->state = c == ']' ? TEXT : TAIL;
    }
}

static void take_tail(call_reader *r, char c) {
    const char *end = call_words_of(r->style)->close;
    if (r->style == CALL_LISTED) {
        take_list(r, c);
        return;
    }
    r->matched = end[r->matched] == c ? r->matched + 1 : end[0] == c;
    r->state = end[r->matched] == '\0' ? TEXT : TAIL;
}

/* Takes the bytes that belong to the arguments. Returns how many. */
static size_t take_arguments(call_reader *r, const call_sink *s, const char *bytes, size_t size) {
    size_t n = 0;
    bool ended = false;
    while (n < size && !ended)
        ended = ends_arguments(r, bytes[n++]);
    s->arguments(s->user, bytes, n);
    if (ended) {
        s->end(s->user);
        r->state = call_words_of(r->style)->close[0] != '\0' ? TAIL : TEXT;
        r->matched = 0;
    }
    return n;
}

void call_reader_take(call_reader *r, const call_sink *s, const char *bytes, size_t size) {
    const tern_stops triggers = {&call_words_of(r->style)->trigger, 1};
    for (size_t i = 0; i < size && !r->held.failed;) {
        if (r->state == ARGUMENTS)
            i += take_arguments(r, s, bytes + i, size - i);
        else if (r->state == HEAD)
            take_head(r, s, bytes[i++]);
        else if (r->state == TAIL)
            take_tail(r, bytes[i++]);
        else
            take_text(r, s, &triggers, bytes[i++]);
    }
    if (r->state == TEXT && !r->held.failed)
        release(r, s, count_certain(r, tern_stops_held(&triggers, r->held.bytes, r->held.size)));
}

void call_reader_finish(call_reader *r, const call_sink *s) {
    const size_t n = r->held.size;
    if (r->state == TEXT && !r->held.failed && !(r->named && count_blanks(r->held.bytes, n) == n))
        release(r, s, n);
}

void call_reader_free(call_reader *r) {
    text_free(&r->held);
}
