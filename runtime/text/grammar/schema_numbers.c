/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Numbers between bounds, as decimal digits. Multiples of a step are listed where they are few;
 * otherwise an automaton counts the remainder of the digits, or the digits after the point.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/text/grammar/schema.h"

enum {
    DIGITS = 24,
    MOST_STEP = 128,  /* remainders of an automaton */
    MOST_LISTED = 256 /* multiples of a step */
};

/* How a number is written. */
typedef struct writer {
    tern_exprs *x;
    int most;                           /* digits of a part of a number; -1: any number of them */
    int places;                         /* digits after the point; -1: any number of them */
    unsigned step;                      /* whole numbers are multiples of it */
    uint32_t rules[DIGITS * MOST_STEP]; /* [digits][remainder]: what may follow, + 1; 0: not made */
} writer;

static uint32_t digits(tern_exprs *x, char low, char high, size_t n) {
    const tern_range r = {(unsigned char)low, (unsigned char)high};
    return low > high ? TERN_EXPR_NEVER
                      : tern_expr_repeat(x, tern_expr_bytes(x, &r, 1), (int32_t)n, (int32_t)n);
}

/* ---- whole numbers --------------------------------------------------------------------------- */

static uint32_t some_digit(writer *w, char low, char high, size_t n, unsigned rest);

/* n digits of any kind after which the remainder is 0; `rest` is that of the digits before them. */
static uint32_t any_digits(writer *w, size_t n, unsigned rest) {
    if (w->step == 1)
        return digits(w->x, '0', '9', n);
    if (n == 0)
        return rest == 0 ? TERN_EXPR_EMPTY : TERN_EXPR_NEVER;
    uint32_t *rule = &w->rules[n * MOST_STEP + rest];
    if (*rule == 0) {
        const uint32_t made = tern_expr_rule_new(w->x, "digits", strlen("digits"));
        *rule = made + 1;
        const uint32_t all = some_digit(w, '0', '9', n - 1, rest);
        tern_expr_rule_define(w->x, made, all);
    }
    return tern_expr_rule_use(w->x, *rule - 1);
}

/* A digit from low to high, then n of any kind. */
static uint32_t some_digit(writer *w, char low, char high, size_t n, unsigned rest) {
    if (w->step == 1)
        return tern_expr_pair(w->x, digits(w->x, low, high, 1), any_digits(w, n, 0));
    tern_expr_list choice = {.x = w->x};
    for (char c = low; c <= high; c++)
        tern_expr_add(
            &choice, tern_expr_pair(w->x, digits(w->x, c, c, 1),
                                    any_digits(w, n, (10 * rest + (unsigned)(c - '0')) % w->step)));
    return tern_expr_end_choice(&choice);
}

static unsigned after_digit(const writer *w, unsigned rest, char c) {
    return (10 * rest + (unsigned)(c - '0')) % w->step;
}

/* n digits that are at least, or at most, those of `bound`. */
static uint32_t beyond(writer *w, const char *bound, size_t n, bool above, unsigned rest) {
    if (n == 0)
        return any_digits(w, 0, rest);
    const uint32_t same =
        tern_expr_pair(w->x, digits(w->x, *bound, *bound, 1),
                       beyond(w, bound + 1, n - 1, above, after_digit(w, rest, *bound)));
    const uint32_t other = above ? some_digit(w, (char)(*bound + 1), '9', n - 1, rest)
                                 : some_digit(w, '0', (char)(*bound - 1), n - 1, rest);
    return tern_expr_either(w->x, same, other);
}

/* n digits between those of low and high, low <= high. */
static uint32_t between(writer *w, const char *low, const char *high, size_t n, unsigned rest) {
    tern_exprs *x = w->x;
    if (n == 0)
        return any_digits(w, 0, rest);
    const unsigned of_low = after_digit(w, rest, *low), of_high = after_digit(w, rest, *high);
    const uint32_t first = digits(x, *low, *low, 1);
    if (*low == *high)
        return tern_expr_pair(x, first, between(w, low + 1, high + 1, n - 1, of_low));
    const uint32_t parts[] = {
        tern_expr_pair(x, first, beyond(w, low + 1, n - 1, true, of_low)),
        some_digit(w, (char)(*low + 1), (char)(*high - 1), n - 1, rest),
        tern_expr_pair(x, digits(x, *high, *high, 1), beyond(w, high + 1, n - 1, false, of_high))};
    return tern_expr_either(x, tern_expr_either(x, parts[0], parts[1]), parts[2]);
}

