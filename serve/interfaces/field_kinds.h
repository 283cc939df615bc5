/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_FIELD_KINDS_H
#define TERN_SERVE_INTERFACES_FIELD_KINDS_H

/* Short names for the kinds of requests, for the tables of fields.c and fields_aside.c alone. */

#include "serve/interfaces/ask.h"

enum {
    CHAT = ASK_CHAT,
    TEXT = ASK_COMPLETION,
    RESPONSE = ASK_RESPONSE,
    MESSAGE = ASK_MESSAGE,
    NATIVE = ASK_NATIVE,
    VECTORS = ASK_VECTORS,
    OPENAI = CHAT | TEXT,
    OPEN = OPENAI | NATIVE, /* those that clients of llama.cpp, vLLM and SGLang extend */
    TALK = CHAT | RESPONSE | MESSAGE,
    ALL = OPENAI | RESPONSE | MESSAGE | NATIVE,
    ANY = ALL | VECTORS
};

#endif
