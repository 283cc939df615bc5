/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/files/gguf/reading.h"

#include <stdlib.h>
#include <string.h>

/* ---- what codes mean ------------------------------------------------------------------------- */

static const struct {
    const char *name, *map;
} known_maps[] = {
    {"usual", "-1,0,1,x"},      /* the published models */
    {"zero-first", "0,1,-1,x"}, /* 00 is 0, 01 is +1, 10 is -1 */
    {"signed", "0,1,x,-1"},     /* two's complement */
    {"negated", "1,0,-1,x"},
};

/* Takes the text up to a comma, or up to the end; *text then becomes NULL. */
static size_t next_word(const char **text, const char **word) {
    const size_t size = strcspn(*text, ",");
    *word = *text;
    *text = (*text)[size] == ',' ? *text + size + 1 : NULL;
    return size;
}

static bool read_code(const char *word, size_t size, uint8_t *code) {
    static const struct {
        const char *text;
        uint8_t code;
    } words[] = {{"-1", 0}, {"0", 1}, {"1", 2}, {"+1", 2}, {"x", TERN_NO_WEIGHT}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].text) == size && memcmp(words[i].text, word, size) == 0) {
            *code = words[i].code;
            return true;
        }
    return false;
}

/* Reads three or four weights; -1, 0 and 1 must be among them. */
static bool read_map(const char *text, uint8_t map[4]) {
    unsigned seen = 0;
    memset(map, TERN_NO_WEIGHT, 4);
    for (size_t i = 0; text != NULL; i++) {
        const char *word;
        const size_t size = next_word(&text, &word);
        if (i == 4 || !read_code(word, size, &map[i]))
            return false;
        seen |= 1u << map[i];
    }
    return (seen & 7) == 7;
}

static tern_status set_map(tern_reading *r, const char *text, tern_error *err) {
    memcpy(r->map, tern_usual_map, sizeof r->map);
    if (text == NULL)
        return TERN_OK;
    r->map_given = true;
    for (size_t i = 0; i < sizeof known_maps / sizeof *known_maps; i++)
        if (strcmp(known_maps[i].name, text) == 0)
            return read_map(known_maps[i].map, r->map)
                       ? TERN_OK
                       : tern_fail(err, TERN_ERR_ARG, "the built-in map %s cannot be read", text);
    if (read_map(text, r->map))
        return TERN_OK;
    return tern_fail(err, TERN_ERR_ARG,
                     "'%.60s' is not a map of I2_S codes: the weights of codes 0 to 3, such as "
                     "-1,0,1,x (x: no weight), or usual, zero-first, signed, negated",
                     text);
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* Reads up to `capacity` numbers below 2^31 with an x between them; returns how many, 0: something
 * else. */
static size_t read_numbers(const char *text, size_t size, uint32_t *numbers, size_t capacity) {
    const char *end = text + size;
    for (size_t n = 0; n < capacity && text < end && *text >= '1' && *text <= '9';) {
        char *behind;
        const unsigned long value = strtoul(text, &behind, 10);
        if (value > INT32_MAX || behind > end)
            return 0;
        numbers[n++] = (uint32_t)value;
        if (behind == end)
            return n;
        if (*behind != 'x')
            return 0;
        text = behind + 1;
    }
    return 0;
}

/* Reads [ROWSxCOLS=]BMxBK[xbm]. */
static bool read_rule(const char *word, size_t size, tern_tile_rule *rule) {
    const char *equals = memchr(word, '=', size);
    uint32_t shape[2] = {0, 0}, tiles[3] = {0, 0, 32};
    if (equals != NULL) {
        const size_t before = (size_t)(equals - word);
        if (read_numbers(word, before, shape, 2) != 2)
            return false;
        word += before + 1;
        size -= before + 1;
    }
    if (read_numbers(word, size, tiles, 3) < 2)
        return false;
    *rule = (tern_tile_rule){shape[0], shape[1], {tiles[0], tiles[1], tiles[2]}};
    return true;
}

static tern_status set_tiles(tern_reading *r, const char *text, tern_error *err) {
    const char *rest = text;
    while (rest != NULL) {
        const char *word;
        const size_t size = next_word(&rest, &word);
        if (r->n_rules == TERN_TILE_RULES)
            return tern_fail(err, TERN_ERR_ARG, "tiles of more than %d shapes",
                             (int)TERN_TILE_RULES);
        if (!read_rule(word, size, &r->rules[r->n_rules++]))
            return tern_fail(err, TERN_ERR_ARG,
                             "'%.*s' are not tile sizes: BMxBKxbm, such as 256x128x32, for all "
                             "matrices, or ROWSxCOLS=BMxBKxbm, separated by commas",
                             (int)(size < 60 ? size : 60), word);
    }
    return TERN_OK;
}

tern_status tern_reading_tiles(const tern_reading *r, tern_tl_kind kind, size_t rows, size_t cols,
                               tern_tl_tiles *out, tern_error *err) {
    for (size_t i = 0; i < r->n_rules; i++) {
        const tern_tile_rule *rule = &r->rules[i];
        if (rule->rows == 0 || (rule->rows == rows && rule->cols == cols)) {
            *out = rule->tiles;
            return TERN_OK;
        }
    }
    if (tern_tl_tiles_known(kind, rows, cols, out))
        return TERN_OK;
    return tern_fail(err, TERN_ERR_TILES,
                     "the tile sizes of TL%d matrices of %zu x %zu are in no file and not built "
                     "in: give those of the program that the file is for, --tl-tiles "
                     "%zux%zu=BMxBKxbm",
                     (int)kind, rows, cols, rows, cols);
}

/* ---- both ------------------------------------------------------------------------------------ */

tern_status tern_reading_init(tern_reading *r, tern_i2s_order order, const char *map,
                              const char *tiles, tern_error *err) {
    *r = (tern_reading){.order = order};
    if (order < TERN_I2S_UNITS_128 || order > TERN_I2S_SEQUENTIAL)
        return tern_fail(err, TERN_ERR_ARG, "order %d of I2_S codes is unknown", (int)order);
    const tern_status status = set_map(r, map, err);
    return status == TERN_OK ? set_tiles(r, tiles, err) : status;
}

tern_status tern_reading_of(const tern_reading *r, const tern_gguf_tensor *t, tern_import *out,
                            tern_error *err) {
    const size_t rows = (size_t)(t->ne[1] * t->ne[2] * t->ne[3]), cols = (size_t)t->ne[0];
    tern_import how = {.kind = tern_gguf_tiled(t), .bn = tern_gguf_bn(t), .order = r->order};
    memcpy(how.map, how.kind || how.bn ? tern_usual_map : r->map, sizeof how.map);
    const tern_status status =
        how.kind ? tern_reading_tiles(r, how.kind, rows, cols, &how.tiles, err) : TERN_OK;
    if (status != TERN_OK)
        return status;
    *out = how;
    return TERN_OK;
}

uint64_t tern_reading_hash(const tern_reading *r) {
    const bool usual = memcmp(r->map, tern_usual_map, sizeof r->map) == 0;
    tern_hash64 h;
    if (usual && r->n_rules == 0)
        return (uint64_t)r->order;
    tern_hash64_start(&h);
    tern_hash64_add(&h, &r->order, sizeof r->order);
    tern_hash64_add(&h, r->map, sizeof r->map);
    tern_hash64_add(&h, r->rules, r->n_rules * sizeof *r->rules);
    return tern_hash64_value(&h);
}
