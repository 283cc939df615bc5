/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/change_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_tree/read.h"
#include "base/json_tree/write.h"

enum { DEEPEST = 64 };

typedef struct change {
    const words *words;
    const json_t *other;
    uint64_t state;
    size_t left; /* values before the one to change */
} change;

/* A number from 0 to n - 1. */
static size_t draw(change *c, size_t n) {
    c->state = c->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(c->state >> 33) % n;
}

/* ---- words ----------------------------------------------------------------------------------- */

static void learn_value(words *w, const json_t *value) {
    if (value != NULL && w->n_values < sizeof w->values / sizeof *w->values)
        w->values[w->n_values++] = value;
}

static void learn_names(words *w, const json_t *properties) {
    const char *name;
    json_t *value;
    json_object_foreach(properties, name, value) {
        if (w->n_names < sizeof w->names / sizeof *w->names)
            w->names[w->n_names++] = name;
    }
}

void words_learn(words *w, const json_t *description) {
    static const char *const told[] = {"const", "minimum", "maximum"};
    const char *name;
    json_t *value;
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        learn_value(w, json_object_get(description, told[i]));
    learn_names(w, json_object_get(description, "properties"));
    json_object_foreach(description, name, value) words_learn(w, value);
    for (size_t i = 0; i < json_array_size(description); i++)
        words_learn(w, json_array_get(description, i));
}

/* ---- changes --------------------------------------------------------------------------------- */

static size_t count(const json_t *value) {
    size_t n = 1;
    const char *name;
    json_t *member;
    json_object_foreach(value, name, member) n += count(member);
    for (size_t i = 0; i < json_array_size(value); i++)
        n += count(json_array_get(value, i));
    return n;
}

/* Finds value number *left of a document, where the document itself is number 0. */
static const json_t *find(const json_t *value, size_t *left) {
    const json_t *found = *left == 0 ? value : NULL;
    const char *name;
    json_t *member;
    if (found != NULL)
        return found;
    --*left;
    json_object_foreach(value, name, member) {
        found = find(member, left);
        if (found != NULL)
            return found;
    }
    for (size_t i = 0; i < json_array_size(value) && found == NULL; i++)
        found = find(json_array_get(value, i), left);
    return found;
}

static json_t *number(change *c) {
    static const json_int_t wholes[] = {0, 1, -1, 2, 3, 7, 20, 63, 64, 65, 96, 4096, 1LL << 32};
    static const double reals[] = {0.5, -0.5, 1e-7, 1e30, -2.0, 0.999};
    if (draw(c, 3) == 0)
        return json_real(reals[draw(c, sizeof reals / sizeof *reals)]);
    return json_integer(wholes[draw(c, sizeof wholes / sizeof *wholes)]);
}

static json_t *word(change *c) {
    static const char *const texts[] = {
        "",           "a",    "Once upon",        "user", "system", "assistant", "text",
        "input_text", "tool", "\xf0\x9f\x99\x82", "\n\n"};
    if (c->words->n_names > 0 && draw(c, 4) == 0)
        return json_string(c->words->names[draw(c, c->words->n_names)]);
    return json_string(texts[draw(c, sizeof texts / sizeof *texts)]);
}

static json_t *value_of_any_kind(change *c) {
    if (c->other != NULL && draw(c, 2) == 0) {
        size_t at = draw(c, count(c->other));
        return json_deep_copy(find(c->other, &at));
    }
    switch (draw(c, 8)) {
    case 0:
        return json_null();
    case 1:
        return json_boolean(draw(c, 2) == 0);
    case 2:
        return json_object();
    case 3:
        return json_array();
    case 4:
        return number(c);
    case 5:
        return c->words->n_values == 0
                   ? number(c)
                   : json_deep_copy(c->words->values[draw(c, c->words->n_values)]);
    default:
        return word(c);
    }
}

static json_t *copy(change *c, const json_t *value, unsigned depth);

static json_t *copy_object(change *c, const json_t *value, bool grows, unsigned depth) {
    json_t *made = json_object(), *member;
    const char *name;
    const size_t n = json_object_size(value);
    const size_t without = grows && n > 0 && draw(c, 3) == 0 ? draw(c, n) : n;
    size_t i = 0;
    json_object_foreach(value, name, member) {
        if (i++ != without)
            json_object_set_new(made, name, copy(c, member, depth));
    }
    if (grows && without == n && c->words->n_names > 0)
        json_object_set_new(made, c->words->names[draw(c, c->words->n_names)],
                            value_of_any_kind(c));
    return made;
}

static json_t *copy_array(change *c, const json_t *value, bool grows, unsigned depth) {
    json_t *made = json_array();
    const size_t n = json_array_size(value);
    const size_t chosen = grows && n > 0 ? draw(c, n) : n;
    const bool drops = draw(c, 2) == 0;
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(value, i);
        if (i != chosen || !drops)
            json_array_append_new(made, copy(c, item, depth));
        if (i == chosen && !drops)
            json_array_append_new(made, json_deep_copy(item));
    }
    if (grows && n == 0)
        json_array_append_new(made, value_of_any_kind(c));
    return made;
}

/* A copy of the value, changed at value number `left`. */
static json_t *copy(change *c, const json_t *value, unsigned depth) {
    const bool here = c->left-- == 0;
    if (depth == DEEPEST || (here && draw(c, 2) == 0))
        return value_of_any_kind(c);
    if (json_is_object(value))
        return copy_object(c, value, here, depth + 1);
    if (json_is_array(value))
        return copy_array(c, value, here, depth + 1);
    return here ? value_of_any_kind(c) : json_deep_copy(value);
}

size_t change_json(const words *w, char *bytes, size_t size, size_t most, const json_t *other,
                   unsigned seed) {
    change c = {.words = w, .other = other, .state = seed};
    json_t *root = json_read(bytes, size, "input", NULL);
    if (root == NULL)
        return 0;
    c.left = draw(&c, 3) == 0 ? 0 : draw(&c, count(root));
    json_t *made = copy(&c, root, 0);
    char *text = json_dump(made, (json_style){.ascii = draw(&c, 2) == 0});
    size = text != NULL ? strlen(text) : 0;
    size = size <= most ? size : 0;
    if (size > 0)
        memcpy(bytes, text, size);
    free(text);
    json_decref(made);
    json_decref(root);
    return size;
}
