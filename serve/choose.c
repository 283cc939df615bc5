/* SPDX-License-Identifier: Apache-2.0 */
/* Which model a request is for. */

#include <string.h>

#include "serve/server_internal.h"

/* The model that the body names, as a value of a document that the caller frees; NULL: it names
 * none. A body that is wrong is refused later, by whoever reads all of it. */
static const char *named_in_body(http_exchange *x, json_t **document) {
    refusal ignored;
    size_t size;
    const char *body = http_body(x, &size);
    *document = ask_parse(body, size, "the body", &ignored);
    return json_string_value(ask_model_of(*document));
}

/* Lists the names, as "'a', 'b' and 3 more". */
static void list_names(models *all, text *out) {
    enum { SHOWN = 8 };
    size_t n = 0;
    for (size_t i = 0; i < models_count(all); i++) {
        const model_entry *e = models_at(all, i);
        if (model_is_there(e) && n++ < SHOWN)
            text_print(out, "%s'%.60s'", n > 1 ? ", " : "", model_name(e));
    }
    if (n > SHOWN)
        text_print(out, " and %zu more", n - SHOWN);
}

static void refuse_name(models *all, const char *name, refusal *r) {
    text names = {0};
    list_names(all, &names);
    (void)refuse(r, 404, "model", "there is no model '%.100s' here, only %s", name,
                 names.bytes != NULL ? names.bytes : "others");
    r->code = "model_not_found";
    text_free(&names);
}

model_entry *models_entry(const server *s, const char *name, refusal *r) {
    model_entry *e = name != NULL ? models_find(s->models, name) : models_at(s->models, 0);
    if (e == NULL && s->config.any_model)
        e = models_at(s->models, 0);
    if (e == NULL)
        refuse_name(s->models, name, r);
    return e;
}

/* A server of one model has nothing to choose. Whoever reads the request checks the name. */
static model_entry *choose(const server *s, http_exchange *x, refusal *r) {
    const account *a = http_mark(x);
    if (models_count(s->models) == 1 && s->pulls == NULL)
        return models_at(s->models, 0);
    if (a->route->reads_body) {
        json_t *document;
        const char *name = named_in_body(x, &document);
        model_entry *e = models_entry(s, name != NULL ? name : http_deployment(x), r);
        json_decref(document);
        return e;
    }
    char name[MODEL_NAME_BYTES];
    return models_entry(s, http_argument(x, "model", name, sizeof name) ? name : NULL, r);
}

bool models_choose(server *s, http_exchange *x, const served **m) {
    refusal r = {0};
    models_answer answer = MODELS_REFUSED;
    model_entry *e = choose(s, x, &r);
    if (e != NULL && atomic_load(&s->draining)) { /* nothing is loaded any more */
        *m = models_borrow(s->models, e);
        answer = *m != NULL ? MODELS_TAKEN : answer;
        (void)refuse(&r, 503, NULL, "the server is ending");
    } else if (e != NULL) {
        answer = models_take(s->models, e, x, m, &r);
    }
    if (answer == MODELS_REFUSED)
        refusal_reply(&r, x);
    return answer == MODELS_TAKEN;
}
