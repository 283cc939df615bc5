/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/engine/session/session_file.h"

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

/* The first page of layers with a window that the file has and that the session has room for. */
static uint32_t first_kept(const tern_session *s, const tern_session_header *h) {
    const uint32_t end = tern_pages_of(h->position), round = s->pool.parts[TERN_PART_WINDOW].n;
    const uint32_t first = round > 0 && end > round ? end - round : 0, has = h->kept / TERN_PAGE;
    return has > first ? has : first;
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
    const uint32_t end = tern_pages_of(r.header.position), kept = first_kept(s, &r.header);
    const tern_sequence_pages parts[TERN_POOL_PARTS] = {
        [TERN_PART_ALL] = {s->sequence.pages, 0, end},
        [TERN_PART_WINDOW] = {s->sequence.window_pages, kept, end}};
    status = tern_sequence_read_tokens(&r, s->sequence.tokens);
    if (status == TERN_OK)
        status = tern_sequence_read_rows(&r, parts);
    tern_session_move(s, status == TERN_OK ? r.header.position : 0);
    s->sequence.kept = status == TERN_OK ? kept : 0;
    s->sequence.state = s->sequence.position;
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
