/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/terminal/dialogue_json.h"

#include <string.h>

#include "base/json_tree/read.h"
#include "base/json_tree/write.h"

enum { VERSION = 1 };

/* All messages as a list, or NULL without memory. */
static json_t *messages_json(const dialogue *d) {
    json_t *list = json_array();
    for (size_t i = 0; i < d->n; i++) {
        json_t *message =
            json_pack("{s:s, s:s}", "role", d->messages[i].role, "content", d->messages[i].content);
        if (json_array_append_new(list, message) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

char *dialogue_to_json(const char *name, const dialogue *d, uint64_t attempts, tern_error *err) {
    json_t *root = json_pack("{s:i, s:o, s:o}", "tern_chat", VERSION, "attempts",
                             json_unsigned(attempts), "messages", messages_json(d));
    char *text = root != NULL ? json_dump(root, (json_style){.indent = 1}) : NULL;
    json_decref(root);
    if (text == NULL)
        (void)tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to write it", name);
    return text;
}

static tern_status read_message(const char *path, size_t i, const json_t *message, dialogue *d,
                                tern_error *err) {
    const char *role = json_string_value(json_object_get(message, "role"));
    const json_t *content = json_object_get(message, "content");
    if (role == NULL || !json_is_string(content))
        return tern_fail(err, TERN_ERR_IO, "%s: message %zu lacks a role or a content", path, i);
    if ((strcmp(role, "system") != 0 && strcmp(role, "user") != 0 &&
         strcmp(role, "assistant") != 0) ||
        !dialogue_may_add(d, role)) {
        return tern_fail(err, TERN_ERR_IO, "%s: message %zu cannot be one of '%.32s'", path, i,
                         role);
    }
    if (!dialogue_add(d, role, json_string_value(content), json_string_length(content)))
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for its messages", path);
    return TERN_OK;
}

/* Conversations are saved between turns, so a saved one must not end with a question. */
static tern_status read_messages(const char *path, const json_t *root, dialogue *d,
                                 tern_error *err) {
    const json_t *list = json_object_get(root, "messages");
    if (!json_is_array(list))
        return tern_fail(err, TERN_ERR_IO, "%s: it has no list of messages", path);
    const size_t n = json_array_size(list);
    for (size_t i = 0; i < n; i++) {
        const tern_status status = read_message(path, i, json_array_get(list, i), d, err);
        if (status != TERN_OK)
            return status;
    }
    if (dialogue_may_add(d, "assistant"))
        return tern_fail(err, TERN_ERR_IO, "%s: the last message has no answer", path);
    return TERN_OK;
}

static tern_status read_root(const char *name, const json_t *root, dialogue *d, uint64_t *attempts,
                             tern_error *err) {
    const json_t *version = json_object_get(root, "tern_chat");
    const json_t *tried = json_object_get(root, "attempts");
    if (!json_is_integer(version))
        return tern_fail(err, TERN_ERR_IO, "%s: not a conversation saved by tern chat", name);
    if (json_integer_value(version) != VERSION) {
        return tern_fail(err, TERN_ERR_IO, "%s: version %lld, this tern reads version %d", name,
                         (long long)json_integer_value(version), VERSION);
    }
    if (!json_is_integer(tried) || json_integer_value(tried) < 0 ||
        json_integer_value(tried) > INT32_MAX) {
        return tern_fail(err, TERN_ERR_IO, "%s: 'attempts' is not a number from 0 to %d", name,
                         INT32_MAX);
    }
    *attempts = (uint64_t)json_integer_value(tried);
    return read_messages(name, root, d, err);
}

tern_status dialogue_from_json(const char *name, const char *text, size_t size, dialogue *d,
                               uint64_t *attempts, tern_error *err) {
    tern_error own = {0};
    json_t *root = json_read(text, size, name, &own);
    if (root == NULL)
        return tern_fail(err, own.status, "%s", own.message);
    const tern_status status = read_root(name, root, d, attempts, err);
    json_decref(root);
    return status;
}
