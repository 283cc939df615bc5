/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/tokenizer/code_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/word_list.h"
#include "runtime/text/tokenizer/unicode_tables.h"

void tern_code_set_free(tern_code_set *set) {
    free(set->ends);
    *set = (tern_code_set){NULL, 0, 0};
}

bool tern_code_set_has(const tern_code_set *set, uint32_t code) {
    size_t low = 0, high = set->n;
    while (low < high) { /* the number of ends up to the code: odd inside of a range */
        const size_t middle = low + (high - low) / 2;
        if (set->ends[middle] <= code)
            low = middle + 1;
        else
            high = middle;
    }
    return low % 2 == 1;
}

static bool push(tern_code_set *set, uint32_t end) {
    if (!tern_grow((void **)&set->ends, &set->capacity, set->n, sizeof end, SIZE_MAX / sizeof end))
        return false;
    set->ends[set->n++] = end;
    return true;
}

/* ---- two sets ---------------------------------------------------------------------------------
 */

typedef enum combination { EITHER, BOTH, ONE } combination;

static bool belongs(combination how, bool a, bool b) {
    return how == EITHER ? a || b : how == BOTH ? a && b : a != b;
}

/* Replaces a set by its combination with another; both may be the same. */
static bool combine(tern_code_set *set, const tern_code_set *other, combination how) {
    tern_code_set out = {NULL, 0, 0};
    bool in = false, sound = true;
    for (size_t i = 0, j = 0; sound && (i < set->n || j < other->n);) {
        const bool first = j == other->n || (i < set->n && set->ends[i] <= other->ends[j]);
        const uint32_t at = first ? set->ends[i] : other->ends[j];
        i += i < set->n && set->ends[i] == at;
        j += j < other->n && other->ends[j] == at;
        const bool now = belongs(how, i % 2 == 1, j % 2 == 1);
        if (now != in)
            sound = push(&out, at);
        in = now;
    }
    tern_code_set_free(sound ? set : &out);
    if (sound)
        *set = out;
    return sound;
}

/* Adds codes that come after all others of the set. */
static bool append(tern_code_set *set, uint32_t first, uint32_t end) {
    if (set->n > 0 && set->ends[set->n - 1] == first) {
        set->ends[set->n - 1] = end;
        return true;
    }
    if (!push(set, first))
        return false;
    if (push(set, end))
        return true;
    set->n--;
    return false;
}

bool tern_code_set_add(tern_code_set *set, uint32_t first, uint32_t end) {
    uint32_t ends[2] = {first, end};
    if (set->n == 0 || set->ends[set->n - 1] <= first) /* no copy of a long set for each of them */
        return append(set, first, end);
    return combine(set, &(tern_code_set){ends, 2, 2}, EITHER);
}

bool tern_code_set_join(tern_code_set *set, const tern_code_set *other) {
    return combine(set, other, EITHER);
}

bool tern_code_set_meet(tern_code_set *set, const tern_code_set *other) {
    return combine(set, other, BOTH);
}

bool tern_code_set_invert(tern_code_set *set) {
    uint32_t ends[2] = {0, TERN_CODE_END};
    return combine(set, &(tern_code_set){ends, 2, 2}, ONE);
}

/* ---- the tables -------------------------------------------------------------------------------
 */

/* Reads a number and moves on. The tables are well formed: they are generated. */
static uint32_t take_number(const uint8_t **at) {
    uint32_t value = 0;
    unsigned shift = 0;
    for (; (**at & 0x80) != 0; shift += 7)
        value |= (uint32_t)(*(*at)++ & 0x7F) << shift;
    return value | (uint32_t) * (*at)++ << shift;
}

