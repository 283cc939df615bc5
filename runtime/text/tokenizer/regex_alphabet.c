/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/tokenizer/regex_alphabet.h"

#include <stdlib.h>
#include <string.h>

enum {
    ASCII = 0x80,
    KINDS = TERN_REGEX_LETTERS - ASCII,
    ROW = 128, /* code points */
    ROWS = TERN_CODE_END / ROW,
    WORDS = TERN_REGEX_MAX_SETS / 64
};

/* The sets that a character is in, one bit each. */
typedef struct kind {
    uint64_t sets[WORDS];
} kind;

struct tern_regex_alphabet {
    kind kinds[KINDS];
    size_t n_kinds;
    uint16_t rows[ROWS];   /* of which cells the code points of a row have their letters */
    uint8_t (*cells)[ROW]; /* [n_cells] */
    size_t n_cells, capacity;
};

void tern_regex_alphabet_free(tern_regex_alphabet **alphabet) {
    if (*alphabet == NULL)
        return;
    free((*alphabet)->cells);
    free(*alphabet);
    *alphabet = NULL;
}

/* ---- making it --------------------------------------------------------------------------------
 */

static int by_value(const void *a_, const void *b_) {
    const uint32_t a = *(const uint32_t *)a_, b = *(const uint32_t *)b_;
    return (a > b) - (a < b);
}

/* The codes where any set begins or ends, beyond ASCII, in order; the last is TERN_CODE_END. From
 * malloc, NULL: no memory. */
static uint32_t *find_cuts(const tern_code_set *sets, size_t n) {
    size_t most = 2, used = 0;
    for (size_t s = 0; s < n; s++)
        most += sets[s].n;
    uint32_t *cuts = malloc(most * sizeof *cuts);
    if (cuts == NULL)
        return NULL;
    cuts[used++] = ASCII;
    cuts[used++] = TERN_CODE_END;
    for (size_t s = 0; s < n; s++)
        for (size_t i = 0; i < sets[s].n; i++)
            if (sets[s].ends[i] > ASCII)
                cuts[used++] = sets[s].ends[i];
    qsort(cuts, used, sizeof *cuts, by_value);
    size_t kept = 1;
    for (size_t i = 1; i < used; i++)
        if (cuts[i] != cuts[kept - 1])
            cuts[kept++] = cuts[i];
    return cuts;
}

/* The letter of a kind, which becomes known; 0: there are too many. */
static uint8_t letter_of(tern_regex_alphabet *a, const kind *k) {
    size_t i = 0;
    while (i < a->n_kinds && memcmp(&a->kinds[i], k, sizeof *k) != 0)
        i++;
    if (i == KINDS)
        return 0;
    if (i == a->n_kinds)
        a->kinds[a->n_kinds++] = *k;
    return (uint8_t)(ASCII + i);
}

/* The letter of the characters from a cut on; 0: there are too many. */
static uint8_t letter_from(tern_regex_alphabet *a, const tern_code_set *sets, size_t n,
                           uint32_t cut) {
    kind k = {{0}};
    for (size_t s = 0; s < n; s++)
        if (tern_code_set_has(&sets[s], cut))
            k.sets[s / 64] |= UINT64_C(1) << s % 64;
    return letter_of(a, &k);
}

/* Gives a row cells of its own; NULL: no memory. */
static uint8_t *add_cells(tern_regex_alphabet *a, size_t row) {
    if (a->n_cells == a->capacity) {
        const size_t more = 2 * a->capacity + 32;
        uint8_t(*longer)[ROW] = realloc(a->cells, more * sizeof *longer);
        if (longer == NULL)
            return NULL;
        a->cells = longer;
        a->capacity = more;
    }
    a->rows[row] = (uint16_t)a->n_cells; /* below ROWS */
    return a->cells[a->n_cells++];
}

/* Fills in the letters between cuts: all characters from one cut to the next are in the same sets.
 * Most rows have no cut in them, and share the cells of the first one of their letter. */
static tern_status fill(tern_regex_alphabet *a, const tern_code_set *sets, size_t n,
                        const uint32_t *cuts) {
    uint16_t same[TERN_REGEX_LETTERS] = {0}; /* by letter: the cells of such rows, from 1 */
    uint8_t letter = 0;
    for (uint32_t row = 0, next = 0; row < ROWS; row++) {
        const bool whole = row > 0 && cuts[next] >= (row + 1) * ROW;
        if (whole && same[letter] > 0) {
            a->rows[row] = same[letter] - 1;
            continue;
        }
        uint8_t *cells = add_cells(a, row);
        if (cells == NULL)
            return TERN_ERR_NOMEM;
        for (uint32_t i = 0, code = row * ROW; i < ROW; i++, code++) {
            if (code == cuts[next]) {
                letter = letter_from(a, sets, n, code);
                next++;
            }
            if (code >= ASCII && letter == 0)
                return TERN_ERR_TOKENIZER_PRE;
            cells[i] = code < ASCII ? (uint8_t)code : letter;
        }
        if (whole)
            same[letter] = a->rows[row] + 1;
    }
    return TERN_OK;
}

tern_status tern_regex_alphabet_new(const tern_code_set *sets, size_t n,
                                    tern_regex_alphabet **out) {
    tern_regex_alphabet *a = calloc(1, sizeof *a);
    uint32_t *cuts = find_cuts(sets, n);
    const tern_status status = a != NULL && cuts != NULL ? fill(a, sets, n, cuts) : TERN_ERR_NOMEM;
    free(cuts);
    if (status != TERN_OK)
        tern_regex_alphabet_free(&a);
    *out = a;
    return status;
}

/* ---- using it ---------------------------------------------------------------------------------
 */

void tern_regex_alphabet_letters(const tern_regex_alphabet *alphabet, const tern_code_set *sets,
                                 size_t set, uint8_t marks[TERN_REGEX_LETTERS]) {
    for (uint32_t code = 0; code < ASCII; code++)
        marks[code] = tern_code_set_has(&sets[set], code);
    for (size_t i = 0; i < KINDS; i++)
        marks[ASCII + i] = alphabet->kinds[i].sets[set / 64] >> set % 64 & 1;
}

/* Decodes a character of valid UTF-8 that is not of ASCII. */
static uint32_t decode(const uint8_t *at, size_t *size) {
    const uint32_t lead = at[0], second = at[1] & 0x3F;
    *size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (lead < 0xE0)
        return (lead & 0x1F) << 6 | second;
    if (lead < 0xF0)
        return (lead & 0xF) << 12 | second << 6 | (at[2] & 0x3F);
    return (lead & 7) << 18 | second << 12 | (uint32_t)(at[2] & 0x3F) << 6 | (at[3] & 0x3F);
}

size_t tern_regex_alphabet_spell(const tern_regex_alphabet *alphabet, tern_span text,
                                 uint8_t *out) {
    const uint8_t *bytes = (const uint8_t *)text.data;
    size_t n = 0;
    for (size_t at = 0, size = 1; at < text.size; at += size) {
        size = 1;
        if (bytes[at] < ASCII) {
            out[n++] = bytes[at];
            continue;
        }
        const uint32_t code = decode(bytes + at, &size);
        out[n++] = alphabet->cells[alphabet->rows[code / ROW]][code % ROW];
    }
    return n;
}
