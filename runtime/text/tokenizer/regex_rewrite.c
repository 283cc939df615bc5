/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/tokenizer/regex_rewrite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/text/tokenizer/regex.h"

/* Unicode White_Space: 25 characters. U+180E left it in Unicode 6.3. */
#define SPACE                                                                                      \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}"             \
    "\\x{202f}\\x{205f}\\x{3000}"
/* Alphabetic (letters, Nl, and Other_Alphabetic characters that are not marks), Mark, Nd, Pc. */
#define WORD                                                                                       \
    "\\p{L}\\p{Nl}\\p{M}\\p{Nd}\\p{Pc}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}"                    \
    "\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"

typedef struct tern_rewriter {
    tern_span in;
    size_t at;
    tern_regex_text out;
    size_t capacity;
    bool out_of_memory;
    char *why;
} tern_rewriter;

static void put_bytes(tern_rewriter *r, const char *bytes, size_t size) {
    if (r->out_of_memory)
        return;
    if (r->capacity - r->out.size < size) {
        const size_t capacity = 2 * r->capacity + size + 64;
        char *grown = realloc(r->out.data, capacity);
        if (grown == NULL) {
            r->out_of_memory = true;
            return;
        }
        r->out.data = grown;
        r->capacity = capacity;
    }
    memcpy(r->out.data + r->out.size, bytes, size);
    r->out.size += size;
}

static void put(tern_rewriter *r, const char *text) {
    put_bytes(r, text, strlen(text));
}

static bool has(const tern_rewriter *r, const char *text) {
    const size_t size = strlen(text);
    return r->in.size - r->at >= size && memcmp(r->in.data + r->at, text, size) == 0;
}

/* The character `ahead` places on; NUL at the end (and where the pattern holds one). */
static char peek(const tern_rewriter *r, size_t ahead) {
    return r->in.size - r->at > ahead ? r->in.data[r->at + ahead] : '\0';
}

static bool at_end(const tern_rewriter *r) {
    return r->at >= r->in.size;
}

static bool refuse(tern_rewriter *r, const char *what) {
    (void)snprintf(r->why, TERN_REGEX_WHY_BYTES, "%s at byte %zu is not supported", what, r->at);
    return false;
}

/* Copies n bytes of the pattern. */
static bool copy(tern_rewriter *r, size_t n) {
    put_bytes(r, r->in.data + r->at, n);
    r->at += n;
    return true;
}

