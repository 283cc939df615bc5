/* SPDX-License-Identifier: Apache-2.0 */
/* Routes about responses that are kept. */

#include <stdio.h>
#include <string.h>

#include "serve/server_internal.h"

static const char begin[] = "/responses/";

/* The id that a request's path names, and whose response it must be. */
typedef struct asked {
    char id[64]; /* cut; ids are shorter */
    const uint8_t *owner;
} asked;

static asked read_path(const http_exchange *x) {
    const key *shown = ((const account *)http_mark(x))->key;
    asked a = {.owner = shown != NULL ? shown->digest : NULL};
    const char *named = strstr(http_path(x), begin) + sizeof begin - 1;
    (void)snprintf(a.id, sizeof a.id, "%.*s", (int)strcspn(named, "/"), named);
    return a;
}

static void refuse_unknown(const server *s, http_exchange *x, const char *id) {
    refusal r;
    (void)refuse(&r, 404, "response_id",
                 s->kept != NULL ? "the response '%.64s' is not kept (any more)"
                                 : "the response '%.64s' is not kept: this server keeps none "
                                   "(--keep-responses)",
                 id);
    refusal_reply(&r, x);
}

void kept_response(server *s, http_exchange *x) {
    const asked a = read_path(x);
    char stream[8];
    text out = {0};
    refusal r;
    if (http_argument(x, "stream", stream, sizeof stream) && strcmp(stream, "true") == 0) {
        (void)refuse(&r, 400, "stream", "stream: a response that is kept is told whole");
        refusal_reply(&r, x);
    } else if (s->kept != NULL && kept_write(s->kept, a.id, a.owner, &out)) {
        reply_with(x, 200, "application/json", &out);
    } else {
        refuse_unknown(s, x, a.id);
    }
}

void kept_response_delete(server *s, http_exchange *x) {
    const asked a = read_path(x);
    text out = {0};
    if (s->kept == NULL || !kept_remove(s->kept, a.id, a.owner)) {
        refuse_unknown(s, x, a.id);
        return;
    }
    text_print(&out, "{\"id\":");
    text_quote(&out, a.id, strlen(a.id));
    text_print(&out, ",\"object\":\"response\",\"deleted\":true}");
    reply_with(x, 200, "application/json", &out);
}

/* Only responses in the background could be under way without their connection. */
void kept_response_cancel(server *s, http_exchange *x) {
    const asked a = read_path(x);
    text out = {0};
    refusal r;
    if (s->kept == NULL || !kept_write(s->kept, a.id, a.owner, &out)) {
        refuse_unknown(s, x, a.id);
    } else {
        (void)refuse(&r, 400, "response_id",
                     "a response that is not in the background cannot be cancelled; it ends when "
                     "its connection is closed");
        refusal_reply(&r, x);
    }
    text_free(&out);
}
