/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_END_H
#define TERN_END_H

/* How an answer ended, of tern_generate and of engines. */

#include "tern/status.h"

TERN_API_BEGIN

typedef enum tern_end {
    TERN_END_OF_TEXT,    /* the model ended it, by a token that is not part of it */
    TERN_END_STOP_TOKEN, /* by one of the caller's stop tokens, which is not part of it either */
    TERN_END_STOP_TEXT,  /* the last token, which completed it, was reported; its text was not */
    TERN_END_LENGTH,     /* max_tokens, or the prompt was computed and prompt_only */
    TERN_END_CONTEXT,    /* the context, or all cache memory, is full */
    TERN_END_CANCELLED,  /* by the caller, or its callback */
    TERN_END_DEADLINE,
    TERN_END_ERROR
} tern_end;

/* "end", "stop", "length", "context", "cancelled", "deadline" or "error"; static storage. */
const char *tern_end_name(tern_end end);

/* Earlier names of those that tern_generate has. */
typedef tern_end tern_stop_reason;
#define TERN_STOP_END TERN_END_OF_TEXT
#define TERN_STOP_TOKEN TERN_END_STOP_TOKEN
#define TERN_STOP_LENGTH TERN_END_LENGTH
#define TERN_STOP_CONTEXT TERN_END_CONTEXT
#define TERN_STOP_CALLER TERN_END_CANCELLED

TERN_API_END

#endif
