/* SPDX-License-Identifier: Apache-2.0 */
/* POST /slots/N?action=save|restore|erase, in llama.cpp's form: what the places for answers held is
 * saved in files of one folder (--slot-save-path), for each key apart. */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "serve/server_internal.h"

enum { MOST_NAME = 128 };

/* A request of the route. */
typedef struct wish {
    slot_order order;
    const char *name; /* of the file; NULL for SLOT_ERASE */
    char path[PATH_MAX];
} wish;

static bool read_action(http_exchange *x, slot_action *action, refusal *r) {
    static const char *const names[] = {"save", "restore", "erase"};
    char said[16];
    const bool given = http_argument(x, "action", said, sizeof said);
    for (size_t i = 0; given && i < sizeof names / sizeof *names; i++) {
        if (strcmp(said, names[i]) == 0) {
            *action = (slot_action)i;
            return true;
        }
    }
    return refuse(r, 400, "action", "the address must end with ?action=save, restore or erase");
}

/* Reads the number of the place at the end of the path. */
static bool read_place(const http_exchange *x, size_t n, size_t *at, refusal *r) {
    const char *said = strrchr(http_path(x), '/') + 1;
    const size_t digits = strspn(said, "0123456789");
    *at = strtoul(said, NULL, 10);
    return (digits > 0 && digits < 7 && said[digits] == '\0' && *at < n) ||
           refuse(r, 400, NULL, "there is no slot %.20s: they are 0 to %zu", said, n - 1);
}

/* True if a text can only be the name of a file in the folder. */
static bool is_file_name(const char *name) {
    const size_t n = name != NULL ? strlen(name) : 0;
    return n > 0 && n <= MOST_NAME && name[0] != '.' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == n;
}

/* The file of a name. With keys, each has files of its own: the name begins with a part of the
 * key's digest. */
static bool read_name(const server *s, const json_t *body, wish *w, refusal *r) {
    char owner[2 * 8 + 2] = "";
    w->name = json_string_value(json_object_get(body, "filename"));
    if (!is_file_name(w->name))
        return refuse(r, 400, "filename",
                      "filename must be a name of 1 to %d letters, digits and ._-, without a dot "
                      "at its beginning",
                      MOST_NAME);
    for (size_t i = 0; i < 8 && w->order.owner != NULL; i++)
        (void)snprintf(owner + 2 * i, 4, "%02x-", w->order.owner[i]);
    const int n = snprintf(w->path, sizeof w->path, "%s/%s%s", s->config.slot_path, owner, w->name);
    w->order.path = w->path;
    return (n > 0 && (size_t)n < sizeof w->path) ||
           refuse(r, 400, "filename", "the path of the file is too long");
}

static bool read(const server *s, http_exchange *x, const json_t *body, wish *w, refusal *r) {
    const served *m = server_model(x);
    const key *shown = ((const account *)http_mark(x))->key;
    w->order.owner = shown != NULL ? shown->digest : NULL;
    if (!read_action(x, &w->order.action, r) ||
        !read_place(x, m->with.engine.n_sequences, &w->order.at, r))
        return false;
    if (s->config.slot_path == NULL)
        return refuse(r, 501, NULL, "this server saves no slots: start it with --slot-save-path");
    return w->order.action == SLOT_ERASE || read_name(s, body, w, r);
}

/* Carries the wish out; errors name the file, not the folder, which is none of the client's
 * business. */
static bool carry_out(http_exchange *x, wish *w, refusal *r) {
    slot_order *o = &w->order;
    if (!worker_do(server_model(x)->worker, o))
        return refuse(r, 503, NULL, "the server is ending");
    if (o->status == TERN_OK && (o->n > 0 || o->action == SLOT_ERASE))
        return true;
    if (o->status == TERN_OK)
        return refuse(r, 400, NULL, "%s: nothing is %s, since %s no whole page of positions",
                      w->name, o->action == SLOT_SAVE ? "saved" : "restored",
                      o->action == SLOT_SAVE ? "the slot holds" : "the file has");
    const size_t folder = strlen(w->path) - strlen(w->name);
    const bool named = strncmp(o->err.message, w->path, folder) == 0;
    return refuse(r, o->status == TERN_ERR_NOMEM || o->status == TERN_ERR_CACHE_MEMORY ? 503 : 400,
                  "filename", "%s", o->err.message + (named ? folder : 0));
}

static void write_done(const wish *w, text *t) {
    static const char *const counts[][3] = {{"saved", "written", "save"},
                                            {"restored", "read", "restore"}};
    const slot_order *o = &w->order;
    struct stat info = {0};
    text_print(t, "{\"id_slot\":%zu", o->at);
    if (o->action == SLOT_ERASE) {
        text_print(t, ",\"n_erased\":%zu}", o->n);
        return;
    }
    (void)stat(w->path, &info);
    text_string(t, "filename", w->name);
    text_print(t, ",\"n_%s\":%zu,\"n_%s\":%lld,\"timings\":{\"%s_ms\":%.3f}}", counts[o->action][0],
               o->n, counts[o->action][1], (long long)info.st_size, counts[o->action][2],
               1e3 * o->seconds);
}

void answer_slot(server *s, http_exchange *x) {
    refusal r = {0};
    wish w = {0};
    size_t size;
    const char *bytes = http_body(x, &size);
    json_t *body = size > 0 ? ask_parse(bytes, size, "the body", &r) : json_object();
    if (body == NULL || !read(s, x, body, &w, &r) || !carry_out(x, &w, &r)) {
        refusal_reply(&r, x);
    } else {
        text t = {0};
        write_done(&w, &t);
        reply_with(x, 200, "application/json", &t);
    }
    json_decref(body);
}
