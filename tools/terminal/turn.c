/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One turn: tokenizes the whole dialogue, evaluates the tokens that the session lacks, and answers.
 */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/cli/visible.h"
#include "tools/load/late_tuning.h"
#include "tools/prompt/prompt.h"
#include "tools/terminal/chat.h"

static bool may_dim(void) {
    const char *no_color = getenv("NO_COLOR");
    return (no_color == NULL || no_color[0] == '\0') && wrap_is_possible(STDERR_FILENO);
}

void chat_remark(const chat *c, const char *format, ...) {
    if (!c->terminal)
        return;
    char line[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    line[visible_copy(line, strlen(line), false, line)] = '\0';
    const bool dim = may_dim();
    (void)fprintf(stderr, "%s(%s)%s\n", dim ? "\033[2m" : "", line, dim ? "\033[0m" : "");
}

bool chat_show(chat *c, const char *bytes, size_t size) {
    return wrap_write(&c->wrap, bytes, size) && out_flush();
}

/* Prepares to read an answer after a prompt. Marks that are not those of channels stay in texts. */
static void begin_messages(chat *c, const tern_rendering *asked) {
    const thinking_marks *marks = thinking_find(c->l.tokenizer);
    thinking_free(&c->messages);
    text_clear(&c->said);
    c->messages = (thinking_reader){.marks = marks != NULL && marks->channels ? marks : NULL,
                                    .inside = thinking_begins(marks, asked->text, asked->size)};
}

bool chat_tokenize(chat *c) {
    const tern_conversation talk = {.messages = c->dialogue.messages, .n = c->dialogue.n};
    tern_rendering seen;
    tern_error err = {0};
    if (tern_conversation_render(c->l.tokenizer, &talk, &seen, &err) != TERN_OK) {
        (void)prompt_complain(c->l.tokenizer, &err);
        return false;
    }
    begin_messages(c, &seen);
    free(c->ids);
    c->ids = seen.ids;
    c->n_ids = seen.n;
    seen.ids = NULL;
    tern_rendering_free(&seen);
    return true;
}

/* Reports forgotten questions, also when nobody types. */
static void tell_forgotten(const chat *c, size_t forgotten) {
    if (c->terminal)
        chat_remark(c, "the context was full: the oldest %zu questions are forgotten", forgotten);
    else
        complain("the context was full: the oldest %zu questions are forgotten", forgotten);
}

/*
 * Makes room for --on-full drop: if less than a quarter of the context is left for an answer,
 * removes the oldest questions until half of it is free. So not every turn has to forget, and to
 * evaluate the rest again. False after a complaint.
 */
static bool make_room(chat *c) {
    const size_t context = tern_session_context(c->l.session);
    if (strcmp(options_text(c->o, OPT_ON_FULL), "drop") != 0 || c->n_ids + context / 4 <= context)
        return true;
    size_t forgotten = 0;
    while (c->n_ids > context / 2 && dialogue_exchanges(&c->dialogue) > 0) {
        dialogue_forget(&c->dialogue, 1);
        forgotten++;
        if (!chat_tokenize(c))
            return false;
    }
    if (forgotten > 0)
        tell_forgotten(c, forgotten);
    return true;
}

/* True if the tokens leave room for an answer; false after a complaint. */
static bool fits(const chat *c) {
    const uint32_t context = tern_session_context(c->l.session);
    if (c->n_ids < context)
        return true;
    complain("the conversation is %zu tokens long, the context has room for %" PRIu32
             ": /trim forgets its older half, /clear begins a new one, --ctx makes more room, "
             "--on-full drop forgets by itself",
             c->n_ids, context);
    return false;
}

static void skip_thought(void *user, const char *bytes, size_t size) {
    (void)user;
    (void)bytes;
    (void)size;
}

static void show_message(void *user, const char *bytes, size_t size) {
    chat *c = user;
    text_add(&c->said, bytes, size);
    c->gone = !chat_show(c, bytes, size);
}

static void show(void *user, size_t number, const char *bytes, size_t size) {
    chat *c = user;
    const thinking_sink sink = {c, skip_thought, show_message};
    (void)number;
    if (c->messages.marks != NULL)
        thinking_take(&c->messages, &sink, bytes, size);
    else
        c->gone = !chat_show(c, bytes, size);
}

/* Keeps the answer that is complete; false: no memory. */
static bool keep_answer(chat *c) {
    const one_answer *a = &c->answerer.latest;
    if (c->messages.marks == NULL)
        return dialogue_add(&c->dialogue, "assistant", a->text, a->text_size);
    return !c->messages.held.failed && !c->said.failed &&
           dialogue_add(&c->dialogue, "assistant", c->said.size > 0 ? c->said.bytes : "",
                        c->said.size);
}

static bool go_on(void *user) {
    const chat *c = user;
    return !c->gone && !interrupt_seen();
}

static void remark_end(const chat *c) {
    const one_answer *a = &c->answerer.latest;
    if (a->end == TERN_END_LENGTH)
        chat_remark(c, "cut after %zu tokens, see -n", a->n_tokens);
    else if (a->end == TERN_END_CONTEXT)
        chat_remark(c,
                    "the context of %" PRIu32
                    " positions is full: /trim forgets the older half, /clear begins a new "
                    "conversation, --ctx makes more room",
                    tern_session_context(c->l.session));
    else if (a->end == TERN_END_CANCELLED)
        chat_remark(c, a->n_tokens > 0 ? "stopped" : "stopped; the question is forgotten");
}

/* Answers the tokens of the dialogue; the answer is the answerer's latest. */
static tern_status ask(chat *c, tern_error *err) {
    tern_sampler_params how = c->options.sampling;
    tern_request request = c->options.request;
    how.seed += c->attempts;
    request.tokens = c->ids;
    request.n_tokens = c->n_ids;
    request.sampling = &how;
    request.drop_space = true;
    request.no_digest = true;
    const answer_task task = {
        .n = 1, .ahead = 1, .live = 1, .request = &request, .go_on = go_on, .say = show, .user = c};
    return answerer_run(&c->answerer, &task, err);
}

static bool answer(chat *c) {
    if (!chat_tokenize(c) || !make_room(c) || !fits(c))
        return false;
    const one_answer *a = &c->answerer.latest;
    tern_error err = {0};
    const tern_status status = ask(c, &err);
    if (c->messages.marks != NULL)
        thinking_finish(&c->messages, &(thinking_sink){c, skip_thought, show_message});
    out_print("\n");
    out_flush();
    if (status != TERN_OK) {
        (void)complain_error(&err);
        return false;
    }
    c->answered = true;
    late_tuning_note(&c->l, a->n_tokens, a->p50_ms, a->figures.n_guessed);
    if (a->end == TERN_END_CANCELLED && a->n_tokens == 0) {
        (void)dialogue_drop(&c->dialogue, "user");
        return true;
    }
    if (!keep_answer(c)) {
        complain("no memory for the conversation");
        return false;
    }
    return true;
}

bool chat_answer(chat *c) {
    wrap_begin(&c->wrap);
    const bool answered = c->server != NULL ? chat_answer_remotely(c) : answer(c);
    if (answered && c->server == NULL)
        remark_end(c);
    if (answered)
        return true;
    (void)dialogue_drop(&c->dialogue, "user");
    c->attempts = 0;
    c->failed = true;
    return false;
}
