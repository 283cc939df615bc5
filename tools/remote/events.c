/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/remote/events.h"

#include <string.h>

static bool add(event_reader *e, char c) {
    if (e->held.size >= EVENT_MOST_BYTES)
        return false;
    text_add(&e->held, &c, 1);
    return !e->held.failed;
}

static bool dispatch(event_reader *e, event_hook *hook, void *user) {
    bool going = true;
    if (e->has_data) {
        e->held.bytes[e->line] = '\0'; /* there is room: the line end was there */
        going = hook(user, e->held.bytes, e->line);
    }
    e->held.size = e->line = 0;
    e->has_data = false;
    return going;
}

/* Ends a line: it becomes data, or is ignored. */
static bool end_line(event_reader *e, event_hook *hook, void *user) {
    static const char name[] = "data";
    const size_t n = sizeof name - 1;
    const size_t size = e->held.size - e->line;
    if (size == 0)
        return dispatch(e, hook, user);
    char *line = e->held.bytes + e->line;
    if (size < n || memcmp(line, name, n) != 0 || (size > n && line[n] != ':')) {
        e->held.size = e->line;
        return true;
    }
    size_t skip = size > n ? n + 1 : n;
    skip += skip < size && line[skip] == ' ';
    if (e->has_data) {
        line[0] = '\n'; /* there is room: the skipped field name was longer */
        line++;
        skip--;
        e->line++;
    }
    memmove(line, line + skip, e->held.size - e->line - skip);
    e->held.size -= skip;
    e->line = e->held.size;
    e->has_data = true;
    return true;
}

bool events_feed(event_reader *e, const char *bytes, size_t n, event_hook *hook, void *user) {
    bool going = true;
    for (size_t i = 0; i < n && going; i++) {
        const bool pair = e->after_cr && bytes[i] == '\n';
        e->after_cr = bytes[i] == '\r';
        if (pair)
            continue;
        going = bytes[i] == '\r' || bytes[i] == '\n' ? end_line(e, hook, user) : add(e, bytes[i]);
    }
    return going;
}

bool events_end(event_reader *e, event_hook *hook, void *user) {
    return (e->held.size == e->line || end_line(e, hook, user)) && dispatch(e, hook, user);
}

void events_free(event_reader *e) {
    text_free(&e->held);
    *e = (event_reader){0};
}
