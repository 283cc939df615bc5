/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CHAT_CHAT_H
#define TERN_TOOLS_CHAT_CHAT_H

/*
 * A conversation with a model. Its state is the dialogue's texts; before each answer their tokens
 * are compared with what the session holds, and only what is new is evaluated. The answers are thus
 * the same bits as if all had been evaluated again.
 */

#include "base/out_file.h"
#include "tools/answer/answerer.h"
#include "tools/answer/request.h"
#include "tools/chat/dialogue.h"
#include "tools/chat/line.h"
#include "tools/remote/remote.h"

typedef struct chat {
    const options *o;
    remote *server; /* that answers in place of the model l; NULL: none */
    json_t *fields; /* that it is sent */
    loaded l;
    answer_options options;
    answerer answerer;
    line_reader *lines;
    dialogue dialogue;
    bool terminal;     /* a person types: prompts, remarks, and Ctrl-C ends only an answer */
    bool answered;     /* the answerer has figures */
    bool failed;       /* something went wrong: the exit status of input that is not typed */
    uint64_t attempts; /* how often the last question was asked again */
    int32_t *ids;      /* [n_ids] of the dialogue, up to where the answer begins */
    size_t n_ids;
    char *message; /* [message_size] as read, of several lines perhaps; terminated */
    size_t message_size, message_capacity;
} chat;

/* Answers the user's message that the dialogue ends with, and adds the answer to it. On a failure,
 * after a complaint, the message is taken away again. False on a failure. */
bool chat_answer(chat *c);

/* The same by c->server: chat_answer calls it. */
bool chat_answer_remotely(chat *c);

/* Opens what --server names; EXIT_DONE, or the exit status after a complaint. */
int chat_open_server(chat *c);

/* Tokens of the dialogue as it is into c->ids; false after a complaint. */
bool chat_tokenize(chat *c);

/* Reads a message (docs/chat.md#several-lines) into c->message. */
line_kind chat_read_message(chat *c);

/* Does what a line that begins with '/' asks for; false to end the program. */
bool chat_command(chat *c, const char *line);

/*
 * A conversation as a file: the dialogue as JSON in `path`, keys and values in `path`.session.
 * mode: whether these may be there already. load replaces the conversation, or leaves it alone when
 * the file is not good; a session that does not fit only costs time. False after a complaint.
 */
bool chat_save(const chat *c, const char *path, tern_out_mode mode);
bool chat_load(chat *c, const char *path);

/* A line for who types: "(...)" on standard error, dim unless NO_COLOR; nothing otherwise. */
void chat_remark(const chat *c, const char *format, ...) TERN_PRINTF(2, 3);

#endif
