/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes go into both readers of JSON. The flat reader accepts everything that the tree accepts.
 * A tree stays the same when it is written and read again, in every style.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_tree/read.h"
#include "base/json_tree/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition)
        abort();
}

static bool parses(const uint8_t *data, size_t size, tern_error *err) {
    char *copy = malloc(size + 1);
    tern_json json;
    require(copy != NULL);
    memcpy(copy, data, size);
    if (tern_json_parse(copy, size, "fuzz", &json, err) != TERN_OK)
        return false;
    tern_json_free(&json);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const json_style styles[] = {{.indent = 0}, {.indent = 2}, {.ascii = true}};
    tern_error err = {0};
    json_t *root = json_read((const char *)data, size, "fuzz", &err);
    if (root == NULL) {
        require(strncmp(err.message, "fuzz: line ", 11) == 0);
        return 0;
    }
    require(parses(data, size, &err));
    for (size_t i = 0; i < sizeof styles / sizeof *styles; i++) {
        char *text = json_dump(root, styles[i]);
        require(text != NULL);
        json_t *again = json_read(text, strlen(text), "again", NULL);
        require(json_equal(root, again));
        json_decref(again);
        free(text);
    }
    json_t *copy = json_deep_copy(root);
    require(json_equal(root, copy));
    json_decref(copy);
    json_decref(root);
    return 0;
}