static bool is_hex(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_letter_or_digit(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* ---- escapes --------------------------------------------------------------------------------- */

/* Rewrites \p{..} and \P{..}: a category or a script. PCRE2 refuses what it does not know. */
static bool rewrite_property(tern_rewriter *r) {
    if (peek(r, 2) != '{')
        return refuse(r, "a property without braces");
    size_t n = 3 + (peek(r, 3) == '^');
    const size_t name = n;
    while (is_letter_or_digit(peek(r, n)) || peek(r, n) == '_')
        n++;
    if (n == name || n - name > 40 || peek(r, n) != '}')
        return refuse(r, "a property that is not a name");
    return copy(r, n + 1);
}

/* Rewrites a character by its number: \xHH below 0x80, \x{H..}, \uHHHH. */
static bool rewrite_number(tern_rewriter *r) {
    const bool braces = peek(r, 1) == 'x' && peek(r, 2) == '{';
    const size_t start = braces ? 3 : 2;
    const size_t most = braces ? 8 : peek(r, 1) == 'x' ? 2 : 4;
    size_t n = 0;
    while (n < most && is_hex(peek(r, start + n)))
        n++;
    if (n == 0 || (braces && peek(r, start + n) != '}') || (peek(r, 1) == 'u' && n != 4))
        return refuse(r, "an invalid character number");
    if (!braces && peek(r, 1) == 'x' && n == 2 && peek(r, start) >= '8')
        return refuse(r, "a byte that is not a character");
    put(r, "\\x{");
    put_bytes(r, r->in.data + r->at + start, n);
    put(r, "}");
    r->at += start + n + braces;
    return true;
}

/* Returns the set of characters that an escape means; NULL for other escapes. */
static const char *set_escape(char c, bool in_set) {
    switch (c) {
    case 's':
        return in_set ? SPACE : "[" SPACE "]";
    case 'S': /* PCRE2's own also excludes U+180E */
        return in_set ? "\\S\\x{180e}" : "[^" SPACE "]";
    case 'w':
        return in_set ? WORD : "[" WORD "]";
    case 'W':
        return in_set ? NULL : "[^" WORD "]";
    case 'd':
        return "\\p{Nd}";
    case 'D':
        return "\\P{Nd}";
    default:
        return NULL;
    }
}

static bool rewrite_escape(tern_rewriter *r, bool in_set) {
    const char c = peek(r, 1);
    const char *set = set_escape(c, in_set);
    if (set != NULL) {
        put(r, set);
        r->at += 2;
        return true;
    }
    if (c == 'p' || c == 'P')
        return rewrite_property(r);
    if (c == 'x' || c == 'u')
        return rewrite_number(r);
    if (c == 'v') { /* in PCRE2 it is a set */
        put(r, "\\x{b}");
        r->at += 2;
        return true;
    }
    const char *same = in_set ? "rntfae" : "rntfaeAz";
    if (c != '\0' && strchr(same, c) != NULL)
        return copy(r, 2);
    if (r->in.size - r->at < 2 || is_letter_or_digit(c)) {
        char what[] = "the escape \\?";
        what[sizeof what - 2] = c != '\0' ? c : ' ';
        return refuse(r, what);
    }
    if ((unsigned char)c >= 0x80 || c == '\0') { /* stands for itself */
        r->at++;
        return copy(r, 1);
    }
    return copy(r, 2);
}

/* ---- sets ------------------------------------------------------------------------------------ */

static bool rewrite_set(tern_rewriter *r) {
    (void)copy(r, 1);
    if (peek(r, 0) == '^')
        (void)copy(r, 1);
    for (bool first = true;; first = false) {
        if (at_end(r))
            return refuse(r, "a set that does not end");
        if (peek(r, 0) == ']' && !first)
            return copy(r, 1);
        if (has(r, "&&"))
            return refuse(r, "&& in a set");
        if (peek(r, 0) == '[')
            return refuse(r, "a set or class inside of a set");
        if (peek(r, 0) == ']')
            return refuse(r, "a set that begins with ]");
        if (peek(r, 0) != '\\')
            (void)copy(r, 1);
        else if (!rewrite_escape(r, true))
            return false;
    }
}

/* ---- groups and repetitions ------------------------------------------------------------------ */

static bool rewrite_group(tern_rewriter *r) {
    static const char *const same[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?i:", "(?-i:", "(?>"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (has(r, same[i]))
            return copy(r, strlen(same[i]));
    if (peek(r, 1) == '?' || peek(r, 1) == '*')
        return refuse(r, "this kind of group");
    put(r, "(?:");
    r->at++;
    return true;
}

/* {n}, {n,}, {n,m} and {,m}; any other brace is a character. */
static bool rewrite_brace(tern_rewriter *r) {
    size_t n = 1;
    while (peek(r, n) >= '0' && peek(r, n) <= '9')
        n++;
    const bool low = n > 1;
    const bool comma = peek(r, n) == ',';
    const size_t high = n + comma;
    n = high;
    while (comma && peek(r, n) >= '0' && peek(r, n) <= '9')
        n++;
    if (peek(r, n) != '}' || (!low && n == high)) {
        put(r, "\\{");
        r->at++;
        return true;
    }
    if (n > 12)
        return refuse(r, "a repetition as long as this");
    const char next = peek(r, n + 1);
    if (next == '+' || next == '?' || next == '*')
        return refuse(r, "a repetition of a repetition");
    put(r, low ? "{" : "{0");
    r->at++;
    return copy(r, n);
}

static bool rewrite_one(tern_rewriter *r) {
    switch (peek(r, 0)) {
    case '\\':
        return rewrite_escape(r, false);
    case '[':
        return rewrite_set(r);
    case '(':
        return rewrite_group(r);
    case '{':
        return rewrite_brace(r);
    case '}': /* alone, it is a character */
        put(r, "\\}");
        r->at++;
        return true;
    default:
        return copy(r, 1);
    }
}

tern_status tern_regex_rewrite(tern_span pattern, tern_regex_text *out, char *why) {
    tern_rewriter r = {.in = pattern, .why = why};
    bool good = true;
    while (good && !at_end(&r) && !r.out_of_memory)
        good = rewrite_one(&r);
    if (good && !r.out_of_memory && r.out.data == NULL) { /* the empty pattern */
        r.out.data = malloc(1);
        r.out_of_memory = r.out.data == NULL;
    }
    if (good && !r.out_of_memory) {
        *out = r.out;
        return TERN_OK;
    }
    free(r.out.data);
    if (good)
        (void)snprintf(why, TERN_REGEX_WHY_BYTES, "no memory for it");
    return good ? TERN_ERR_NOMEM : TERN_ERR_TOKENIZER_PRE;
}
