/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_REMOTE_REPLY_H
#define TERN_TOOLS_REMOTE_REPLY_H

/* Parses replies in the different forms that servers send. */

#include "tools/remote/events.h"
#include "tools/remote/remote.h"

/* A reply while it is received. Zero-initialise all but the pointers. */
typedef struct reply_reader {
    const char *place; /* for messages */
    remote_answer *answer;
    remote_sink *sink;
    void *user;
    double began;
    bool done;        /* "[DONE]" or a finish reason came */
    bool stopped;     /* the sink wanted no more */
    tern_error fault; /* the first error; its status is TERN_OK if there is none */
} reply_reader;

/* Takes an event of a stream (an event_hook), or a whole document. False: it wants no more. */
bool reply_take(void *reader, char *data, size_t size);

/*
 * Describes a refusal in one line: "PLACE: STATUS: message". Finds messages in the forms of OpenAI,
 * of llama.cpp and vLLM, of FastAPI and others; of any other text it shows the first line.
 */
tern_status reply_refuse(const char *place, long status, long retry_seconds, const text *body,
                         tern_error *err);

#endif
