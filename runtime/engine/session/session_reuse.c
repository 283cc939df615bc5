/* SPDX-License-Identifier: Apache-2.0 */

/* Reuses the beginning of a sequence that the session has already computed. */

#include "runtime/engine/session.h"

const int32_t *tern_session_tokens(const tern_session *s) {
    return s->sequence.tokens;
}

size_t tern_session_common_prefix(const tern_session *s, const int32_t *tokens, size_t n) {
    size_t same = 0;
    while (same < n && same < s->sequence.position && s->sequence.tokens[same] == tokens[same])
        same++;
    return same;
}

tern_status tern_session_reuse(tern_session *s, const int32_t *tokens, size_t n, size_t *reused,
                               tern_error *err) {
    if (s == NULL || tokens == NULL || reused == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_session_reuse: NULL argument");
    const tern_status status = tern_session_check(s, tokens, n, 0, err);
    if (status != TERN_OK)
        return status;
    const size_t same = tern_session_common_prefix(s, tokens, n);
    *reused = same < n ? same : n - 1;
    if (!tern_session_sees(s, (uint32_t)*reused))
        *reused = 0;
    tern_session_move(s, (uint32_t)*reused);
    return TERN_OK;
}

tern_status tern_session_sync(tern_session *s, const int32_t *tokens, size_t n, float *logits,
                              size_t *reused, tern_error *err) {
    size_t kept = 0;
    const tern_logits_mode mode = logits != NULL ? TERN_LOGITS_LAST : TERN_LOGITS_NONE;
    tern_status status = tern_session_reuse(s, tokens, n, &kept, err);
    if (status == TERN_OK)
        status = tern_session_eval(s, tokens + kept, n - kept, mode, logits, err);
    if (status == TERN_OK && reused != NULL)
        *reused = kept;
    return status;
}
