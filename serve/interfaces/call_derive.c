/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/interfaces/call_derive.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/read.h"
#include "serve/interfaces/call_literal.h"

/* Part of a text. */
typedef struct part {
    const char *at;
    size_t n;
} part;

static part between(const char *from, const char *to) {
    return (part){from, (size_t)(to - from)};
}

static part whole(const char *words) {
    return (part){words, strlen(words)};
}

static part first(part p, size_t n) {
    return (part){p.at, n};
}

static part without_first(part p, size_t n) {
    return (part){p.at + n, p.n - n};
}

static part without_last(part p, size_t n) {
    return (part){p.at, p.n - n};
}

static bool equal(part a, part b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.at, b.at, a.n) == 0);
}

static const char *find(part p, const char *word) {
    return p.n > 0 ? memmem(p.at, p.n, word, strlen(word)) : NULL;
}

/* Stores a part as words; false if it is too long. */
static bool store(part p, call_word out) {
    if (p.n >= CALL_WORD_BYTES)
        return false;
    if (p.n > 0)
        memcpy(out, p.at, p.n);
    out[p.n] = '\0';
    return true;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static part trim_end(part p) {
    while (p.n > 0 && is_blank(p.at[p.n - 1]))
        p.n--;
    return p;
}

static part trim_start(part p) {
    while (p.n > 0 && is_blank(p.at[0]))
        p = without_first(p, 1);
    return p;
}

/* ---- what parts have in common --------------------------------------------------------------- */

/* The place of a '<' whose tag is still open at the end of p; p.n: there is none. */
static size_t open_tag(part p) {
    size_t i = p.n;
    while (i > 0 && p.at[i - 1] != '<' && p.at[i - 1] != '>')
        i--;
    return i > 0 && p.at[i - 1] == '<' ? i - 1 : p.n;
}

static bool inside_character(char c) {
    return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t common_start(part a, part b) {
    size_t n = 0;
    while (n < a.n && n < b.n && a.at[n] == b.at[n])
        n++;
    while (n > 0 && n < a.n && inside_character(a.at[n]))
        n--;
    return n;
}

/* Two words may differ in a digit that counts. */
static bool agree(char a, char b) {
    return a == b || (isdigit((unsigned char)a) && isdigit((unsigned char)b));
}

/* Bytes at the end that both have; a tag is never cut. */
static size_t common_end(part a, part b) {
    size_t n = 0;
    while (n < a.n && n < b.n && agree(a.at[a.n - n - 1], b.at[b.n - n - 1]))
        n++;
    while (n > 0 && inside_character(a.at[a.n - n]))
        n--;
    const part before_a = without_last(a, n), before_b = without_last(b, n);
    const bool inside = open_tag(before_a) < before_a.n || open_tag(before_b) < before_b.n;
    const char *shut = inside && n > 0 ? memchr(a.at + a.n - n, '>', n) : NULL;
    if (shut != NULL)
        n = (size_t)(a.at + a.n - shut) - 1;
    return n;
}

/* Writes words of two calls, with a hole where they differ in a digit. */
static bool store_both(part a, part b, call_word out) {
    if (a.n != b.n || !store(a, out))
        return false;
    for (size_t i = 0; i < a.n; i++) {
        if (a.at[i] == b.at[i])
            continue;
        if (!agree(a.at[i], b.at[i]))
            return false;
        out[i] = CALL_HOLE;
    }
    return true;
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* A call in a text. */
typedef struct cut {
    part middle;
    const char *begin, *end; /* of the arguments */
} cut;

static bool is_value(part p, const char *wanted) {
    json_t *a = json_read(p.at, p.n, "", NULL);
    json_t *b = json_read(wanted, strlen(wanted), "", NULL);
    const bool same = a != NULL && json_equal(a, b);
    json_decref(a);
    json_decref(b);
    return same;
}

/* The end of the literal at the beginning of p, if it has the value that is wanted; or NULL. */
static const char *literal_at(part p, const char *mark, const char *wanted) {
    call_literal l = {.mark = mark};
    text json = {0};
    literal_end end = LITERAL_MORE;
    size_t n = 0;
    while (n < p.n && end == LITERAL_MORE)
        end = literal_take(&l, p.at[n++], &json);
    const bool found =
        end == LITERAL_ENDED && !json.failed && is_value((part){json.bytes, json.size}, wanted);
    text_free(&json);
    return found ? p.at + n : NULL;
}

/* The end of the JSON object at the beginning of p, if it is the one that is wanted. */
static const char *json_at(part p, const char *wanted) {
    size_t depth = 0;
    bool inside = false;
    for (size_t i = 0; i < p.n; i++) {
        if (inside && p.at[i] == '\\')
            i++;
        else if (p.at[i] == '"')
            inside = !inside;
        else if (!inside && p.at[i] == '{')
            depth++;
        else if (!inside && p.at[i] == '}' && --depth == 0)
            return is_value(first(p, i + 1), wanted) ? p.at + i + 1 : NULL;
    }
    return NULL;
}

static bool cut_json(part after_name, const char *wanted, cut *out) {
    for (size_t i = 0; i < after_name.n; i++) {
        const char *end =
            after_name.at[i] == '{' ? json_at(without_first(after_name, i), wanted) : NULL;
        if (end != NULL) {
            *out = (cut){first(after_name, i), after_name.at + i, end};
            return true;
        }
    }
    return false;
}

static bool cut_literal(part after_name, const char *mark, const char *wanted, cut *out) {
    for (size_t i = 0; i < after_name.n && i < CALL_WORD_BYTES; i++) {
        const bool bracket = after_name.at[i] == '(' || after_name.at[i] == '{';
        const char *end = bracket ? literal_at(without_first(after_name, i), mark, wanted) : NULL;
        if (end != NULL) {
            *out = (cut){first(after_name, i), after_name.at + i, end};
            return true;
        }
    }
    return false;
}

/* Finds how names and values of a literal are tied together. */
static bool read_literal(const cut *c, const char *mark, call_form *out) {
    const part all = between(c->begin, c->end);
    const char *key = find(all, "a_text"), *value = find(all, CALL_PROBE_TEXT_1);
    const char *next = find(all, "b_text");
    if (key == NULL || value == NULL || next == NULL || key > value || value > next)
        return false;
    const char *assign = key + strlen("a_text"), *end = value + strlen(CALL_PROBE_TEXT_1);
    const size_t around = mark[0] != '\0'                         ? strlen(mark)
                          : value[-1] == '"' || value[-1] == '\'' ? 1
                                                                  : 0;
    out->quoted = key[-1] == '"' || key[-1] == '\'';
    out->bracket = *c->begin;
    return store(between(assign + out->quoted, value - around), out->assign) &&
           store(between(end + around, next - out->quoted), out->comma) &&
           store(whole(mark), out->quote);
}

/* ---- arguments one by one -------------------------------------------------------------------- */

enum { N_ARGUMENTS = 4 };

/* Finds names and values of the arguments in their order; false if one is missing. */
static bool find_arguments(part after_name, part keys[N_ARGUMENTS], part values[N_ARGUMENTS]) {
    static const char *const words[N_ARGUMENTS][2] = {{"a_text", CALL_PROBE_TEXT_1},
                                                      {"b_text", CALL_PROBE_TEXT_2},
                                                      {"c_number", CALL_PROBE_NUMBER_1},
                                                      {"d_number", CALL_PROBE_NUMBER_2}};
    part rest = after_name;
    for (size_t i = 0; i < N_ARGUMENTS; i++) {
        const char *key = find(rest, words[i][0]);
        const char *value = key != NULL ? find(between(key, rest.at + rest.n), words[i][1]) : NULL;
        if (value == NULL)
            return false;
        keys[i] = (part){key, strlen(words[i][0])};
        values[i] = (part){value, strlen(words[i][1])};
        rest = between(value + values[i].n, rest.at + rest.n);
    }
    return true;
}

static const char *end_of(part p) {
    return p.at + p.n;
}

/* Takes the words around names and values. On success, *after is what stands after the last value
 * and its words. */
static bool read_each(part after_name, call_form *out, cut *c) {
    part keys[N_ARGUMENTS], values[N_ARGUMENTS];
    if (!find_arguments(after_name, keys, values))
        return false;
    const part before = between(after_name.at, keys[0].at);
    const part texts[] = {between(end_of(keys[0]), values[0].at),
                          between(end_of(keys[1]), values[1].at)};
    const part others[] = {between(end_of(keys[2]), values[2].at),
                           between(end_of(keys[3]), values[3].at)};
    const part after_text = between(end_of(values[0]), keys[1].at);
    const part after_json = between(end_of(values[2]), keys[3].at);
    const part last = between(end_of(values[3]), after_name.at + after_name.n);
    size_t n = common_end(before, after_text);
    const size_t m = common_end(before, after_json);
    n = n < m ? n : m;
    const part text_end = without_last(after_text, n), json_end = without_last(after_json, n);
    const size_t shut = common_start(json_end, last);
    const part comma = without_first(json_end, shut);
    if (!equal(texts[0], texts[1]) || !equal(others[0], others[1]) || shut == 0 ||
        text_end.n <= comma.n || texts[0].n == 0 || others[0].n == 0)
        return false;
    *c = (cut){without_last(before, n), keys[0].at, last.at + shut};
    return store((part){before.at + before.n - n, n}, out->key_open) &&
           store(texts[0], out->text_open) && store(others[0], out->json_open) &&
           store(without_last(text_end, comma.n), out->text_close) &&
           store(first(json_end, shut), out->json_close) && store(comma, out->comma);
}

/* ---- the words around calls ------------------------------------------------------------------ */

/* Finds how the call whose name ends at the beginning of p has its arguments. */
static bool read_arguments(part p, const char *arguments, call_form *out, cut *c) {
    static const char *const marks[] = {"", "<|\"|>", "<escape>"};
    out->writing = CALL_JSON;
    if (cut_json(p, arguments, c))
        return true;
    out->writing = CALL_LITERALS;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (cut_literal(p, marks[i], arguments, c))
            return read_literal(c, marks[i], out);
    out->writing = CALL_EACH;
    return read_each(p, out, c);
}

/* The same for another call, whose form is known. */
static bool cut_again(part p, const char *arguments, const call_form *f, cut *c) {
    call_form same = *f;
    return f->writing == CALL_JSON       ? cut_json(p, arguments, c)
           : f->writing == CALL_LITERALS ? cut_literal(p, f->quote, arguments, c)
                                         : read_each(p, &same, c);
}

/* Cuts a tail after or before a tag that two turns end with: only the end of it is common. With
 * more than the bracket, it is a tag of the same kind that ends turns. */
static void kept_tag(part *tail, part kept, size_t tag, const char *shut) {
    enum { BRACKET = 2 };
    const size_t common = (size_t)(shut + 1 - (kept.at + kept.n));
    tail->n = common > BRACKET ? tag : kept.n + common;
}

/* Removes what ends a turn: what an answer without calls ends with too, or a token that ends texts.
 */
static part without_turn_end(const call_samples *s, part tail, part plain) {
    const char *answer = find(plain, CALL_PROBE_ANSWER);
    const part post = between(answer + strlen(CALL_PROBE_ANSWER), plain.at + plain.n);
    size_t n = 0;
    while (n < tail.n && n < post.n && tail.at[tail.n - n - 1] == post.at[post.n - n - 1])
        n++;
    const part kept = without_last(tail, n);
    const size_t tag = open_tag(kept);
    const char *shut = tag < kept.n ? memchr(kept.at + kept.n, '>', n) : NULL;
    if (shut != NULL) /* a tag of its own, unless it is the same but for a few letters */
        kept_tag(&tail, kept, tag, shut);
    else
        tail = kept;
    for (size_t id = 0; id < tern_tokenizer_size(s->tokenizer); id++) {
        size_t size = 0;
        const char *bytes = tern_token_ends_text(s->tokenizer, (int32_t)id)
                                ? tern_token_bytes(s->tokenizer, (int32_t)id, true, &size)
                                : NULL;
        const char *at = size > 0 && tail.n > 0 ? memmem(tail.at, tail.n, bytes, size) : NULL;
        if (at != NULL)
            tail.n = (size_t)(at - tail.at);
    }
    return trim_end(tail);
}

/* Removes an empty thought at the beginning of an answer. */
static part without_thought(part p) {
    for (size_t i = p.n; i-- > 5;) {
        if (strncasecmp(p.at + i - 5, "think", 5) != 0)
            continue;
        const char *shut = memchr(p.at + i, '>', p.n - i);
        const part before = first(p, i);
        if (shut != NULL && open_tag(before) < before.n)
            return trim_start(between(shut + 1, p.at + p.n));
    }
    return trim_start(p);
}

/* The words before the first name that belong to calls alone. */
static part opening(part one, part plain, const char *name) {
    const char *answer = find(plain, CALL_PROBE_ANSWER);
    const part before = between(plain.at, answer), all = between(one.at, name);
    const size_t n = common_start(all, before);
    const size_t tag = open_tag(first(all, n));
    return without_thought(without_first(all, tag < n ? tag : n));
}

/* Splits the words around two calls. */
static bool split(part open, part gap, part tail, call_form *out) {
    const size_t n = common_end(open, gap);
    const part rest = without_last(gap, n);
    const size_t m = common_start(rest, tail);
    const bool section = open.n > n;
    return n + open.n > 0 && store(first(open, open.n - n), out->section_open) &&
           store_both((part){open.at + open.n - n, n}, (part){gap.at + gap.n - n, n}, out->open) &&
           store(first(rest, m), out->close) && store(without_first(rest, m), out->separator) &&
           store(section ? without_first(tail, m) : (part){"", 0}, out->section_close) &&
           (!section || out->section_close[0] != '\0');
}

/* The text after the question. */
static part answer_of(const char *written) {
    const char *asked = written != NULL ? strstr(written, CALL_PROBE_ASKED) : NULL;
    for (const char *next = asked; next != NULL; next = strstr(next + 1, CALL_PROBE_ASKED))
        asked = next;
    return asked != NULL ? whole(asked + strlen(CALL_PROBE_ASKED)) : (part){"", 0};
}

/* Replaces ids by holes in place. Ids that have the name in them stay. */
static void drop_ids(char *written, const char *const ids[2]) {
    for (size_t i = 0; i < 2 && written != NULL; i++) {
        const size_t n = strlen(ids[i]);
        for (char *at = strstr(written, ids[i]); at != NULL && strchr(ids[i], '.') == NULL;
             at = strstr(at + 1, ids[i])) {
            *at = CALL_HOLE;
            memmove(at + 1, at + n, strlen(at + n) + 1);
        }
    }
}

static bool derive_one(const call_samples *s, part one, part plain, call_form *out) {
    cut c;
    const char *name = find(one, CALL_PROBE_FIRST);
    const part after = between(name + strlen(CALL_PROBE_FIRST), one.at + one.n);
    if (find(after, CALL_PROBE_FIRST) != NULL || !read_arguments(after, s->arguments, out, &c))
        return false;
    const part open = opening(one, plain, name);
    const part tail = without_turn_end(s, between(c.end, one.at + one.n), plain);
    out->single = true;
    return open.n > 0 && store(open, out->open) && store(c.middle, out->middle) &&
           store(tail, out->close);
}

static bool derive_two(const call_samples *s, part two, part plain, call_form *out) {
    cut a, b;
    const char *name = find(two, CALL_PROBE_FIRST), *other = find(two, CALL_PROBE_SECOND);
    if (name == NULL || other == NULL || other < name)
        return false;
    const part after = between(name + strlen(CALL_PROBE_FIRST), two.at + two.n);
    const part later = between(other + strlen(CALL_PROBE_SECOND), two.at + two.n);
    if (!cut_again(after, s->arguments, out, &a) || !cut_again(later, s->arguments, out, &b))
        return false;
    const part open = opening(two, plain, name), gap = between(a.end, other);
    const part tail = without_turn_end(s, between(b.end, two.at + two.n), plain);
    out->single = false;
    return a.end < other && store_both(a.middle, b.middle, out->middle) &&
           split(open, gap, tail, out);
}

bool call_derive(const call_samples *s, call_form *out) {
    *out = (call_form){0};
    drop_ids(s->one, s->ids);
    drop_ids(s->two, s->ids);
    const part one = answer_of(s->one), two = answer_of(s->two), plain = answer_of(s->plain);
    if (find(plain, CALL_PROBE_ANSWER) == NULL || find(one, CALL_PROBE_FIRST) == NULL ||
        !derive_one(s, one, plain, out))
        return false;
    call_form both = *out;
    if (derive_two(s, two, plain, &both))
        *out = both;
    char trigger[CALL_TRIGGER_BYTES + 1];
    const size_t n = call_form_trigger(out, trigger);
    out->at_start = n < 3;
    return n > 0 && (out->writing != CALL_EACH || out->close[0] != '\0');
}
