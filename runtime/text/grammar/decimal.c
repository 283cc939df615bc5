/* SPDX-License-Identifier: Apache-2.0 */

/* Numbers of JSON as decimal digits: bounds and steps are exact, whatever a double can hold. */

#include <string.h>

#include "runtime/text/grammar/schema_check.h"

enum { MOST_DIGITS = 400, MOST_POWER = 10000 };

static const uint64_t most_whole = 1000000000000000000U;

/* The digits of a number, without its sign, and where its point is. */
typedef struct digits {
    char at[MOST_DIGITS];
    int n, point;   /* value = 0.at[0] ... at[n - 1] * 10^point */
    bool cut;       /* there were more digits */
    bool is_number; /* at least one digit is not 0 */
} digits;

static int read_power(tern_span s, size_t i) {
    const bool negative = i < s.size && s.data[i] == '-';
    int power = 0;
    i += i < s.size && (s.data[i] == '-' || s.data[i] == '+');
    for (; i < s.size && power < MOST_POWER; i++)
        power = 10 * power + (s.data[i] - '0');
    return negative ? -power : power;
}

static digits read_digits(tern_span s) {
    digits d = {.n = 0};
    size_t i = s.size > 0 && s.data[0] == '-';
    bool after = false;
    for (; i < s.size && s.data[i] != 'e' && s.data[i] != 'E'; i++) {
        if (s.data[i] == '.') {
            after = true;
            continue;
        }
        d.point += !after;
        if (d.n < MOST_DIGITS)
            d.at[d.n++] = s.data[i];
        else
            d.cut |= s.data[i] != '0';
    }
    if (i < s.size)
        d.point += read_power(s, i + 1);
    int zeros = 0;
    while (zeros < d.n && d.at[zeros] == '0')
        zeros++;
    memmove(d.at, d.at + zeros, (size_t)(d.n - zeros));
    d.n -= zeros;
    d.point -= zeros;
    while (d.n > 0 && d.at[d.n - 1] == '0')
        d.n--;
    d.is_number = d.n > 0;
    return d;
}

/* The digit with the weight 10^power. */
static char digit_at(const digits *d, int power) {
    const int i = d->point - 1 - power;
    return i >= 0 && i < d->n ? d->at[i] : '0';
}

tern_decimal tern_decimal_of(tern_span number) {
    const digits d = read_digits(number);
    tern_decimal out = {.negative = d.is_number && number.data[0] == '-', .exact = !d.cut};
    if (!d.is_number)
        return out;
    if (d.point > 18) {
        out.whole = most_whole;
        out.exact = false;
        return out;
    }
    for (int power = d.point - 1; power >= 0; power--)
        out.whole = 10 * out.whole + (uint64_t)(digit_at(&d, power) - '0');
    for (int power = -1; power >= d.point - d.n; power--) {
        if (out.n == sizeof out.fraction) {
            out.exact = false;
            break;
        }
        out.fraction[out.n++] = digit_at(&d, power);
    }
    while (out.n > 0 && out.fraction[out.n - 1] == '0')
        out.n--;
    return out;
}

static int order_of_sizes(const tern_decimal *a, const tern_decimal *b) {
    if (a->whole != b->whole)
        return a->whole < b->whole ? -1 : 1;
    const unsigned n = a->n < b->n ? a->n : b->n;
    const int order = n > 0 ? memcmp(a->fraction, b->fraction, n) : 0;
    return order != 0 ? order : (a->n > b->n) - (a->n < b->n);
}

int tern_decimal_order(const tern_decimal *a, const tern_decimal *b) {
    if (a->negative != b->negative)
        return a->negative ? -1 : 1;
    return a->negative ? order_of_sizes(b, a) : order_of_sizes(a, b);
}

/* Long division, digit by digit: the remainder of v in units of step's last digit. */
bool tern_decimal_divides(tern_span step, tern_span v, bool *sure) {
    const digits s = read_digits(step), d = read_digits(v);
    const int unit = s.point - s.n; /* step = S * 10^unit */
    uint64_t size = 0, rest = 0;
    *sure = s.is_number && s.n <= 18 && !d.cut && d.point - unit < MOST_DIGITS;
    if (!*sure || !d.is_number)
        return true;
    for (int i = 0; i < s.n; i++)
        size = 10 * size + (uint64_t)(s.at[i] - '0');
    if (d.point - d.n < unit)
        return false; /* it has digits below the step's last one */
    for (int power = d.point - 1; power >= unit; power--)
        rest = (10 * rest + (uint64_t)(digit_at(&d, power) - '0')) % size; /* below 10^19 */
    return rest == 0;
}
