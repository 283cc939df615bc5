/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_REMOTE_REPLY_H
#define TERN_TOOLS_REMOTE_REPLY_H

/* What a server's reply says, in the forms that servers have for it. */

#include "tools/remote/events.h"
#include "tools/remote/remote.h"

/* A reply while it comes. Zero-initialise it, but for the pointers. */
typedef struct reply_reader {
    const char *place; /* for messages */
    remote_answer *answer;
    remote_sink *sink;
    void *user;
    double began;
    bool done;        /* "[DONE]", or a reason for the end, came */
    bool stopped;     /* the sink wants no more */
    tern_error fault; /* what was wrong; its status is TERN_OK while nothing is */
} reply_reader;

/* An event of a stream (an event_hook), or a whole document. False: no more is wanted. */
bool reply_take(void *reader, char *data, size_t size);

/*
 * What a refusal says, in one line: "PLACE: STATUS: message". Errors are found in the forms of
 * OpenAI, of llama.cpp and vLLM, of FastAPI and others; text that is not one of them is shown by
 * its first line.
 */
tern_status reply_refuse(const char *place, long status, long retry_seconds, const text *body,
                         tern_error *err);

#endif
