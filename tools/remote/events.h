/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_REMOTE_EVENTS_H
#define TERN_TOOLS_REMOTE_EVENTS_H

/*
 * Reads server-sent events from bytes that come in any pieces. Lines end with LF, CR LF or CR.
 * Comments and fields other than data are ignored; data of several lines is joined by LF.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/json_tree/text.h"

typedef struct event_reader {
    text held;     /* data of the event so far, then the incomplete line */
    size_t line;   /* where that line begins */
    bool has_data; /* the event has a line of data */
    bool after_cr; /* an LF that follows belongs to the previous line end */
} event_reader;

enum { EVENT_MOST_BYTES = 16 << 20 }; /* of one event */

/* Gets the data of an event, terminated; false ends the reading. */
typedef bool event_hook(void *user, char *data, size_t size);

/* False: the hook ended it, there is no memory, or an event is too long. */
bool events_feed(event_reader *e, const char *bytes, size_t n, event_hook *hook, void *user);

/* Delivers the last event if its empty line is missing. */
bool events_end(event_reader *e, event_hook *hook, void *user);

void events_free(event_reader *e);

#endif
