/* SPDX-License-Identifier: Apache-2.0 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "runtime/text/tokenizer/regex.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/text/tokenizer/regex_rewrite.h"

struct tern_regex {
    pcre2_code *code;
    tern_regex_alphabet *alphabet; /* NULL: plain text, which is matched as it is */
};

struct tern_regex_scratch {
    pcre2_match_data *match;
    pcre2_match_context *context;
    uint8_t *letters; /* [used] of the texts of all open walks, the innermost last */
    size_t used, capacity;
};

enum {
    MAX_PARENTHESES = 64,
    STEPS_ANYWHERE = 100000,
    STEPS_A_BYTE = 64, /* patterns in use backtrack once over a run, in a few alternatives */
    HEAP_KIB = 1 << 15,
    HEAP_BYTES_A_BYTE = 256, /* memory of one place to backtrack to, without JIT */
    MAX_COUNTED = 1 << 25,   /* bytes; keeps the limits inside 32 bits */
    /*
     * PCRE2 limits the steps from one place of the text. Most places take few. Those that take more
     * are tried by themselves, and a whole walk may spend only so many steps on them: a pattern
     * that looks at all digits that follow, from each of a million, takes hours otherwise.
     */
    FEW_STEPS = 1024,
    PLACES = 1 << 16,     /* that are tried in one call */
    MANY_STEPS = 1 << 27, /* of a walk, and for each letter of its text: */
    MANY_STEPS_A_LETTER = 512
};

static pcre2_code *compile(const char *text, size_t size, uint32_t options, int *number,
                           PCRE2_SIZE *offset) {
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (context == NULL) {
        *number = PCRE2_ERROR_NOMEMORY;
        return NULL;
    }
    (void)pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    (void)pcre2_set_parens_nest_limit(context, MAX_PARENTHESES);
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)text, size, options, number, offset, context);
    pcre2_compile_context_free(context);
    return code;
}

static tern_status explain(int number, char *why) {
    if (number == PCRE2_ERROR_NOMEMORY || number == 121) { /* 121: compiling ran out of memory */
        (void)snprintf(why, TERN_REGEX_WHY_BYTES, "no memory for it");
        return TERN_ERR_NOMEM;
    }
    if (pcre2_get_error_message(number, (PCRE2_UCHAR *)why, TERN_REGEX_WHY_BYTES) < 0)
        (void)snprintf(why, TERN_REGEX_WHY_BYTES, "error %d", number);
    return TERN_ERR_TOKENIZER_PRE;
}

