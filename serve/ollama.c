/* SPDX-License-Identifier: Apache-2.0 */
/* Routes of Ollama's interface. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "serve/interfaces/ollama.h"
#include "serve/server_internal.h"
#include "serve/work/dialect.h"
#include "tern/gguf.h"

static const char json[] = "application/json";
static const char template_key[] = "tokenizer.chat_template";

/* The version of Ollama's interface that is described in docs/serving.md. Clients ask for it, to
 * know what they may send. */
static const char interface_version[] = "0.13.0";

/* ---- what is served -------------------------------------------------------------------------- */

/* A model as lists describe it, whether it is loaded or not. */
typedef struct described {
    model_facts facts;
    tern_gguf *file; /* NULL: it cannot be read */
    char architecture[64];
    uint64_t parameters, context, width; /* 0: not known */
} described;

/* Returns a number of the file's metadata under the architecture's name. */
static uint64_t number_of(const described *d, const char *ending) {
    char name[128];
    uint32_t value = 0;
    tern_error err;
    (void)snprintf(name, sizeof name, "%s.%s", d->architecture, ending);
    return tern_gguf_u32(d->file, name, &value, &err) == TERN_OK ? value : 0;
}

static void read_file(described *d) {
    tern_span said;
    tern_error err;
    if (tern_gguf_open(d->facts.path, &d->file, &err) != TERN_OK)
        return;
    if (tern_gguf_string(d->file, "general.architecture", &said, &err) == TERN_OK)
        (void)snprintf(d->architecture, sizeof d->architecture, "%.*s", (int)said.size, said.data);
    d->context = number_of(d, "context_length");
    d->width = number_of(d, "embedding_length");
    for (size_t i = 0; i < tern_gguf_tensor_count(d->file); i++) {
        const tern_gguf_tensor *t = tern_gguf_tensor_at(d->file, i);
        d->parameters += t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
    }
}

static void describe(const server *s, model_entry *e, described *d) {
    *d = (described){0};
    models_tell(s->models, e, &d->facts);
    read_file(d);
    if (d->facts.known) {
        d->parameters = d->facts.info.parameters;
        d->context = d->facts.n_ctx;
        d->width = d->facts.info.n_embd;
    }
}

/* ---- descriptions ---------------------------------------------------------------------------- */

static const char *const endings[] = {"", "K", "M", "B", "T"};

/* Writes a number of parameters in three or more digits, as in "134.52M". */
static void write_count(text *t, const char *name, uint64_t n) {
    double x = (double)n;
    size_t k = 0;
    for (; x >= 1000.0 && k + 1 < sizeof endings / sizeof *endings; k++)
        x /= 1000.0;
    text_name(t, name);
    text_print(t, "\"%.*f%s\"", k > 0 ? 2 : 0, x, endings[k]);
}

/* Returns the type that most bytes of a file's matrices have; "unknown" if it has none. */
static const char *main_type(const tern_gguf *file) {
    const char *most = "unknown";
    uint64_t most_bytes = 0;
    for (size_t i = 0; i < tern_gguf_tensor_count(file); i++) {
        const char *type = tern_gguf_tensor_type(tern_gguf_tensor_at(file, i));
        uint64_t bytes = 0;
        for (size_t k = i; k < tern_gguf_tensor_count(file); k++) {
            const tern_gguf_tensor *other = tern_gguf_tensor_at(file, k);
            if (other->n_dims > 1 && strcmp(tern_gguf_tensor_type(other), type) == 0)
                bytes += other->bytes;
        }
        if (bytes > most_bytes) {
            most_bytes = bytes;
            most = type;
        }
    }
    return most;
}

static void write_details(text *t, const described *d) {
    text_name(t, "details");
    text_print(t, "{\"parent_model\":\"\",\"format\":\"gguf\"");
    text_string(t, "family", d->architecture);
    text_name(t, "families");
    text_print(t, "[");
    text_quote(t, d->architecture, strlen(d->architecture));
    text_print(t, "]");
    write_count(t, "parameter_size", d->parameters);
    text_string(t, "quantization_level", d->file != NULL ? main_type(d->file) : "unknown");
    text_print(t, ",\"context_length\":%" PRIu64 ",\"embedding_length\":%" PRIu64 "}", d->context,
               d->width);
}

static void write_modified(text *t, const described *d) {
    dialect_write_time(t, "modified_at", d->facts.file_time);
}

