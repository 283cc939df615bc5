/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The canonical form of a JSON value, fed to SHA-256. Numbers count by value and members by name,
 * so that indentation, order and the spelling of a number do not matter; docs/receipts.md describes
 * the form.
 */

#include "receipts/document.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"

static void add_text(tern_sha256 *h, const char *text) {
    tern_sha256_add(h, text, strlen(text));
}

/* Adds a length and the bytes: "5:hello". */
static void add_string(tern_sha256 *h, const char *bytes, size_t size) {
    char length[32];
    (void)snprintf(length, sizeof length, "%zu:", size);
    add_text(h, length);
    tern_sha256_add(h, bytes, size);
}

/* Adds "i12;" for whole numbers up to 2^53, however they are written; else "r" and the bits of the
 * double. */
static void add_number(tern_sha256 *h, const json_t *value) {
    char text[32];
    const double x = json_number_value(value);
    uint64_t bits;
    if (json_is_integer(value)) {
        (void)snprintf(text, sizeof text, "i%lld;", json_integer_value(value));
    } else if (fabs(x) <= 0x1p53 && floor(x) == x) {
        (void)snprintf(text, sizeof text, "i%" PRId64 ";", (int64_t)x);
    } else {
        memcpy(&bits, &x, sizeof bits);
        (void)snprintf(text, sizeof text, "r%016" PRIx64 ";", bits);
    }
    add_text(h, text);
}

static int compare_keys(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_value(tern_sha256 *h, const json_t *value, const char *const *without);

static bool is_listed(const char *key, const char *const *list) {
    for (; list != NULL && *list != NULL; list++)
        if (strcmp(*list, key) == 0)
            return true;
    return false;
}

static void add_object(tern_sha256 *h, const json_t *object, const char *const *without) {
    const size_t capacity = json_object_size(object);
    const char **keys = json_reserve((capacity + 1) * sizeof *keys);
    const char *key;
    json_t *member;
    size_t n = 0;
    if (keys == NULL)
        return; /* noted by json_memory_failed(): the digest is wrong and must not be used */
    /* The iteration does not change the object, but the macro needs it writable. */
    json_object_foreach((json_t *)(uintptr_t)object, key, member) {
        if (!is_listed(key, without))
            keys[n++] = key;
    }
    qsort(keys, n, sizeof *keys, compare_keys);
    add_text(h, "{");
    for (size_t i = 0; i < n; i++) {
        add_string(h, keys[i], strlen(keys[i]));
        add_value(h, json_object_get(object, keys[i]), NULL);
    }
    add_text(h, "}");
    free(keys);
}

static void add_value(tern_sha256 *h, const json_t *value, const char *const *without) {
    if (value == NULL) { /* there was no memory for it */
        add_text(h, "?");
        return;
    }
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        add_object(h, value, without);
        break;
    case JSON_ARRAY:
        add_text(h, "[");
        for (size_t i = 0; i < json_array_size(value); i++)
            add_value(h, json_array_get(value, i), NULL);
        add_text(h, "]");
        break;
    case JSON_STRING:
        add_text(h, "s");
        add_string(h, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
    case JSON_REAL:
        add_number(h, value);
        break;
    case JSON_TRUE:
        add_text(h, "t");
        break;
    case JSON_FALSE:
        add_text(h, "f");
        break;
    default:
        add_text(h, "n");
    }
}

void receipt_digest(const json_t *value, const char *const *without, char hex[RECEIPT_HEX]) {
    tern_sha256 hash;
    tern_sha256_start(&hash);
    add_value(&hash, value, without);
    tern_sha256_finish(&hash, hex);
}

void receipt_digest_of(const json_t *receipt, char hex[RECEIPT_HEX]) {
    static const char *const without[] = {"digest", "signature", NULL};
    receipt_digest(receipt, without, hex);
}

void receipt_seal(json_t *receipt) {
    char hex[RECEIPT_HEX];
    receipt_digest_of(receipt, hex);
    json_object_set_new(receipt, "digest",
                        json_pack("{s:s, s:s}", "algorithm", RECEIPT_DIGEST, "value", hex));
}
