/* SPDX-License-Identifier: Apache-2.0 */
/* Conversations as files. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/out_file.h"
#include "tools/cli/output.h"
#include "tools/cli/whole_file.h"
#include "tools/terminal/chat.h"
#include "tools/terminal/dialogue_json.h"

enum { FILE_LIMIT = 1 << 28 }; /* bytes; a larger file is not a conversation */

/* Path of the file with keys and values beside the conversation; NULL after a complaint. */
static char *session_path(const char *path) {
    char *name;
    if (asprintf(&name, "%s.session", path) < 0) {
        complain("%s: no memory for its name", path);
        return NULL;
    }
    return name;
}

static tern_status write_text(const char *path, const char *bytes, tern_out_mode mode,
                              tern_error *err) {
    tern_out_file *file;
    tern_status status = tern_out_file_create(path, mode, &file, err);
    if (status != TERN_OK)
        return status;
    status = tern_out_file_write(file, bytes, strlen(bytes), err);
    if (status == TERN_OK)
        return tern_out_file_commit(&file, err);
    tern_out_file_discard(&file);
    return status;
}

bool chat_save(const chat *c, const char *path, tern_out_mode mode) {
    tern_error err = {0};
    char *session = session_path(path);
    if (session == NULL)
        return false;
    char *json = dialogue_to_json(path, &c->dialogue, c->attempts, &err);
    const bool local = c->server == NULL;
    tern_status status =
        json != NULL && local ? tern_out_file_check(session, mode, &err) : err.status;
    if (status == TERN_OK)
        status = write_text(path, json, mode, &err);
    if (status == TERN_OK && local) {
        status = mode == TERN_OUT_NEW ? tern_session_save_new(c->l.session, session, &err)
                                      : tern_session_save(c->l.session, session, &err);
    }
    free(json);
    free(session);
    if (status == TERN_ERR_EXISTS && mode == TERN_OUT_NEW)
        complain("%s; /save! replaces it", err.message);
    else if (status != TERN_OK)
        (void)complain_error(&err);
    return status == TERN_OK;
}

/* Loads the session if it fits; otherwise everything is evaluated again, which only costs time. */
static void restore_session(const chat *c, const char *path) {
    char *session = session_path(path);
    tern_error why = {0};
    if (session != NULL && tern_session_restore(c->l.session, session, &why) != TERN_OK)
        chat_remark(c, "evaluated again with the next question: %s", why.message);
    free(session);
}

bool chat_load(chat *c, const char *path) {
    char *json;
    size_t size;
    if (file_read(path, FILE_LIMIT, &json, &size) != EXIT_DONE)
        return false;
    dialogue read = {0};
    uint64_t attempts = 0;
    tern_error err = {0};
    const tern_status status = dialogue_from_json(path, json, size, &read, &attempts, &err);
    free(json);
    if (status != TERN_OK) {
        (void)complain_error(&err);
        dialogue_free(&read);
        return false;
    }
    dialogue_free(&c->dialogue);
    c->dialogue = read;
    c->attempts = attempts;
    c->answered = false;
    if (c->server == NULL)
        restore_session(c, path);
    return true;
}