/* Whole numbers low .. high, both >= 0; high < 0: without limit. */
static uint32_t naturals(writer *w, int64_t low, int64_t high) {
    tern_exprs *x = w->x;
    char a[DIGITS];
    char b[DIGITS];
    const size_t from = (size_t)snprintf(a, sizeof a, "%" PRId64, low);
    size_t to = high < 0 ? from : (size_t)snprintf(b, sizeof b, "%" PRId64, high);
    if (high >= 0 && high < low)
        return TERN_EXPR_NEVER;
    if (high < 0 && w->step > 1) /* an automaton of remainders needs to know how many follow */
        to = from > 16 ? from : 16;
    uint32_t all = TERN_EXPR_NEVER;
    for (size_t n = from; n <= to; n++) {
        char least[DIGITS] = "1000000000000000000000";
        char most[DIGITS] = "9999999999999999999999";
        const char *bottom = n == from ? a : least;
        const char *top = n == to && high >= 0 ? b : most;
        all = tern_expr_either(x, all, between(w, bottom, top, n, 0));
    }
    if (high >= 0 || w->step > 1 || (w->most >= 0 && (int)from >= w->most))
        return all;
    const uint32_t longer =
        tern_expr_repeat(x, digits(x, '0', '9', 1), (int32_t)from,
                         w->most < 0 ? TERN_EXPR_UNLIMITED : (int32_t)w->most - 1);
    return tern_expr_either(x, all, tern_expr_pair(x, digits(x, '1', '9', 1), longer));
}

static uint32_t negative(tern_exprs *x, uint32_t number) {
    return tern_expr_pair(x, tern_expr_word(x, "-"), number);
}

/* The first whole number that a bound allows, seen from below (up) or from above. */
static int64_t whole_of(const tern_schema_bound *b, bool up) {
    const int64_t whole = b->at.negative ? -(int64_t)b->at.whole : (int64_t)b->at.whole;
    if (b->at.n == 0)
        return b->open ? whole + (up ? 1 : -1) : whole;
    return up && !b->at.negative ? whole + 1 : !up && b->at.negative ? whole - 1 : whole;
}

