/* SPDX-License-Identifier: Apache-2.0 */

/* Numbers between bounds, as decimal digits. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/text/grammar/schema.h"

enum { DIGITS = 24 };

static uint32_t digits(tern_exprs *x, char low, char high, size_t n) {
    const tern_range r = {(unsigned char)low, (unsigned char)high};
    return low > high ? TERN_EXPR_NEVER
                      : tern_expr_repeat(x, tern_expr_bytes(x, &r, 1), (int32_t)n, (int32_t)n);
}

/* n digits that are at least, or at most, those of `bound`. */
static uint32_t beyond(tern_exprs *x, const char *bound, size_t n, bool above) {
    if (n == 0)
        return TERN_EXPR_EMPTY;
    const uint32_t same =
        tern_expr_pair(x, digits(x, *bound, *bound, 1), beyond(x, bound + 1, n - 1, above));
    const uint32_t other =
        above ? digits(x, (char)(*bound + 1), '9', 1) : digits(x, '0', (char)(*bound - 1), 1);
    return tern_expr_either(x, same, tern_expr_pair(x, other, digits(x, '0', '9', n - 1)));
}

/* n digits between those of low and high, low <= high. */
static uint32_t between(tern_exprs *x, const char *low, const char *high, size_t n) {
    if (n == 0)
        return TERN_EXPR_EMPTY;
    if (*low == *high)
        return tern_expr_pair(x, digits(x, *low, *low, 1), between(x, low + 1, high + 1, n - 1));
    const uint32_t parts[] = {
        tern_expr_pair(x, digits(x, *low, *low, 1), beyond(x, low + 1, n - 1, true)),
        tern_expr_pair(x, digits(x, (char)(*low + 1), (char)(*high - 1), 1),
                       digits(x, '0', '9', n - 1)),
        tern_expr_pair(x, digits(x, *high, *high, 1), beyond(x, high + 1, n - 1, false))};
    return tern_expr_either(x, tern_expr_either(x, parts[0], parts[1]), parts[2]);
}

/* Whole numbers low .. high, both >= 0; high < 0: without limit. */
static uint32_t naturals(tern_exprs *x, int64_t low, int64_t high) {
    char a[DIGITS];
    char b[DIGITS];
    const size_t from = (size_t)snprintf(a, sizeof a, "%" PRId64, low);
    const size_t to = high < 0 ? from : (size_t)snprintf(b, sizeof b, "%" PRId64, high);
    if (high >= 0 && high < low)
        return TERN_EXPR_NEVER;
    uint32_t all = TERN_EXPR_NEVER;
    for (size_t n = from; n <= to; n++) {
        char least[DIGITS] = "1000000000000000000000";
        char most[DIGITS] = "9999999999999999999999";
        const char *bottom = n == from ? a : least;
        const char *top = n == to && high >= 0 ? b : most;
        all = tern_expr_either(x, all, between(x, bottom, top, n));
    }
    if (high >= 0)
        return all;
    const uint32_t longer =
        tern_expr_repeat(x, digits(x, '0', '9', 1), (int32_t)from, TERN_EXPR_UNLIMITED);
    return tern_expr_either(x, all, tern_expr_pair(x, digits(x, '1', '9', 1), longer));
}

static uint32_t negative(tern_exprs *x, uint32_t number) {
    return tern_expr_pair(x, tern_expr_word(x, "-"), number);
}

/* ---- whole numbers --------------------------------------------------------------------------- */

static uint32_t integers(tern_exprs *x, const tern_schema_facts *f) {
    const bool down = !f->has_low || f->low < 0;
    uint32_t all = TERN_EXPR_NEVER;
    if (!f->has_low && !f->has_high)
        return tern_expr_pair(x, tern_expr_optional(x, tern_expr_word(x, "-")), naturals(x, 0, -1));
    if (f->has_low && f->has_high && f->low > f->high)
        return TERN_EXPR_NEVER;
    if (down) {
        const int64_t nearest = f->has_high && f->high < 0 ? -f->high : 0; /* -0 is a number */
        all = negative(x, naturals(x, nearest, f->has_low ? -f->low : -1));
    }
    if (!f->has_high || f->high >= 0)
        all = tern_expr_either(
            x, all, naturals(x, f->has_low && f->low > 0 ? f->low : 0, f->has_high ? f->high : -1));
    return all;
}

