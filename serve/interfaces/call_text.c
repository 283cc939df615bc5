/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/interfaces/call_text.h"

#include <string.h>

#include "base/stops.h"

enum { MOST_BLANKS = 256 }; /* blanks that are held back before a possible call */

/*
 * States of a reader. OPEN: before a tool's name. NAME: in it. MIDDLE: between it and the
 * arguments. JSON, LITERAL: in these. KEY: before or in the name of an argument. VALUE: in its
 * value. CLOSE: after the arguments. NEXT: after a call of a section.
 */
enum { TEXT, OPEN, NAME, MIDDLE, JSON, LITERAL, KEY, VALUE, CLOSE, NEXT };

static bool is_blank(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

static const char *after_blanks(const char *words) {
    while (is_blank(*words))
        words++;
    return words;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void tell(const call_sink *s, const char *bytes, size_t size) {
    if (size > 0)
        s->text(s->user, bytes, size);
}

/* Removes the first n held bytes. */
static void drop(call_reader *r, size_t n) {
    r->held.size -= n;
    memmove(r->held.bytes, r->held.bytes + n, r->held.size);
}

/* Passes on the first n held bytes as text. */
static void release(call_reader *r, const call_sink *s, size_t n) {
    if (n == 0)
        return;
    tell(s, r->held.bytes, n);
    drop(r, n);
    r->later = true;
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

/* Says which words come before the next name. */
static void expect(call_reader *r, int state, const char *words) {
    r->state = state;
    r->want = words;
    r->in_hole = false;
    r->name_size = 0;
}

/* Takes a byte of text, in which a call may begin. */
static void take_text(call_reader *r, const call_sink *s, const char *trigger, char c) {
    const tern_stops triggers = {&trigger, 1};
    const bool may_begin = !r->form->at_start || !r->later || r->held.size > 0;
    text_add(&r->held, &c, 1);
    size_t n = 0;
    if (!r->held.failed && may_begin)
        n = tern_stops_match(&triggers, r->held.bytes, r->held.size);
    if (n > 0 && !(r->form->at_start && n < r->held.size)) {
        release(r, s, count_certain(r, n));
        const bool section = r->form->section_open[0] != '\0';
        expect(r, OPEN, (section ? r->form->section_open : r->form->open + r->form->lead) + n);
        r->in_section = !section;
    }
}

/* ---- the words around names ------------------------------------------------------------------ */

/* Takes a byte of the expected words, in which blanks do not count; false if it is another one. */
static bool take_want(call_reader *r, char c) {
    const char *want = after_blanks(r->want);
    if (*want == CALL_HOLE && is_word(c)) {
        r->in_hole = true;
        return true;
    }
    if (*want == CALL_HOLE && r->in_hole)
        want = after_blanks(want + 1);
    if (is_blank(c))
        return true;
    r->in_hole = false;
    r->want = want + (*want == c);
    return *want == c;
}

/* True if nothing more is expected; a hole ends with the byte after it. */
static bool is_complete(const call_reader *r) {
    return *after_blanks(r->want) == '\0';
}

/* It was not a call: passes the held bytes on as text. */
static void give_up(call_reader *r, const call_sink *s) {
    r->state = TEXT;
    r->later = true;
    release(r, s, r->held.size);
}

/* Goes on when the words before a name are complete: with the words of the call itself, after those
 * of the section, or with the name. */
static void go_on(call_reader *r) {
    while (r->state == OPEN && is_complete(r)) {
        if (r->in_section)
            expect(r, NAME, "");
        else
            expect(r, OPEN, r->form->open);
        r->in_section = true;
    }
}

static bool is_name(char c) {
    return is_word(c) || c == '.';
}

/* Begins the arguments; c is their first byte, or that of the words before the first one. */
static bool begin_arguments(call_reader *r, const call_sink *s, char c) {
    const call_form *f = r->form;
    r->name[r->name_size] = '\0';
    const bool fits = f->writing == CALL_JSON       ? c == '{'
                      : f->writing == CALL_LITERALS ? c == '(' || c == '{'
                                                    : true;
    if (!fits)
        return false;
    r->state = f->writing == CALL_JSON ? JSON : f->writing == CALL_LITERALS ? LITERAL : KEY;
    r->depth = 0;
    r->in_string = false;
    r->named = true;
    r->n_arguments = 0;
    r->literal = (call_literal){.mark = f->quote};
    text_clear(&r->held);
    s->begin(s->user, r->name);
    return true;
}

/* Takes a byte between the name and the arguments. True if it belongs to the arguments. */
static bool take_middle(call_reader *r, const call_sink *s, char c, bool *fits) {
    if (!is_complete(r)) {
        *fits = take_want(r, c);
        if (*fits && is_complete(r) && r->form->writing == CALL_EACH)
            *fits = begin_arguments(r, s, c);
        return false;
    }
    if (is_blank(c) && r->form->writing != CALL_EACH)
        return false;
    *fits = begin_arguments(r, s, c);
    return *fits;
}

/* Takes a byte before the arguments. Returns true if it was taken. */
static bool take_head(call_reader *r, const call_sink *s, char c) {
    bool fits = true, again = false;
    if (r->state == OPEN) {
        fits = take_want(r, c);
        go_on(r);
    } else if (r->state == NAME && is_name(c)) {
        r->name[r->name_size] = c;
        fits = ++r->name_size < CALL_NAME_BYTES;
    } else if (r->state == NAME && r->name_size == 0) {
        fits = is_blank(c);
    } else {
        if (r->state == NAME) {
            r->state = MIDDLE;
            r->want = r->form->middle;
            r->in_hole = false;
        }
        again = take_middle(r, s, c, &fits);
    }
    if (r->state >= JSON)
        return !again;
    text_add(&r->held, &c, 1);
    if (!fits || r->held.size >= CALL_HEAD_BYTES)
        give_up(r, s);
    return true;
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* Passes on the JSON that was made. */
static void flush(call_reader *r, const call_sink *s) {
    if (r->out.size > 0)
        s->arguments(s->user, r->out.bytes, r->out.size);
    r->held.failed = r->held.failed || r->out.failed;
    text_clear(&r->out);
}

/* The arguments are complete. */
static void end_arguments(call_reader *r, const call_sink *s) {
    flush(r, s);
    s->end(s->user);
    text_clear(&r->held);
    r->state = CLOSE;
    r->want = r->form->close;
    r->in_string = false;
    r->escaped = false;
    r->later = true;
}

/* True if c is the last byte of the JSON. */
static bool ends_json(call_reader *r, char c) {
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

/* Takes the bytes that belong to JSON. Returns how many. */
static size_t take_json(call_reader *r, const call_sink *s, const char *bytes, size_t size) {
    size_t n = 0;
    bool ended = false;
    while (n < size && !ended)
        ended = ends_json(r, bytes[n++]);
    s->arguments(s->user, bytes, n);
    if (ended)
        end_arguments(r, s);
    return n;
}

/* Something else than a literal ends the arguments, which are not JSON then. */
static void take_literal(call_reader *r, const call_sink *s, char c) {
    const literal_end end = literal_take(&r->literal, c, &r->out);
    if (end != LITERAL_MORE)
        end_arguments(r, s);
}

/* ---- arguments, each by itself --------------------------------------------------------------- */

/* True if held bytes, without blanks, begin the words; *whole: they are the words. */
static bool begins(const call_reader *r, const char *words, bool *whole) {
    size_t i = 0;
    words = after_blanks(words);
    while (i < r->held.size) {
        if (is_blank(r->held.bytes[i])) {
            i++;
            continue;
        }
        if (*words != r->held.bytes[i])
            return false;
        words = after_blanks(words + 1);
        i++;
    }
    *whole = *words == '\0';
    return true;
}

/* True if the held bytes end with the words. */
static bool ends_with(const call_reader *r, const char *words) {
    const size_t n = strlen(words);
    return n > 0 && r->held.size >= n && memcmp(r->held.bytes + r->held.size - n, words, n) == 0;
}

static void open_value(call_reader *r, size_t n_words, bool raw) {
    const call_form *f = r->form;
    const size_t size = r->held.size - n_words;
    const bool differ = strcmp(f->text_open, f->json_open) != 0;
    r->value = CALL_VALUE_ANY;
    if (differ)
        r->value = raw ? CALL_VALUE_TEXT : CALL_VALUE_JSON;
    else if (r->types.value != NULL)
        r->value = r->types.value(r->types.user, r->name, r->held.bytes, size);
    r->shut = raw ? f->text_close : f->json_close;
    text_print(&r->out, "%s", r->n_arguments++ > 0 ? ", " : "");
    text_quote(&r->out, r->held.bytes, size);
    text_print(&r->out, ": ");
    text_add(&r->out, "\"", r->value == CALL_VALUE_TEXT);
    text_clear(&r->held);
    r->state = VALUE;
}

/* Takes a byte of the words before an argument's name, or after the last argument. */
static void take_before_key(call_reader *r, const call_sink *s, char c) {
    const call_form *f = r->form;
    char words[2 * CALL_WORD_BYTES];
    bool key = false, close = false;
    text_add(&r->held, &c, 1);
    (void)strcpy(words, r->n_arguments > 0 ? f->comma : "");
    (void)strcat(words, f->key_open);
    const bool may_key = !r->held.failed && begins(r, words, &key);
    if (*after_blanks(words) == '\0' && is_word(c)) { /* the name follows at once */
        text_add(&r->out, "{", r->n_arguments == 0);
        r->matched = 1;
        return;
    }
    const bool may_close = !r->held.failed && begins(r, f->close, &close);
    if (may_close && close) {
        text_add(&r->out, "{", r->n_arguments == 0);
        text_add(&r->out, "}", 1);
        end_arguments(r, s);
        r->want = "";
    } else if (may_key && key) {
        text_add(&r->out, "{", r->n_arguments == 0);
        text_clear(&r->held);
        r->matched = 1; /* in the name */
    } else if (!may_key && !may_close) {
        text_clear(&r->held);
    }
}

static void take_key(call_reader *r, const call_sink *s, char c) {
    const call_form *f = r->form;
    if (r->matched == 0) {
        take_before_key(r, s, c);
        return;
    }
    text_add(&r->held, &c, 1);
    const bool raw = ends_with(r, f->text_open), json = ends_with(r, f->json_open);
    if (!raw && !json)
        return;
    r->matched = 0;
    open_value(r, strlen(raw ? f->text_open : f->json_open), raw);
}

/* Writes a value that was held, as JSON if it is a value other than a text, or else as a text. */
static void end_held_value(call_reader *r) {
    text made = {0};
    if (literal_value(r->held.bytes, r->held.size, &made) && !made.failed && made.bytes[0] != '"')
        text_add(&r->out, made.bytes, made.size);
    else
        text_quote(&r->out, r->held.bytes, r->held.size);
    text_free(&made);
}

/* Texts are passed on as they come, as far as they cannot be the words after them. */
static void take_value(call_reader *r, char c) {
    const tern_stops shut = {&r->shut, 1};
    text_add(&r->held, &c, 1);
    if (r->held.failed)
        return;
    const size_t n = tern_stops_match(&shut, r->held.bytes, r->held.size);
    const size_t kept = n > 0 ? n : tern_stops_held(&shut, r->held.bytes, r->held.size);
    if (r->value == CALL_VALUE_TEXT) {
        for (size_t i = 0; i < r->held.size - kept; i++)
            literal_escape(&r->out, r->held.bytes[i]);
        drop(r, r->held.size - kept);
        text_add(&r->out, "\"", n > 0);
    } else if (n > 0) {
        r->held.size -= n;
        end_held_value(r);
    }
    if (n > 0) {
        text_clear(&r->held);
        r->matched = 0;
        r->state = KEY;
    }
}

/* ---- after the arguments --------------------------------------------------------------------- */

/* Takes a byte after the arguments. Other members of the call are skipped, and texts in them as a
 * whole. */
static void take_close(call_reader *r, char c) {
    if (r->in_string || r->escaped) {
        r->in_string = r->escaped || c != '"';
        r->escaped = !r->escaped && c == '\\';
    } else if (!take_want(r, c)) {
        r->in_string = c == '"';
        r->want = r->form->close;
        (void)take_want(r, c);
    }
}

/* Takes a byte between two calls of a section: another one begins, or the section ends. */
static void take_next(call_reader *r, char c) {
    const call_form *f = r->form;
    char words[2 * CALL_WORD_BYTES];
    bool open = false, shut = false;
    if (r->in_string || r->escaped) {
        r->in_string = r->escaped || c != '"';
        r->escaped = !r->escaped && c == '\\';
        return;
    }
    text_add(&r->held, &c, 1);
    (void)strcpy(words, f->separator);
    (void)strcat(words, f->open);
    char *hole = strchr(words, CALL_HOLE);
    const char *rest = hole != NULL ? strchr(f->open, CALL_HOLE) : "";
    if (hole != NULL)
        *hole = '\0';
    const bool may_open = !r->held.failed && begins(r, words, &open);
    const bool may_shut = !r->held.failed && begins(r, f->section_close, &shut);
    if (may_open && open) {
        expect(r, OPEN, rest);
        go_on(r);
    } else if (may_shut && shut) {
        r->state = TEXT;
        text_clear(&r->held);
    } else if (!may_open && !may_shut) {
        r->in_string = c == '"';
        text_clear(&r->held);
    }
}

/* Goes on where all words after a call have come. */
static void leave_close(call_reader *r) {
    if (r->state != CLOSE || !is_complete(r))
        return;
    r->state = r->form->section_close[0] != '\0' ? NEXT : TEXT;
    text_clear(&r->held);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Takes a byte, or some of JSON. Returns how many were taken. */
static size_t take(call_reader *r, const call_sink *s, const char *trigger, const char *bytes,
                   size_t size) {
    switch (r->state) {
    case TEXT:
        take_text(r, s, trigger, bytes[0]);
        go_on(r);
        return 1;
    case JSON:
        return take_json(r, s, bytes, size);
    case LITERAL:
        take_literal(r, s, bytes[0]);
        return 1;
    case KEY:
        take_key(r, s, bytes[0]);
        return 1;
    case VALUE:
        take_value(r, bytes[0]);
        return 1;
    case CLOSE:
        take_close(r, bytes[0]);
        return 1;
    case NEXT:
        take_next(r, bytes[0]);
        return 1;
    default:
        return take_head(r, s, bytes[0]);
    }
}

void call_reader_take(call_reader *r, const call_sink *s, const char *bytes, size_t size) {
    char trigger[CALL_TRIGGER_BYTES + 1];
    if (r->form == NULL) {
        tell(s, bytes, size);
        return;
    }
    (void)call_form_trigger(r->form, trigger);
    const char *only = trigger;
    const tern_stops triggers = {&only, 1};
    for (size_t i = 0; i < size && !r->held.failed;) {
        i += take(r, s, trigger, bytes + i, size - i);
        leave_close(r);
    }
    if (r->state >= JSON)
        flush(r, s);
    if (r->state == TEXT && !r->held.failed) {
        const bool may = !r->form->at_start || !r->later;
        const size_t n = may ? tern_stops_held(&triggers, r->held.bytes, r->held.size) : 0;
        release(r, s, count_certain(r, n));
    }
}

void call_reader_finish(call_reader *r, const call_sink *s) {
    const size_t n = r->held.size;
    if (r->state == TEXT && !r->held.failed && !(r->named && count_blanks(r->held.bytes, n) == n))
        release(r, s, n);
}

void call_reader_free(call_reader *r) {
    text_free(&r->held);
    text_free(&r->out);
}