static int64_t floor_div(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

/* Whole numbers from low to high (NULL: no bound), times 10^zeros. */
static uint32_t whole_numbers(writer *w, const int64_t *low, const int64_t *high, int zeros) {
    tern_exprs *x = w->x;
    int64_t unit = 1;
    for (int i = 0; i < zeros; i++)
        unit *= 10;
    const int64_t from = low != NULL ? -floor_div(-*low, unit) : 0;
    const int64_t to = high != NULL ? floor_div(*high, unit) : 0;
    const uint32_t after = digits(x, '0', '0', (size_t)zeros);
    uint32_t all = TERN_EXPR_NEVER;
    if (low != NULL && high != NULL && from > to)
        return all;
    if (low == NULL && high == NULL && zeros == 0)
        return tern_expr_pair(x, tern_expr_optional(x, tern_expr_word(x, "-")), naturals(w, 0, -1));
    if (low == NULL || from < 0) {
        const int64_t nearest = high != NULL && to < 0 ? -to : zeros > 0; /* -0 is a number */
        all = negative(x, tern_expr_pair(x, naturals(w, nearest, low != NULL ? -from : -1), after));
    }
    if (zeros > 0 && (low == NULL || from <= 0) && (high == NULL || to >= 0))
        all = tern_expr_either(x, all, tern_expr_word(x, "0"));
    if (high == NULL || to >= 0) {
        const int64_t nearest = low != NULL && from > 0 ? from : zeros > 0;
        all = tern_expr_either(
            x, all, tern_expr_pair(x, naturals(w, nearest, high != NULL ? to : -1), after));
    }
    return all;
}

static uint32_t integers(writer *w, const tern_schema_facts *f, int zeros) {
    const int64_t low = whole_of(&f->low, true), high = whole_of(&f->high, false);
    return whole_numbers(w, f->low.is ? &low : NULL, f->high.is ? &high : NULL, zeros);
}

/* ---- digits after the point ------------------------------------------------------------------ */

/* From place i on: any digits, as many as are left, `least` at least. */
static uint32_t any_places(const writer *w, unsigned i, int32_t least) {
    const int32_t most = w->places < 0 ? TERN_EXPR_UNLIMITED : (int32_t)w->places - (int32_t)i;
    return most != TERN_EXPR_UNLIMITED && most < least
               ? TERN_EXPR_NEVER
               : tern_expr_repeat(w->x, digits(w->x, '0', '9', 1), least, most);
}

static uint32_t zero_places(const writer *w, unsigned i, int32_t least) {
    const int32_t most = w->places < 0 ? TERN_EXPR_UNLIMITED : (int32_t)w->places - (int32_t)i;
    return most != TERN_EXPR_UNLIMITED && most < least
               ? TERN_EXPR_NEVER
               : tern_expr_repeat(w->x, digits(w->x, '0', '0', 1), least, most);
}

/* Not all of them 0. */
static uint32_t positive_places(const writer *w, unsigned i) {
    tern_exprs *x = w->x;
    if (w->places < 0)
        return tern_expr_sequence(
            x,
            (const uint32_t[]){zero_places(w, i, 0), digits(x, '1', '9', 1), any_places(w, i, 0)},
            3);
    tern_expr_list choice = {.x = x};
    for (unsigned k = i; (int)k < w->places; k++)
        tern_expr_add(&choice, tern_expr_sequence(x,
                                                  (const uint32_t[]){digits(x, '0', '0', k - i),
                                                                     digits(x, '1', '9', 1),
                                                                     any_places(w, k + 1, 0)},
                                                  3));
    return tern_expr_end_choice(&choice);
}

static bool is_full(const writer *w, unsigned i) {
    return w->places >= 0 && (int)i >= w->places;
}

static char place_of(const tern_schema_bound *b, unsigned i) {
    return i < b->at.n ? b->at.fraction[i] : '0';
}

/* A digit from low to high, then any. */
static uint32_t place_between(const writer *w, int low, int high, unsigned i) {
    return tern_expr_pair(w->x, digits(w->x, (char)low, (char)high, 1), any_places(w, i + 1, 0));
}

/* From place i on: what makes a fraction that began like the bound's at least as large as it. */
static uint32_t places_from(const writer *w, const tern_schema_bound *b, unsigned i, bool first) {
    if (i >= b->at.n)
        return b->open ? positive_places(w, i) : any_places(w, i, first);
    if (is_full(w, i))
        return TERN_EXPR_NEVER;
    const char d = b->at.fraction[i];
    return tern_expr_either(
        w->x, place_between(w, d + 1, '9', i),
        tern_expr_pair(w->x, digits(w->x, d, d, 1), places_from(w, b, i + 1, false)));
}

/* The same: at most as large. */
static uint32_t places_to(const writer *w, const tern_schema_bound *b, unsigned i, bool first) {
    if (i >= b->at.n)
        return b->open ? TERN_EXPR_NEVER : zero_places(w, i, first);
    const uint32_t end = first ? TERN_EXPR_NEVER : TERN_EXPR_EMPTY;
    if (is_full(w, i))
        return end;
    const char d = b->at.fraction[i];
    const uint32_t more = tern_expr_either(
        w->x, place_between(w, '0', d - 1, i),
        tern_expr_pair(w->x, digits(w->x, d, d, 1), places_to(w, b, i + 1, false)));
    return tern_expr_either(w->x, end, more);
}

/* True if a number that has the digits of both bounds up to place i, and no more, is between them.
 */
static bool may_end(const tern_schema_bound *low, const tern_schema_bound *high, unsigned i) {
    return i >= low->at.n && !low->open && (i < high->at.n || !high->open);
}

static uint32_t places_between(const writer *w, const tern_schema_bound *low,
                               const tern_schema_bound *high, unsigned i, bool first) {
    tern_exprs *x = w->x;
    if (i >= low->at.n && i >= high->at.n)
        return low->open || high->open ? TERN_EXPR_NEVER : zero_places(w, i, first);
    const uint32_t end = !first && may_end(low, high, i) ? TERN_EXPR_EMPTY : TERN_EXPR_NEVER;
    if (is_full(w, i))
        return end;
    const char a = place_of(low, i), b = place_of(high, i);
    const uint32_t first_digit = digits(x, a, a, 1);
    if (a == b)
        return tern_expr_either(
            x, end, tern_expr_pair(x, first_digit, places_between(w, low, high, i + 1, false)));
    const uint32_t ends =
        tern_expr_either(x, tern_expr_pair(x, first_digit, places_from(w, low, i + 1, false)),
                         tern_expr_pair(x, digits(x, b, b, 1), places_to(w, high, i + 1, false)));
    return tern_expr_either(x, end, tern_expr_either(x, ends, place_between(w, a + 1, b - 1, i)));
}

static uint32_t with_point(tern_exprs *x, uint32_t places, bool may_lack) {
    const uint32_t all = tern_expr_pair(x, tern_expr_word(x, "."), places);
    return may_lack ? tern_expr_either(x, TERN_EXPR_EMPTY, all) : all;
}

/* ---- numbers with fractions ------------------------------------------------------------------ */

/* Sizes: numbers without a sign between two bounds; high NULL: without limit. */
static uint32_t sizes(writer *w, const tern_schema_bound *low, const tern_schema_bound *high) {
    tern_exprs *x = w->x;
    const int64_t a = (int64_t)low->at.whole, b = high != NULL ? (int64_t)high->at.whole : -1;
    const int order = high != NULL ? tern_decimal_order(&low->at, &high->at) : -1;
    if (order > 0 || (order == 0 && (low->open || high->open)))
        return TERN_EXPR_NEVER;
    if (a == b)
        return tern_expr_pair(
            x, naturals(w, a, a),
            with_point(x, places_between(w, low, high, 0, true), may_end(low, high, 0)));
    uint32_t all =
        tern_expr_pair(x, naturals(w, a, a),
                       with_point(x, places_from(w, low, 0, true), low->at.n == 0 && !low->open));
    if (high == NULL || a + 1 < b)
        all = tern_expr_either(x, all,
                               tern_expr_pair(x, naturals(w, a + 1, high == NULL ? -1 : b - 1),
                                              with_point(x, any_places(w, 0, 1), true)));
    if (high != NULL && (high->at.n > 0 || !high->open))
        all = tern_expr_either(
            x, all,
            tern_expr_pair(x, naturals(w, b, b), with_point(x, places_to(w, high, 0, true), true)));
    return all;
}

static uint32_t any_number(writer *w) {
    tern_exprs *x = w->x;
    const tern_range marks[] = {{'e', 'e'}, {'E', 'E'}};
    const tern_range signs[] = {{'+', '+'}, {'-', '-'}};
    const int32_t longest = w->most < 0 ? TERN_EXPR_UNLIMITED : 2; /* 1e99 is enough */
    const uint32_t power[] = {tern_expr_bytes(x, marks, 2),
                              tern_expr_optional(x, tern_expr_bytes(x, signs, 2)),
                              tern_expr_repeat(x, digits(x, '0', '9', 1), 1, longest)};
    const uint32_t parts[] = {tern_expr_optional(x, tern_expr_word(x, "-")), naturals(w, 0, -1),
                              with_point(x, any_places(w, 0, 1), true),
                              tern_expr_optional(x, tern_expr_sequence(x, power, 3))};
    return tern_expr_sequence(x, parts, 4);
}

static tern_schema_bound size_of(const tern_schema_bound *b) {
    tern_schema_bound size = *b;
    size.at.negative = false;
    return size;
}

static uint32_t numbers(writer *w, const tern_schema_facts *f) {
    const tern_schema_bound none = {.is = true}, above_none = {.is = true, .open = true};
    const tern_schema_bound low = size_of(&f->low), high = size_of(&f->high);
    uint32_t all = TERN_EXPR_NEVER;
    if (!f->low.is || f->low.at.negative) /* -s for sizes s from -high to -low, above 0 */
        all = negative(w->x, sizes(w, f->high.is && f->high.at.negative ? &high : &above_none,
                                   f->low.is ? &low : NULL));
    if (!f->high.is || !f->high.at.negative)
        all = tern_expr_either(
            w->x, all,
            sizes(w, f->low.is && !f->low.at.negative ? &low : &none, f->high.is ? &high : NULL));
    return all;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* A step as `size` / 10^places. */
typedef struct step {
    int64_t size;
    int places;
} step;

/* The bound in units of 10^-places, rounded to the inside; false: too large. */
static bool scale_bound(const tern_schema_bound *b, int places, bool up, int64_t *out) {
    tern_schema_bound scaled = *b;
    if (b->at.whole > (uint64_t)INT64_MAX / 100000000 || places > 8)
        return false;
    for (int i = 0; i < places; i++)
        scaled.at.whole = 10 * scaled.at.whole + (uint64_t)(place_of(b, (unsigned)i) - '0');
    scaled.at.n = b->at.n > (unsigned)places ? b->at.n - (unsigned)places : 0;
    *out = whole_of(&scaled, up);
    return true;
}

/* k steps, as a number is written. */
static uint32_t multiple(tern_exprs *x, const step *s, int64_t k) {
    char text[64];
    int64_t unit = 1;
    for (int i = 0; i < s->places; i++)
        unit *= 10;
    const int64_t size = k * s->size < 0 ? -(k * s->size) : k * s->size;
    int n = snprintf(text, sizeof text, "%s%" PRId64, k < 0 ? "-" : "", size / unit);
    if (size % unit != 0) {
        n += snprintf(text + n, sizeof text - (size_t)n, ".%0*" PRId64, s->places, size % unit);
        while (text[n - 1] == '0')
            n--;
    }
    return tern_expr_text(x, text, (size_t)n);
}

/* Lists the multiples between the bounds; NEVER with *few false if there are too many. */
static uint32_t list_multiples(writer *w, const tern_schema_facts *f, const step *s, bool *few) {
    int64_t low = 0, high = 0;
    tern_expr_list choice = {.x = w->x};
    *few = f->low.is && f->high.is && scale_bound(&f->low, s->places, true, &low) &&
           scale_bound(&f->high, s->places, false, &high);
    const int64_t first = *few ? -floor_div(-low, s->size) : 0;
    const int64_t last = *few ? floor_div(high, s->size) : 0;
    *few = *few && last - first < MOST_LISTED;
    for (int64_t k = first; k <= last && *few; k++)
        tern_expr_add(&choice, multiple(w->x, s, k));
    return tern_expr_end_choice(&choice);
}

static bool read_step(const tern_json_value *value, step *s) {
    const tern_decimal d = tern_decimal_of(value->text);
    *s = (step){(int64_t)d.whole, (int)d.n};
    if (d.negative || !d.exact || d.n > 8 || d.whole > 1000000000)
        return false;
    for (unsigned i = 0; i < d.n; i++)
        s->size = 10 * s->size + (d.fraction[i] - '0');
    return s->size > 0;
}

/* The whole numbers among the multiples are multiples of what is left of the size. */
static int64_t whole_step(const step *s) {
    int64_t size = s->size;
    for (int i = 0; i < s->places; i++) {
        size /= size % 2 == 0 ? 2 : 1;
        size /= size % 5 == 0 ? 5 : 1;
    }
    return size;
}

static uint32_t multiples(tern_schema_reader *r, writer *w, const tern_schema_facts *f) {
    static const char many[] = "a step that is not enforced";
    const bool fraction = (f->types & TERN_TYPE_FRACTION) != 0;
    bool few = false;
    step s;
    int zeros = 0;
    if (!read_step(f->multiple, &s)) {
        tern_schema_note(r, f->multiple_of, "multipleOf", many);
        return fraction ? numbers(w, f) : integers(w, f, 0);
    }
    if (!fraction)
        s = (step){whole_step(&s), 0};
    if (fraction && s.size == 1 && s.places > 0) {
        w->places = s.places;
        return numbers(w, f);
    }
    const uint32_t listed = list_multiples(w, f, &s, &few);
    if (few)
        return listed;
    s = (step){whole_step(&s), 0};
    for (; s.size % 10 == 0; s.size /= 10)
        zeros++;
    w->step = s.size <= MOST_STEP ? (unsigned)s.size : 1;
    if (s.size > MOST_STEP)
        tern_schema_note(r, f->multiple_of, "multipleOf", many);
    return integers(w, f, zeros);
}

uint32_t tern_schema_number(tern_schema_reader *r, const tern_schema_facts *f) {
    enum { MOST_DIGITS = 16 }; /* as llama.cpp: no double has more */
    writer w = {.x = r->x, .most = r->params.closed ? MOST_DIGITS : -1, .step = 1};
    w.places = w.most;
    if (f->multiple != NULL)
        return multiples(r, &w, f);
    if ((f->types & TERN_TYPE_FRACTION) == 0)
        return integers(&w, f, 0);
    return f->low.is || f->high.is ? numbers(&w, f) : any_number(&w);
}
