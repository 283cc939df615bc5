/* SPDX-License-Identifier: Apache-2.0 */
/* One turn of a conversation with a model on a server. */

#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/terminal/chat.h"

int chat_open_server(chat *c) {
    int status = EXIT_DONE;
    c->fields = remote_fields(c->o, false, &status);
    c->options.sampling.seed = options_integer(c->o, OPT_SEED);
    return status == EXIT_DONE ? remote_open(c->o, &c->server) : status;
}

static bool show(void *user, const char *bytes, size_t size) {
    return chat_show(user, bytes, size) && !interrupt_seen();
}

static void remark_end(const chat *c, const remote_answer *a) {
    if (a->end == REMOTE_LENGTH)
        chat_remark(c, "cut by the server's limit or by -n");
    else if (a->end == REMOTE_INTERRUPTED)
        chat_remark(c, a->said.size > 0 ? "stopped" : "stopped; the question is forgotten");
}

static bool keep(chat *c, const remote_answer *a) {
    if (a->end == REMOTE_INTERRUPTED && a->said.size == 0) {
        (void)dialogue_drop(&c->dialogue, "user");
        return true;
    }
    if (!dialogue_add(&c->dialogue, "assistant", a->said.bytes != NULL ? a->said.bytes : "",
                      a->said.size)) {
        complain("no memory for the conversation");
        return false;
    }
    return true;
}

bool chat_answer_remotely(chat *c) {
    remote_answer a = {0};
    tern_error err = {0};
    const uint64_t seed = c->options.sampling.seed + c->attempts;
    json_object_set_new(c->fields, "seed", json_unsigned(seed));
    const tern_status status =
        remote_chat(c->server, c->dialogue.messages, c->dialogue.n, c->fields, show, c, &a, &err);
    if (status == TERN_OK || a.said.size > 0) {
        out_print("\n");
        out_flush();
    }
    const bool kept = status == TERN_OK && keep(c, &a);
    if (status != TERN_OK)
        (void)complain_error(&err);
    else
        remark_end(c, &a);
    remote_answer_free(&a);
    return kept;
}
