/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/session/session_file.h"

static tern_status save(const tern_session *s, const char *path, tern_out_mode mode,
                        tern_error *err) {
    if (s == NULL || path == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_session_save needs a session and a path");
    for (uint32_t i = 0; i < s->sequence.position; i++)
        if (s->sequence.tokens[i] == TERN_NO_TOKEN)
            return tern_fail(err, TERN_ERR_STATE,
                             "%s: position %u came from a row, not from a token: such a session "
                             "cannot be saved",
                             path, i);
    return tern_sequence_save(s->model, &s->pool, &s->sequence, path, mode, err);
}

tern_status tern_session_save(const tern_session *s, const char *path, tern_error *err) {
    return save(s, path, TERN_OUT_REPLACE, err);
}

tern_status tern_session_save_new(const tern_session *s, const char *path, tern_error *err) {
    return save(s, path, TERN_OUT_NEW, err);
}

tern_status tern_session_read(tern_session *s, FILE *in, const char *name, tern_error *err) {
    tern_sequence_reader r = {.model = s->model,
                              .pool = &s->pool,
                              .n_ctx = s->sequence.n_ctx,
                              .holder = "session",
                              .in = in,
                              .name = name,
                              .err = err};
    tern_status status = tern_sequence_check(&r);
    if (status != TERN_OK)
        return status;
    status = tern_sequence_read_tokens(&r, s->sequence.tokens);
    if (status == TERN_OK)
        status = tern_sequence_read_rows(&r, s->sequence.pages, 0, s->pool.pages);
    tern_session_move(s, status == TERN_OK ? r.header.position : 0);
    return status;
}

tern_status tern_session_restore(tern_session *s, const char *path, tern_error *err) {
    FILE *file = NULL;
    if (s == NULL || path == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_session_restore needs a session and a path");
    tern_status status = tern_sequence_file_open(s->model, path, &file, err);
    if (status != TERN_OK)
        return status;
    status = tern_session_read(s, file, path, err);
    (void)fclose(file);
    return status;
}
