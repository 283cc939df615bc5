/* SPDX-License-Identifier: Apache-2.0 */
/* Conversations as files: {"tern_chat": 1, "attempts": n, "messages": [{"role", "content"}]}. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/out_file.h"
#include "tools/chat/chat.h"
#include "tools/json.h"

/* Path of the keys and values beside the conversation's; NULL without memory. */
static char *session_path(const char *path) {
    char *text;
    return asprintf(&text, "%s.session", path) >= 0 ? text : NULL;
}

#ifdef TERN_HAVE_JANSSON

enum { VERSION = 1 };
static const off_t file_limit = (off_t)1 << 28; /* bytes; more is no conversation */

/* ---- writing ----------------------------------------------------------------------------------
 */

static json_t *messages_json(const dialogue *d) {
    json_t *list = json_array();
    for (size_t i = 0; i < d->n; i++) {
        json_array_append_new(list, json_pack("{s:s, s:s}", "role", d->messages[i].role, "content",
                                              d->messages[i].content));
    }
    return list;
}

static tern_status write_text(const char *path, const char *text, tern_error *err) {
    tern_out_file *file;
    tern_status status = tern_out_file_create(path, &file, err);
    if (status != TERN_OK) {
        return status;
    }
    status = tern_out_file_write(file, text, strlen(text), err);
    if (status == TERN_OK) {
        return tern_out_file_commit(&file, err);
    }
    tern_out_file_discard(&file);
    return status;
}

static tern_status write_dialogue(const chat *c, const char *path, tern_error *err) {
    json_t *root = json_pack("{s:i, s:o, s:o}", "tern_chat", VERSION, "attempts",
                             json_unsigned(c->attempts), "messages", messages_json(&c->dialogue));
    char *text = root != NULL ? json_dumps(root, JSON_INDENT(1)) : NULL;
    json_decref(root);
    if (text == NULL) {
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to write it", path);
    }
    const tern_status status = write_text(path, text, err);
    free(text);
    return status;
}

/* ---- reading ----------------------------------------------------------------------------------
 */

static tern_status check_size(const char *path, tern_error *err) {
    struct stat info;
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > file_limit) {
        return tern_fail(err, TERN_ERR_IO, "%s: %lld bytes are no conversation", path,
                         (long long)info.st_size);
    }
    return TERN_OK;
}

static tern_status read_message(const char *path, size_t i, const json_t *message, dialogue *d,
                                tern_error *err) {
    const char *role = json_string_value(json_object_get(message, "role"));
    const json_t *content = json_object_get(message, "content");
    if (role == NULL || !json_is_string(content)) {
        return tern_fail(err, TERN_ERR_IO, "%s: message %zu lacks a role or a content", path, i);
    }
    if ((strcmp(role, "system") != 0 && strcmp(role, "user") != 0 &&
         strcmp(role, "assistant") != 0) ||
        !dialogue_may_add(d, role)) {
        return tern_fail(err, TERN_ERR_IO, "%s: message %zu cannot be one of '%.32s'", path, i,
                         role);
    }
    if (!dialogue_add(d, role, json_string_value(content), json_string_length(content))) {
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for its messages", path);
    }
    return TERN_OK;
}

/* Conversations are saved between turns, so that none ends with a question. */
static tern_status read_messages(const char *path, const json_t *root, dialogue *d,
                                 tern_error *err) {
    const json_t *list = json_object_get(root, "messages");
    if (!json_is_array(list)) {
        return tern_fail(err, TERN_ERR_IO, "%s: it has no list of messages", path);
    }
    const size_t n = json_array_size(list);
    for (size_t i = 0; i < n; i++) {
        const tern_status status = read_message(path, i, json_array_get(list, i), d, err);
        if (status != TERN_OK) {
            return status;
        }
    }
    if (dialogue_may_add(d, "assistant")) {
        return tern_fail(err, TERN_ERR_IO, "%s: the last message has no answer", path);
    }
    return TERN_OK;
}

static tern_status read_dialogue(const char *path, dialogue *d, uint64_t *attempts,
                                 tern_error *err) {
    json_error_t error;
    tern_status status = check_size(path, err);
    if (status != TERN_OK) {
        return status;
    }
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) {
        return tern_fail(err, TERN_ERR_IO, "%s: line %d: %s", path, error.line, error.text);
    }
    const json_t *version = json_object_get(root, "tern_chat");
    const json_t *tried = json_object_get(root, "attempts");
    if (!json_is_integer(version)) {
        status = tern_fail(err, TERN_ERR_IO, "%s: not a conversation saved by tern chat", path);
    } else if (json_integer_value(version) != VERSION) {
        status = tern_fail(err, TERN_ERR_IO, "%s: version %lld, this tern reads version %d", path,
                           (long long)json_integer_value(version), VERSION);
    } else if (!json_is_integer(tried) || json_integer_value(tried) < 0) {
        status = tern_fail(err, TERN_ERR_IO, "%s: 'attempts' is not a number from 0 on", path);
    } else {
        *attempts = (uint64_t)json_integer_value(tried);
        status = read_messages(path, root, d, err);
    }
    json_decref(root);
    return status;
}

#else

static tern_status write_dialogue(const chat *c, const char *path, tern_error *err) {
    (void)c;
    return tern_fail(err, TERN_ERR_ARG, "%s: this build of tern has no JSON (library jansson)",
                     path);
}

static tern_status read_dialogue(const char *path, dialogue *d, uint64_t *attempts,
                                 tern_error *err) {
    (void)d, (void)attempts;
    return tern_fail(err, TERN_ERR_ARG, "%s: this build of tern has no JSON (library jansson)",
                     path);
}

#endif

/* ---- both -------------------------------------------------------------------------------------
 */

tern_status chat_save(const chat *c, const char *path, tern_error *err) {
    char *session = session_path(path);
    if (session == NULL) {
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to write it", path);
    }
    tern_status status = write_dialogue(c, path, err);
    if (status == TERN_OK) {
        status = tern_session_save(c->l.session, session, err);
    }
    free(session);
    return status;
}

tern_status chat_load(chat *c, const char *path, tern_error *err) {
    dialogue read = {0};
    uint64_t attempts = 0;
    char *session = session_path(path);
    const tern_status status =
        session != NULL ? read_dialogue(path, &read, &attempts, err)
                        : tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to read it", path);
    if (status != TERN_OK) {
        dialogue_free(&read);
        free(session);
        return status;
    }
    dialogue_free(&c->dialogue);
    c->dialogue = read;
    c->attempts = attempts;
    c->answered = false;
    tern_error why = {0};
    if (tern_session_restore(c->l.session, session, &why) != TERN_OK) {
        chat_remark(c, "evaluated again with the next question: %s", why.message);
    }
    free(session);
    return TERN_OK;
}
