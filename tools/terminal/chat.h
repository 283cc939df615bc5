/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_TERMINAL_CHAT_H
#define TERN_TOOLS_TERMINAL_CHAT_H

/*
 * A conversation with a model. Its state is the texts of the dialogue. Before each answer their
 * tokens are compared with those in the session, and only new ones are evaluated. The answers are
 * therefore the same bits as if everything had been evaluated again.
 */

#include "base/out_file.h"
#include "serve/interfaces/thinking.h"
#include "tools/answer/answerer.h"
#include "tools/answer/request.h"
#include "tools/remote/remote.h"
#include "tools/terminal/dialogue.h"
#include "tools/terminal/line.h"
#include "tools/terminal/wrap.h"

typedef struct chat {
    const options *o;
    remote *server; /* answers in place of the model l; NULL: none */
    json_t *fields; /* sent to the server */
    loaded l;
    answer_options options;
    answerer answerer;
    line_reader *lines;
    dialogue dialogue;
    wrap wrap;
    bool terminal;     /* a person types: prompts and remarks are shown, and Ctrl-C ends only an
                          answer */
    bool gone;         /* nobody reads the answers any more */
    bool answered;     /* the answerer has figures */
    bool failed;       /* something went wrong; decides the exit status if nobody types */
    uint64_t attempts; /* how often the last question was asked again */
    int32_t *ids;      /* [n_ids] tokens of the dialogue up to the beginning of the answer */
    size_t n_ids;
    thinking_reader messages; /* of answers in channels: their text alone is shown and kept */
    text said;                /* that text */
    char *message; /* [message_size] as read, perhaps several lines; terminated */
    size_t message_size, message_capacity;
} chat;

/* Answers the user's message at the end of the dialogue, and appends the answer. On failure it
 * complains, removes the message and returns false. */
bool chat_answer(chat *c);

/* The same by c->server; chat_answer calls it. */
bool chat_answer_remotely(chat *c);

/* Opens the server that --server names; EXIT_DONE, or the exit status after a complaint. */
int chat_open_server(chat *c);

/* Tokenizes the current dialogue into c->ids; false after a complaint. */
bool chat_tokenize(chat *c);

/* Shows a piece of an answer; false if it cannot be written. */
bool chat_show(chat *c, const char *bytes, size_t size);

/* Begins the conversation with this system prompt in place of the one before; "": with none. False
 * after a complaint. */
bool chat_set_system(chat *c, const char *words);

/* The commands /set NAME VALUE, /seed N and /system TEXT; they show what holds where the argument
 * is "". They return true: the program goes on. */
bool chat_set(chat *c, const char *argument);
bool chat_seed(chat *c, const char *argument);
bool chat_system(chat *c, const char *argument);

/* Prints how tokens are picked. */
void chat_print_settings(const chat *c);

/* Reads a message (docs/chat.md#several-lines) into c->message. */
line_kind chat_read_message(chat *c);

/* Runs a line that begins with '/' as a command; false to end the program. */
bool chat_command(chat *c, const char *line);

/*
 * A conversation as files: the dialogue as JSON in `path`, keys and values in `path`.session. mode
 * says whether the files may exist already. chat_load replaces the conversation, or leaves it alone
 * if the file is invalid; a session that does not fit only costs time. False after a complaint.
 */
bool chat_save(const chat *c, const char *path, tern_out_mode mode);
bool chat_load(chat *c, const char *path);

/* Prints "(...)" on standard error if a person types, dim unless NO_COLOR is set; otherwise
 * nothing. */
void chat_remark(const chat *c, const char *format, ...) TERN_PRINTF(2, 3);

#endif