/* Writes {"name", "model", "size", "digest", "details": what lists have of a model. The digest is a
 * number that only models that compute the same share, zero before a model is loaded first; leaves
 * the object open. */
static void open_entry(text *t, const described *d) {
    char name[160];
    (void)snprintf(name, sizeof name, "%s:latest", d->facts.name);
    text_print(t, "{\"name\":");
    text_quote(t, name, strlen(name));
    text_string(t, "model", name);
    text_print(t, ",\"size\":%" PRIu64 ",\"digest\":\"%064" PRIx64 "\"",
               d->facts.known ? d->facts.info.file_bytes : d->facts.file_bytes, d->facts.identity);
    write_details(t, d);
}

/* Replies with the models that are served, all or those in memory; `rest` writes what only that
 * list has. */
static void list(server *s, http_exchange *x, bool all, void (*rest)(text *t, const described *d)) {
    text t = {0};
    size_t n = 0;
    text_print(&t, "{\"models\":[");
    for (size_t i = 0; i < models_count(s->models); i++) {
        described d;
        if (!model_is_there(models_at(s->models, i)))
            continue;
        describe(s, models_at(s->models, i), &d);
        if (all || d.facts.state == MODEL_LOADED) {
            text_add(&t, ",", n++ > 0);
            open_entry(&t, &d);
            rest(&t, &d);
            text_print(&t, "}");
        }
        tern_gguf_close(&d.file);
    }
    text_print(&t, "]}");
    reply_with(x, 200, json, &t);
}

void ollama_tags(server *s, http_exchange *x) {
    list(s, x, true, write_modified);
}

/* Models stay in memory until another needs the room, which no clock tells: their time ends at the
 * last second that all clients can read. */
static void write_loaded(text *t, const described *d) {
    text_print(
        t, ",\"expires_at\":\"9999-12-31T23:59:59Z\",\"size_vram\":0,\"context_length\":%" PRIu64,
        d->context);
}

void ollama_ps(server *s, http_exchange *x) {
    list(s, x, false, write_loaded);
}

void ollama_version(server *s, http_exchange *x) {
    text t = {0};
    (void)s;
    text_print(&t, "{\"version\":\"%s\",\"tern\":\"%s\"}", interface_version, tern_version());
    reply_with(x, 200, json, &t);
}

/* ---- one model ------------------------------------------------------------------------------- */

/* Writes a number, a truth value or a text of the file's metadata; null stands for lists. */
static void write_value(text *t, const tern_gguf_value *v) {
    const uint8_t *at = v->data;
    uint32_t whole;
    float real;
    if (v->type == TERN_GGUF_STRING) {
        const tern_span said = tern_gguf_next_string(&at);
        text_quote(t, said.data, said.size);
    } else if (v->type == TERN_GGUF_BOOL) {
        text_print(t, *at != 0 ? "true" : "false");
    } else if (v->type == TERN_GGUF_F32) {
        memcpy(&real, at, sizeof real);
        text_float(t, real);
    } else if (v->type != TERN_GGUF_ARRAY && tern_gguf_element_u32(v, 0, &whole)) {
        text_print(t, "%" PRIu32, whole);
    } else {
        text_print(t, "null");
    }
}

/* Writes the file's metadata. Its template has a place of its own. */
static void write_metadata(text *t, const served *m, const tern_gguf *file) {
    text_name(t, "model_info");
    text_print(t, "{\"general.parameter_count\":%" PRIu64, m->info.parameters);
    for (size_t i = 0; file != NULL && i < tern_gguf_value_count(file); i++) {
        const tern_gguf_value *v = tern_gguf_value_at(file, i);
        text name = {0};
        text_add(&name, v->key.data, v->key.size);
        if (name.bytes != NULL && strcmp(name.bytes, template_key) != 0 &&
            strcmp(name.bytes, "general.parameter_count") != 0) {
            text_name(t, name.bytes);
            write_value(t, v);
        }
        text_free(&name);
    }
    text_print(t, "}");
}

static void write_template(text *t, const tern_gguf *file) {
    tern_span said = {"", 0};
    tern_error err;
    if (file == NULL || tern_gguf_string(file, template_key, &said, &err) != TERN_OK)
        said = (tern_span){"", 0};
    text_name(t, "template");
    text_quote(t, said.data, said.size);
}