tern_status tern_regex_new(tern_span pattern, bool literal, tern_regex **out, char *why) {
    tern_regex_text text = {NULL, 0, NULL};
    if (pattern.size > TERN_REGEX_MAX_BYTES) {
        (void)snprintf(why, TERN_REGEX_WHY_BYTES, "longer than %d bytes",
                       (int)TERN_REGEX_MAX_BYTES);
        return TERN_ERR_TOKENIZER_PRE;
    }
    uint32_t options = PCRE2_LITERAL | PCRE2_USE_OFFSET_LIMIT;
    if (!literal) {
        options = PCRE2_MULTILINE | PCRE2_USE_OFFSET_LIMIT;
        const tern_status status = tern_regex_rewrite(pattern, &text, why);
        if (status != TERN_OK)
            return status;
        pattern = (tern_span){text.data, text.size};
    }
    tern_regex *r = malloc(sizeof *r);
    int number = PCRE2_ERROR_NOMEMORY;
    PCRE2_SIZE offset;
    pcre2_code *code =
        r != NULL ? compile(pattern.data, pattern.size, options, &number, &offset) : NULL;
    free(text.data);
    if (code == NULL) {
        tern_regex_alphabet_free(&text.alphabet);
        free(r);
        return explain(number, why);
    }
    (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* optional: not available everywhere */
    *r = (tern_regex){code, text.alphabet};
    *out = r;
    return TERN_OK;
}

void tern_regex_free(tern_regex **regex) {
    if (*regex == NULL)
        return;
    pcre2_code_free((*regex)->code);
    tern_regex_alphabet_free(&(*regex)->alphabet);
    free(*regex);
    *regex = NULL;
}

tern_regex_scratch *tern_regex_scratch_new(void) {
    tern_regex_scratch *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->match = pcre2_match_data_create(1, NULL);
    s->context = pcre2_match_context_create(NULL);
    if (s->match == NULL || s->context == NULL) {
        tern_regex_scratch_free(s);
        return NULL;
    }
    return s;
}

void tern_regex_scratch_free(tern_regex_scratch *scratch) {
    if (scratch == NULL)
        return;
    pcre2_match_data_free(scratch->match);
    pcre2_match_context_free(scratch->context);
    free(scratch->letters);
    free(scratch);
}

/* ---- walks ------------------------------------------------------------------------------------
 */

static bool make_room(tern_regex_scratch *s, size_t letters) {
    if (s->capacity - s->used >= letters)
        return true;
    const size_t more = s->capacity + s->capacity / 2 + letters;
    uint8_t *longer = realloc(s->letters, more);
    if (longer == NULL)
        return false;
    s->letters = longer;
    s->capacity = more;
    return true;
}

tern_status tern_regex_walk_begin(tern_regex_walk *w) {
    tern_regex_scratch *s = w->scratch;
    w->base = s->used;
    w->n = w->text.size;
    if (w->regex->alphabet == NULL)
        return TERN_OK;
    if (!make_room(s, w->text.size))
        return TERN_ERR_NOMEM;
    w->n = w->text.size > 0
               ? tern_regex_alphabet_spell(w->regex->alphabet, w->text, s->letters + s->used)
               : 0;
    s->used += w->n;
    return TERN_OK;
}

void tern_regex_walk_end(tern_regex_walk *w) {
    w->scratch->used = w->base;
}

/* The letters of the text. */
static PCRE2_SPTR letters_of(const tern_regex_walk *w) {
    static const uint8_t none[1];
    if (w->regex->alphabet == NULL)
        return (PCRE2_SPTR)w->text.data;
    return w->scratch->letters != NULL ? w->scratch->letters + w->base : none;
}

/* The byte of the text that a letter is at. Letters are asked for in order. */
static size_t byte_of(tern_regex_walk *w, size_t letter) {
    if (w->n == w->text.size)
        return letter;
    for (; w->letter < letter; w->letter++) {
        w->place++;
        while (w->place < w->text.size && ((unsigned char)w->text.data[w->place] & 0xC0) == 0x80)
            w->place++;
    }
    return w->place;
}

/* The letter after one where an empty match was. */
static size_t next_letter(const tern_regex_walk *w, size_t letter) {
    return w->regex->alphabet != NULL || letter >= w->n
               ? letter + 1
               : letter + tern_utf8_next(w->text.data + letter, w->n - letter).size;
}

/* Looks for a match that begins in [from, last]. The machine stack of the JIT may be too small for
 * a pattern; the heap is not. */
static int search_places(const tern_regex_walk *w, size_t from, size_t last, uint32_t steps) {
    const size_t rest = w->n - from;
    const uint32_t left = rest < MAX_COUNTED ? (uint32_t)rest : MAX_COUNTED;
    (void)pcre2_set_match_limit(w->scratch->context, steps);
    (void)pcre2_set_depth_limit(w->scratch->context, steps);
    (void)pcre2_set_heap_limit(w->scratch->context, HEAP_KIB + left / 1024 * HEAP_BYTES_A_BYTE);
    (void)pcre2_set_offset_limit(w->scratch->context, last);
    for (uint32_t options = 0;; options |= PCRE2_NO_JIT) {
        const int found = pcre2_match(w->regex->code, letters_of(w), w->n, from, options,
                                      w->scratch->match, w->scratch->context);
        if (found != PCRE2_ERROR_JIT_STACKLIMIT || (options & PCRE2_NO_JIT) != 0)
            return found;
    }
}

static bool is_stopped(int found) {
    return found == PCRE2_ERROR_MATCHLIMIT || found == PCRE2_ERROR_DEPTHLIMIT;
}

/* Looks for a match at one place that takes more than a few steps, as long as the walk has some
 * left. */
static int search_place(tern_regex_walk *w, size_t at) {
    const size_t rest = w->n - at;
    const uint32_t left = rest < MAX_COUNTED ? (uint32_t)rest : MAX_COUNTED;
    const uint32_t most = STEPS_ANYWHERE + left * STEPS_A_BYTE;
    const uint64_t all = MANY_STEPS + (uint64_t)w->n * MANY_STEPS_A_LETTER;
    int found = PCRE2_ERROR_MATCHLIMIT;
    for (uint32_t steps = FEW_STEPS; is_stopped(found) && steps < most && w->spent < all;) {
        steps = most / 2 > steps ? 2 * steps : most;
        w->spent += steps;
        found = search_places(w, at, at, steps);
    }
    return found;
}

/* Searches once from w->from on. */
static int search(tern_regex_walk *w) {
    size_t places = PLACES;
    for (size_t at = w->from;;) {
        const size_t last = w->n - at < places ? w->n : at + places - 1;
        int found = search_places(w, at, last, FEW_STEPS);
        if (is_stopped(found) && last > at) {
            places = 1; /* to find out which place it is */
            continue;
        }
        if (is_stopped(found))
            found = search_place(w, at);
        if (found != PCRE2_ERROR_NOMATCH || last == w->n)
            return found;
        at = last + 1;
        places = places < PLACES ? 2 * places : PLACES;
    }
}

tern_status tern_regex_next(tern_regex_walk *w, bool *found, size_t *start, size_t *end) {
    *found = false;
    while (w->from <= w->n) {
        const int result = search(w);
        if (result == PCRE2_ERROR_NOMATCH)
            return TERN_OK;
        if (result < 0)
            return result == PCRE2_ERROR_NOMEMORY ? TERN_ERR_NOMEM : TERN_ERR_TOKENIZER_PATTERN;
        const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(w->scratch->match);
        const size_t s = bounds[0], e = bounds[1];
        if (s == e && w->any && w->end == e) { /* go on after the next character */
            w->from = next_letter(w, w->from);
            continue;
        }
        w->from = w->end = e;
        w->any = *found = true;
        *start = byte_of(w, s);
        *end = byte_of(w, e);
        return TERN_OK;
    }
    return TERN_OK;
}
