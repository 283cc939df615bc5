/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/load/late_tuning.h"

#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"

bool late_tuning_wanted(const options *o) {
    return o->command == COMMAND_RUN || o->command == COMMAND_CHAT || o->command == COMMAND_SERVE;
}

void late_tuning_note(const loaded *l, size_t n, double p50_ms, uint64_t n_drafted) {
    if (n_drafted == 0) /* otherwise passes had several tokens */
        tern_model_note_pace(l->model, n, tern_session_position(l->session), p50_ms * 1e-3);
}

static bool asked_to_end(void *user) {
    (void)user;
    return interrupt_seen();
}

void late_tuning_run(const options *o, loaded *l, tern_tune_stop *stop) {
    tern_tune_news news;
    tern_error err = {0};
    if (l->tuned_late)
        return;
    const tern_status status =
        tern_model_tune(l->model, stop != NULL ? stop : asked_to_end, NULL, &news, &err);
    l->tuned_late = status != TERN_OK || !news.stopped;
    if (!options_switch(o, OPT_VERBOSE))
        return;
    if (status != TERN_OK)
        remark("not tuned: %s\n", err.message);
    else if (news.measured + news.again > 0)
        remark("tuned for the next start: %zu kinds of matrices measured, %zu measured again, of "
               "which %zu changed, in %.3f s\n",
               news.measured, news.again, news.changed, news.seconds);
}