static void write_capabilities(text *t, const served *m) {
    const bool text_is_made = tern_model_continues(m->with.model);
    const struct {
        bool has;
        const char *name;
    } all[] = {{text_is_made, "completion"},
               {text_is_made && !m->rules.calls->unwritten, "tools"},
               {text_is_made && ollama_thinks(m->tokenizer), "thinking"},
               {m->with.pooling != TERN_POOLING_NONE, "embedding"}};
    size_t n = 0;
    text_name(t, "capabilities");
    text_print(t, "[");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].has)
            text_print(t, "%s\"%s\"", n++ > 0 ? "," : "", all[i].name);
    text_print(t, "]");
}

/* Writes the server's defaults, one a line, as Ollama's files of models have them. */
static void write_parameters(text *t, const tern_sampler_params *p) {
    text lines = {0};
    text_print(&lines, "temperature %g\ntop_k %u\ntop_p %g\nmin_p %g\nrepeat_penalty %g",
               (double)p->temperature, p->top_k, (double)p->top_p, (double)p->min_p,
               (double)p->repetition_penalty);
    text_name(t, "parameters");
    text_quote(t, lines.bytes, lines.size);
    t->failed = t->failed || lines.failed;
    text_free(&lines);
}

static void write_shown(server *s, const served *m, text *t) {
    described d;
    describe(s, m->params.entry, &d);
    text_print(t, "{\"modelfile\":\"\"");
    write_parameters(t, &m->rules.sampling);
    write_template(t, d.file);
    write_details(t, &d);
    write_metadata(t, m, d.file);
    write_capabilities(t, m);
    write_modified(t, &d);
    text_print(t, "}");
    tern_gguf_close(&d.file);
}

/* Reads the name of a model from a body. False after a refusal. */
static bool read_name(const json_t *body, const ask_rules *rules, refusal *r) {
    const json_t *model = ask_model_of(body);
    return model != NULL ? ask_check_model(rules, model, r)
                         : refuse(r, 400, "model", "model is missing");
}

void ollama_show(server *s, http_exchange *x) {
    refusal r = {0};
    size_t size;
    const served *m = server_model(x);
    const char *bytes = http_body(x, &size);
    json_t *body = ask_parse(bytes, size, "the body", &r);
    if (body == NULL || !read_name(body, &m->rules, &r)) {
        refusal_reply(&r, x);
    } else {
        text t = {0};
        write_shown(s, m, &t);
        reply_with(x, 200, json, &t);
    }
    json_decref(body);
}

/* ---- texts and vectors ----------------------------------------------------------------------- */

/* Replies to a request without a prompt, which asks for the model to be loaded: it is. */
static void reply_empty(http_exchange *x, ollama_kind kind, const char *name) {
    static const char *const said[] = {[OLLAMA_CHAT] =
                                           "\"message\":{\"role\":\"assistant\",\"content\":\"\"}",
                                       [OLLAMA_GENERATE] = "\"response\":\"\"",
                                       [OLLAMA_EMBED] = "\"embeddings\":[]",
                                       [OLLAMA_EMBEDDING] = "\"embedding\":[]"};
    text t = {0};
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    text_print(&t, "{\"model\":");
    text_quote(&t, name, strlen(name));
    dialect_write_time(&t, "created_at", now);
    text_print(&t, ",%s", said[kind]);
    if ((kind & OLLAMA_TEXT) != 0)
        text_print(&t, ",\"done\":true,\"done_reason\":\"load\"");
    text_print(&t, "}\n");
    reply_with(x, 200, json, &t);
}

static void answer(server *s, http_exchange *x, ollama_kind kind) {
    refusal r = {0};
    ask a = {0};
    size_t size;
    bool empty = false;
    const char *body = http_body(x, &size);
    const bool says = (kind & OLLAMA_TEXT) != 0;
    reading in;
    reading_open(&in, s, x, says); /* texts for embeddings may be cut to the context */
    if (!answer_begin(s, x, says ? ANSWER_TEXT : ANSWER_VECTORS, &r) ||
        !ollama_read(&a, kind, &in.rules, body, size, &empty, &r) ||
        (!empty && !answer_submit(x, &a, &r))) {
        answer_refuse(x, &a, &r);
    } else if (empty) {
        account_leave(http_mark(x));
        reply_empty(x, kind, in.model->place.model);
    }
}

void ollama_chat(server *s, http_exchange *x) {
    answer(s, x, OLLAMA_CHAT);
}

void ollama_generate(server *s, http_exchange *x) {
    answer(s, x, OLLAMA_GENERATE);
}

