/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/terminal/dialogue.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/utf8.h"

static const char *const roles[] = {"system", "user", "assistant"};

static bool last_is(const dialogue *d, const char *role) {
    return d->n > 0 && strcmp(d->messages[d->n - 1].role, role) == 0;
}

bool dialogue_may_add(const dialogue *d, const char *role) {
    if (strcmp(role, "assistant") == 0)
        return last_is(d, "user");
    return d->n == 0 || (strcmp(role, "user") == 0 && !last_is(d, "user"));
}

/* The static string for a role. */
static const char *own_role(const char *role) {
    size_t i = 0;
    while (strcmp(roles[i], role) != 0)
        i++;
    return roles[i];
}

/* Makes room for one more message. */
static bool grow(dialogue *d) {
    return tern_grow((void **)&d->messages, &d->capacity, d->n, sizeof *d->messages,
                     SIZE_MAX / (4 * sizeof *d->messages));
}

/* A copy of the content, to be freed; NULL without memory. */
static char *copy_of(const char *content, size_t size) {
    char *copy = malloc(TERN_UTF8_REPLACEMENT_BYTES * size + 1);
    if (copy != NULL)
        copy[tern_utf8_repair(content, size, copy, NULL)] = '\0';
    return copy;
}

bool dialogue_add(dialogue *d, const char *role, const char *content, size_t size) {
    char *copy = grow(d) ? copy_of(content, size) : NULL;
    if (copy == NULL)
        return false;
    d->messages[d->n++] = (tern_chat_message){.role = own_role(role), .content = copy};
    return true;
}

bool dialogue_drop(dialogue *d, const char *role) {
    if (!last_is(d, role))
        return false;
    free((void *)d->messages[--d->n].content);
    return true;
}

static bool has_system(const dialogue *d) {
    return d->n > 0 && strcmp(d->messages[0].role, "system") == 0;
}

const char *dialogue_system(const dialogue *d) {
    return has_system(d) ? d->messages[0].content : NULL;
}

bool dialogue_set_system(dialogue *d, const char *content, size_t size) {
    char *copy = grow(d) ? copy_of(content, size) : NULL;
    if (copy == NULL)
        return false;
    const size_t before = has_system(d), after = size > 0;
    if (before > 0)
        free((void *)d->messages[0].content);
    memmove(d->messages + after, d->messages + before, (d->n - before) * sizeof *d->messages);
    d->n += after - before;
    if (after > 0)
        d->messages[0] = (tern_chat_message){.role = own_role("system"), .content = copy};
    else
        free(copy);
    return true;
}

size_t dialogue_exchanges(const dialogue *d) {
    return (d->n - has_system(d)) / 2; /* a question without an answer is half a pair */
}

void dialogue_forget(dialogue *d, size_t n) {
    const size_t first = has_system(d);
    const size_t gone = 2 * (n < dialogue_exchanges(d) ? n : dialogue_exchanges(d));
    for (size_t i = 0; i < gone; i++)
        free((void *)d->messages[first + i].content);
    d->n -= gone;
    for (size_t i = first; i < d->n; i++)
        d->messages[i] = d->messages[i + gone];
}

void dialogue_clear(dialogue *d, bool keep_system) {
    const bool kept = keep_system && has_system(d);
    while (d->n > (size_t)kept)
        free((void *)d->messages[--d->n].content);
}

void dialogue_free(dialogue *d) {
    dialogue_clear(d, false);
    free(d->messages);
    *d = (dialogue){0};
}
