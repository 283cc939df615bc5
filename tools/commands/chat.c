/* SPDX-License-Identifier: Apache-2.0 */
/* tern chat: a conversation, on a terminal or from a pipe. */

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/load/late_tuning.h"
#include "tools/prompt/prompt.h"
#include "tools/terminal/chat.h"

enum { TINY_MILLIONS = 500 }; /* of parameters: smaller models mostly guess facts and sums */

static int begin_dialogue(chat *c) {
    const char *system = options_text(c->o, OPT_SYSTEM);
    return system == NULL || chat_set_system(c, system) ? EXIT_DONE : EXIT_FAILED;
}

static int check_format(const chat *c) {
    if (c->l.tokenizer == NULL) {
        complain("%s: a chat needs a tokenizer", c->l.tokenizer_error.message);
        return EXIT_FAILED;
    }
    if (strcmp(tern_chat_format(c->l.tokenizer), "none") == 0) {
        complain("%s: no chat format that tern knows: --chat-template NAME says which one to use, "
                 "and tern run needs none",
                 c->l.info.path);
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

static int prepare(chat *c) {
    char path[4096];
    const bool keeps =
        c->terminal && !options_switch(c->o, OPT_NO_HISTORY) && history_path(path, sizeof path);
    if (c->server == NULL)
        c->answerer = answerer_of(c->l.session, c->l.tokenizer);
    if (c->terminal)
        wrap_choose_letters();
    c->wrap.on = c->terminal && wrap_is_possible(STDOUT_FILENO);
    c->lines = line_reader_open(c->terminal, keeps ? path : NULL);
    if (c->lines == NULL) {
        complain("no memory for a line");
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

static void greet_for_server(const chat *c) {
    chat_remark(c, "%.100s at %.200s", remote_model(c->server), remote_place(c->server));
    chat_remark(c, "/help lists commands, Ctrl-C stops an answer, Ctrl-D ends");
}

static void greet(const chat *c) {
    const char *name = c->l.info.name[0] != '\0' ? c->l.info.name : c->l.info.path;
    const double millions = (double)c->l.info.parameters / 1e6;
    char chosen[256];
    sampling_describe(&c->options.chosen, chosen, sizeof chosen);
    chat_remark(c, "%.100s, %.*f million parameters%s, %" PRIu32 " positions", name,
                millions < 10.0, millions,
                millions < TINY_MILLIONS ? ": a tiny model, which is often wrong" : "",
                tern_session_context(c->l.session));
    chat_remark(c, "%s, seed %" PRIu64 "; /settings tells all", chosen, c->options.sampling.seed);
    chat_remark(c, "/help lists commands, Ctrl-C stops an answer, Ctrl-D ends");
}

static void ask(chat *c) {
    const char *words = c->message + (strncmp(c->message, "//", 2) == 0);
    if (strlen(c->message) != c->message_size) {
        complain("a message with a NUL byte is not answered");
        c->failed = true;
        return;
    }
    c->attempts = 0;
    if (!dialogue_add(&c->dialogue, "user", words, strlen(words))) {
        complain("no memory for the conversation");
        c->failed = true;
        return;
    }
    (void)chat_answer(c);
}

/* True if the user has typed something, or a signal came. */
static bool is_wanted(void *user) {
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    (void)user;
    return interrupt_seen() || poll(&in, 1, 0) != 0;
}

/* Tunes while the user reads the answer; `last`: there is no further question. */
static void tune_late(chat *c, bool last) {
    if (c->server == NULL && c->answered && (last || c->terminal))
        late_tuning_run(c->o, &c->l, last ? NULL : is_wanted);
}

/* True for a command: one line that begins with a single '/'. */
static bool is_command(const char *message) {
    return message[0] == '/' && message[1] != '/' && strchr(message, '\n') == NULL;
}

/* Reads and answers until the input ends. */
static int converse(chat *c) {
    for (bool going = true; going;) {
        const line_kind kind = chat_read_message(c);
        if (kind == LINE_END) {
            if (c->terminal)
                (void)fputc('\n', stderr);
            break;
        }
        if (kind == LINE_FAILED)
            return EXIT_FAILED;
        if (kind == LINE_CANCELLED && !c->terminal)
            return interrupt_status(EXIT_FAILED);
        if (kind == LINE_CANCELLED || c->message_size == 0) {
            interrupt_forget();
            continue;
        }
        if (is_command(c->message))
            going = chat_command(c, c->message);
        else
            ask(c);
        if (interrupt_seen() && !c->terminal)
            return interrupt_status(EXIT_FAILED);
        if (!out_flush()) /* the reader of the answers is gone */
            return EXIT_FAILED;
        tune_late(c, false);
        interrupt_forget();
    }
    tune_late(c, true);
    const int unchanged = c->server == NULL ? loader_check_file(&c->l) : EXIT_DONE;
    return unchanged == EXIT_DONE && c->failed && !c->terminal ? EXIT_FAILED : unchanged;
}

static int open_model(chat *c) {
    int status = loader_open(c->o, true, &c->l);
    if (status == EXIT_DONE)
        status = check_format(c);
    return status == EXIT_DONE ? answer_options_read(c->o, &c->l, &c->options) : status;
}

int cmd_chat(const options *o) {
    chat c = {.o = o, .terminal = isatty(STDIN_FILENO) == 1};
    (void)umask(S_IRWXG | S_IRWXO); /* saved files are for the user alone */
    int status = options_given(o, OPT_SERVER) ? chat_open_server(&c) : open_model(&c);
    if (status == EXIT_DONE)
        status = begin_dialogue(&c);
    if (status == EXIT_DONE)
        status = prepare(&c);
    if (status == EXIT_DONE) {
        interrupt_catch_all();
        if (c.server != NULL)
            greet_for_server(&c);
        else
            greet(&c);
        status = converse(&c);
    }
    line_reader_close(&c.lines);
    answerer_close(&c.answerer);
    answer_options_free(&c.options);
    dialogue_free(&c.dialogue);
    free(c.ids);
    thinking_free(&c.messages);
    text_free(&c.said);
    free(c.message);
    json_decref(c.fields);
    remote_close(&c.server);
    loader_close(&c.l);
    return status;
}