void ollama_embed(server *s, http_exchange *x) {
    answer(s, x, OLLAMA_EMBED);
}

void ollama_embeddings(server *s, http_exchange *x) {
    answer(s, x, OLLAMA_EMBEDDING);
}

/* ---- what is not there ----------------------------------------------------------------------- */

void ollama_refuse(server *s, http_exchange *x) {
    refusal r;
    (void)s;
    (void)refuse(&r, 501, NULL, "%s: this server makes and copies no models", http_path(x));
    refusal_reply(&r, x);
}

static const char no_fetcher[] = "this server fetches and removes no models: start it with "
                                 "--pull-path FOLDER, or tern pull, then tern serve -m";

/* Reads the name of the model that a body is about, without ":latest". False after a refusal. */
static bool read_fetched_name(const json_t *body, char name[MODEL_FETCHED_BYTES], refusal *r) {
    static const char latest[] = ":latest";
    const char *given = json_string_value(ask_model_of(body));
    const size_t n = given != NULL ? strlen(given) : 0, ending = sizeof latest - 1;
    const bool ends = n > ending && strcmp(given + n - ending, latest) == 0;
    if (n == 0 || n >= MODEL_FETCHED_BYTES)
        return refuse(r, 400, "model", "model must be a text of 1 to %d bytes",
                      MODEL_FETCHED_BYTES - 1);
    (void)snprintf(name, MODEL_FETCHED_BYTES, "%.*s", (int)(ends ? n - ending : n), given);
    return true;
}

/* Says of a model that is served that it has been fetched, as clients ask before they use it. */
static void reply_fetched(http_exchange *x, bool stream) {
    text t = {0};
    text_print(&t, "%s{\"status\":\"success\"}%s",
               stream ? "{\"status\":\"pulling manifest\"}\n" : "", stream ? "\n" : "");
    reply_with(x, 200, stream ? "application/x-ndjson" : json, &t);
}

/* Fetches a model, or replies that it is here. False after a refusal. */
static bool fetch(const server *s, http_exchange *x, const json_t *body, refusal *r) {
    char name[MODEL_FETCHED_BYTES];
    const json_t *said = json_object_get(body, "stream");
    const bool stream = !json_is_boolean(said) || json_is_true(said);
    if (!read_fetched_name(body, name, r))
        return false;
    const model_entry *e = models_find(s->models, name);
    if (e != NULL && !model_is_fetched(e)) {
        reply_fetched(x, stream);
        return true;
    }
    return s->pulls != NULL
               ? pulls_join(s->pulls, x, name, stream, r)
               : refuse(r, 501, "model", "'%.100s' is not served here, and %s", name, no_fetcher);
}

/* Removes a model that a client fetched. False after a refusal. */
static bool forget(const server *s, const json_t *body, refusal *r) {
    char name[MODEL_FETCHED_BYTES];
    tern_error err = {0};
    model_facts facts;
    if (s->pulls == NULL)
        return refuse(r, 501, NULL, "%s", no_fetcher);
    if (!read_fetched_name(body, name, r))
        return false;
    model_entry *e = models_find(s->models, name);
    if (e == NULL)
        return refuse(r, 404, "model", "there is no model '%.100s' here", name);
    if (pulls_has(s->pulls, name))
        return refuse(r, 409, "model", "'%.100s' is being fetched", name);
    if (!models_remove(s->models, e))
        return refuse(r, 403, "model", "'%.100s' was not fetched by a client: it stays", name);
    models_tell(s->models, e, &facts);
    const model_fetcher *f = s->config.fetcher;
    return f->remove(f->user, name, facts.path, &err) == TERN_OK || refuse_error(r, "model", &err);
}

void ollama_pull(server *s, http_exchange *x) {
    refusal r = {0};
    size_t size;
    const char *bytes = http_body(x, &size);
    json_t *body = ask_parse(bytes, size, "the body", &r);
    if (body == NULL || !fetch(s, x, body, &r))
        refusal_reply(&r, x);
    json_decref(body);
}

void ollama_delete(server *s, http_exchange *x) {
    refusal r = {0};
    size_t size;
    const char *bytes = http_body(x, &size);
    json_t *body = ask_parse(bytes, size, "the body", &r);
    if (body == NULL || !forget(s, body, &r))
        refusal_reply(&r, x);
    else
        http_reply(x, 200, json, NULL, 0);
    json_decref(body);
}