/* ---- numbers with fractions ------------------------------------------------------------------ */

/* A point and digits; some: not all of them are 0. */
static uint32_t fraction(tern_exprs *x, bool some) {
    const uint32_t point = tern_expr_word(x, ".");
    const uint32_t any = tern_expr_repeat(x, digits(x, '0', '9', 1), 0, TERN_EXPR_UNLIMITED);
    const uint32_t zeros = tern_expr_repeat(x, digits(x, '0', '0', 1), 0, TERN_EXPR_UNLIMITED);
    if (!some)
        return tern_expr_sequence(x, (const uint32_t[]){point, digits(x, '0', '9', 1), any}, 3);
    return tern_expr_sequence(x, (const uint32_t[]){point, zeros, digits(x, '1', '9', 1), any}, 4);
}

/* Sizes: numbers without a sign from low (open: above it) to high (open: below it); high < 0:
 * without limit. */
static uint32_t sizes(tern_exprs *x, int64_t low, bool low_open, int64_t high, bool high_open) {
    const uint32_t zeros = tern_expr_repeat(x, digits(x, '0', '0', 1), 1, TERN_EXPR_UNLIMITED);
    const uint32_t none = tern_expr_optional(x, tern_expr_pair(x, tern_expr_word(x, "."), zeros));
    const uint32_t some = tern_expr_optional(x, fraction(x, false));
    uint32_t all = TERN_EXPR_NEVER;
    if (high >= 0 && low > high)
        return all;
    if (high < 0 || low < high) /* at the lower bound, and up to the next whole number */
        all = tern_expr_pair(x, naturals(x, low, low), low_open ? fraction(x, true) : some);
    if (high < 0 || low + 1 < high)
        all = tern_expr_either(
            x, all, tern_expr_pair(x, naturals(x, low + 1, high < 0 ? -1 : high - 1), some));
    if (high >= 0 && !high_open && (low < high || !low_open))
        all = tern_expr_either(x, all, tern_expr_pair(x, naturals(x, high, high), none));
    return all;
}

static uint32_t any_number(tern_exprs *x) {
    const tern_range marks[] = {{'e', 'e'}, {'E', 'E'}};
    const tern_range signs[] = {{'+', '+'}, {'-', '-'}};
    const uint32_t power[] = {tern_expr_bytes(x, marks, 2),
                              tern_expr_optional(x, tern_expr_bytes(x, signs, 2)),
                              tern_expr_repeat(x, digits(x, '0', '9', 1), 1, TERN_EXPR_UNLIMITED)};
    const uint32_t parts[] = {tern_expr_optional(x, tern_expr_word(x, "-")), naturals(x, 0, -1),
                              tern_expr_optional(x, fraction(x, false)),
                              tern_expr_optional(x, tern_expr_sequence(x, power, 3))};
    return tern_expr_sequence(x, parts, 4);
}

static uint32_t numbers(tern_exprs *x, const tern_schema_facts *f) {
    uint32_t all = TERN_EXPR_NEVER;
    if (!f->has_low && !f->has_high)
        return any_number(x);
    if (!f->has_low || f->low < 0) { /* -s for sizes s from -high to -low, above 0 */
        const bool below = f->has_high && f->high < 0;
        all = negative(x, sizes(x, below ? -f->high : 0, below ? f->high_open : true,
                                f->has_low ? -f->low : -1, f->low_open));
    }
    if (!f->has_high || f->high >= 0) {
        const bool above = f->has_low && f->low >= 0;
        all = tern_expr_either(x, all,
                               sizes(x, above ? f->low : 0, above && f->low_open,
                                     f->has_high ? f->high : -1, f->high_open));
    }
    return all;
}

uint32_t tern_schema_number(tern_schema_reader *r, const tern_schema_facts *f) {
    return f->types & TERN_TYPE_FRACTION ? numbers(r->x, f) : integers(r->x, f);
}
