/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/tokenizer/charsmap.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/*
 * A unit of the trie. A node has the byte that leads to it (8 bits), a bit that says whether a
 * value lies below it, a bit for a large offset, and the offset to its children. A unit whose
 * highest bit is set is a value.
 */
enum { UNIT_BYTES = 4 };

static uint32_t load_u32(const char *bytes) {
    const unsigned char *b = (const unsigned char *)bytes;
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint32_t unit_at(const tern_charsmap *map, size_t i) {
    return load_u32(map->units + UNIT_BYTES * i);
}

static size_t offset_of(uint32_t unit) {
    return (size_t)(unit >> 10) << ((unit & 1u << 9) >> 6);
}

static bool has_value(uint32_t unit) {
    return (unit & 1u << 8) != 0;
}

static bool is_value(uint32_t unit) {
    return (unit & 1u << 31) != 0;
}

/* Finds where the replacement of a value begins; false unless that is the start of a character. */
static bool text_at(const tern_charsmap *map, size_t leaf, size_t *at) {
    if (leaf >= map->n_units)
        return false;
    *at = unit_at(map, leaf) & ~(1u << 31);
    return *at < map->texts.size && ((unsigned char)map->texts.data[*at] & 0xC0) != 0x80;
}

static tern_status fail(char *why, const char *what) {
    (void)snprintf(why, TERN_CHARSMAP_WHY_BYTES, "%s", what);
    return TERN_ERR_TOKENIZER_DATA;
}

static tern_status check_units(const tern_charsmap *map, char *why) {
    for (size_t i = 0; i < map->n_units; i++) {
        const uint32_t unit = unit_at(map, i);
        size_t at;
        if (is_value(unit) || !has_value(unit) || text_at(map, i ^ offset_of(unit), &at))
            continue;
        (void)snprintf(why, TERN_CHARSMAP_WHY_BYTES,
                       "entry %zu of %zu leads to no replacement among %zu bytes", i, map->n_units,
                       map->texts.size);
        return TERN_ERR_TOKENIZER_DATA;
    }
    return TERN_OK;
}

tern_status tern_charsmap_open(tern_span bytes, tern_charsmap *out, char *why) {
    *out = (tern_charsmap){.texts = {"", 0}};
    if (bytes.size == 0)
        return TERN_OK;
    if (bytes.size > TERN_CHARSMAP_MAX_BYTES)
        return fail(why, "it has more than 64 MiB");
    const size_t size = bytes.size < UNIT_BYTES ? 0 : load_u32(bytes.data);
    if (size == 0 || size % UNIT_BYTES != 0 || size > bytes.size - UNIT_BYTES) {
        (void)snprintf(why, TERN_CHARSMAP_WHY_BYTES,
                       "a trie of %zu bytes does not fit into its %zu bytes", size, bytes.size);
        return TERN_ERR_TOKENIZER_DATA;
    }
    out->units = bytes.data + UNIT_BYTES;
    out->n_units = size / UNIT_BYTES;
    out->texts = (tern_span){out->units + size, bytes.size - UNIT_BYTES - size};
    if (out->texts.size == 0 || out->texts.data[out->texts.size - 1] != '\0')
        return fail(why, "its last replacement has no end");
    if (!tern_utf8_is_valid(out->texts.data, out->texts.size))
        return fail(why, "its replacements are not UTF-8");
    return check_units(out, why);
}

bool tern_charsmap_find(const tern_charsmap *map, tern_span text, bool shortest, size_t *used,
                        tern_span *to) {
    bool found = false;
    if (map->n_units == 0)
        return false;
    size_t node = offset_of(unit_at(map, 0));
    for (size_t i = 0; i < text.size && text.data[i] != '\0' && !(found && shortest); i++) {
        const unsigned char byte = (unsigned char)text.data[i];
        node ^= byte;
        if (node >= map->n_units)
            break;
        const uint32_t unit = unit_at(map, node);
        if (is_value(unit) || (unit & 0xFF) != byte)
            break;
        node ^= offset_of(unit);
        size_t at;
        if (!has_value(unit) || !text_at(map, node, &at))
            continue;
        found = true;
        *used = i + 1;
        *to = (tern_span){map->texts.data + at, strlen(map->texts.data + at)};
    }
    return found;
}