/* Appends the runs whose value is one of the bits of `values`, or equals `values` itself. */
static bool put_runs(tern_code_set *set, const uint8_t *runs, bool bits, uint32_t values) {
    bool in = false, sound = true;
    for (uint32_t at = 0; sound && at < TERN_CODE_END;) {
        const uint32_t length = take_number(&runs), value = *runs++;
        const bool now = bits ? (values >> value & 1) != 0 : value == values;
        if (now != in)
            sound = push(set, at);
        in = now;
        at += length;
    }
    return sound && (!in || push(set, TERN_CODE_END));
}

static bool put_flag(tern_code_set *set, const tern_property_flag *flag) {
    tern_code_set other = {NULL, 0, 0};
    const bool sound = put_runs(set, tern_unicode_categories, true, flag->categories) &&
                       put_runs(&other, flag->runs, false, 1) && combine(set, &other, ONE);
    tern_code_set_free(&other);
    return sound;
}

static const tern_property_name *find(tern_span name) {
    char plain[WORD_BYTES], word[WORD_BYTES];
    size_t n = 0;
    for (size_t i = 0; i < name.size && n + 1 < sizeof plain; i++)
        if (strchr(" -_", name.data[i]) == NULL)
            plain[n++] = (char)(name.data[i] >= 'A' && name.data[i] <= 'Z' ? name.data[i] | 0x20
                                                                           : name.data[i]);
    plain[n] = '\0';
    for (const tern_property_name *p = tern_unicode_names; p->names[0] != '\0'; p++)
        for (const char *list = p->names; word_next(&list, word);)
            if (strcmp(word, plain) == 0)
                return p;
    return NULL;
}

tern_status tern_code_set_add_property(tern_code_set *set, tern_span name) {
    const tern_property_name *p = find(name);
    tern_code_set own = {NULL, 0, 0};
    if (p == NULL)
        return TERN_ERR_NAME;
    const bool sound = p->kind == TERN_PROPERTY_FLAG ? put_flag(&own, &tern_unicode_flags[p->value])
                       : p->kind == TERN_PROPERTY_SCRIPT
                           ? put_runs(&own, tern_unicode_scripts, false, p->value)
                           : put_runs(&own, tern_unicode_categories, true, p->value);
    const bool joined = sound && tern_code_set_join(set, &own);
    tern_code_set_free(&own);
    return joined ? TERN_OK : TERN_ERR_NOMEM;
}

/* ---- case ------------------------------------------------------------------------------------
 */

/* A walk through the characters that equal an earlier one where case does not matter. */
typedef struct case_walk {
    const uint8_t *at;
    uint32_t code, first; /* the character, and the first of those that equal it */
} case_walk;

static bool next_case(case_walk *w) {
    const uint32_t gap = take_number(&w->at);
    w->code += gap;
    w->first = gap > 0 ? w->code - take_number(&w->at) : 0;
    return gap > 0;
}

/* The first characters of the kinds that have one in the set. */
static bool find_kinds(const tern_code_set *set, tern_code_set *firsts) {
    for (case_walk w = {.at = tern_unicode_cases}; next_case(&w);) {
        const bool wanted = (tern_code_set_has(set, w.code) || tern_code_set_has(set, w.first)) &&
                            !tern_code_set_has(firsts, w.first);
        if (wanted && !tern_code_set_add(firsts, w.first, w.first + 1))
            return false;
    }
    return true;
}

/* All other characters of these kinds, in order. */
static bool find_others(const tern_code_set *firsts, tern_code_set *others) {
    for (case_walk w = {.at = tern_unicode_cases}; next_case(&w);)
        if (tern_code_set_has(firsts, w.first) && !tern_code_set_add(others, w.code, w.code + 1))
            return false;
    return true;
}

bool tern_code_set_fold(tern_code_set *set) {
    tern_code_set firsts = {NULL, 0, 0}, others = {NULL, 0, 0};
    const bool sound = find_kinds(set, &firsts) && find_others(&firsts, &others) &&
                       combine(&others, &firsts, EITHER) && combine(set, &others, EITHER);
    tern_code_set_free(&firsts);
    tern_code_set_free(&others);
    return sound;
}
