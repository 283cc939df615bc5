/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client's input to `tern serve`. The first byte chooses a route of the table, the second one the
 * way in which the model's template writes calls of tools; the rest is the body. Requests for text
 * go to a real engine of a tiny model for some steps. Each request gets exactly one reply, which is
 * JSON, as is each event of a stream. The layers above and below (serve/http/http.h,
 * serve/work/worker.h) are replaced here, in one thread, and so are the clock and the random
 * numbers, so that an input does the same in each run. JSON bodies are mostly changed into other
 * JSON, with the words of the server's own description.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "authoring/synth.h"
#include "base/json_tree/read.h"
#include "base/random_bytes.h"
#include "serve/server_internal.h"
#include "tests/fuzz/change_json.h"

/* An answer in a form runs longer, so that calls of tools can end. */
enum { STEPS = 6, STEPS_IN_FORM = 160, CONTEXT = 512, MOST_ROUTES = 64 };
enum { CHOICES = 2 }; /* bytes before the body */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t most, unsigned seed);

static void require(bool condition) {
    if (!condition)
        abort();
}

/* ---- replaced system functions --------------------------------------------------------------- */

static double now; /* the engine's clock, a millisecond later each time */
static uint8_t drawn;

static double read_clock(void *user) {
    double *seconds = user;
    return *seconds += 1e-3;
}

/* Replaces the system's random bytes, for ids and name spaces. */
void tern_random_bytes(void *bytes, size_t size) {
    uint8_t *to = bytes;
    for (size_t i = 0; i < size; i++)
        to[i] = drawn++;
}

/* ---- an exchange, whose client reads everything at once -------------------------------------- */

struct http_exchange {
    char method[16], path[64];
    const char *body;
    size_t body_size;
    void *mark;
    unsigned owners, status;
    const char *type;
    char *reply;
    size_t size;
    bool stream, ended;
};

void http_keep(http_exchange *x) {
    x->owners++;
}
void http_release(http_exchange *x) {
    x->owners--;
}
const char *http_method(const http_exchange *x) {
    return x->method;
}
const char *http_path(const http_exchange *x) {
    return x->path;
}
const char *http_body(const http_exchange *x, size_t *size) {
    *size = x->body_size;
    return x->body;
}
/* The body also serves as the Host field. Routes without a body use it for nothing else. */
const char *http_request_header(const http_exchange *x, const char *name) {
    return strcmp(name, "Host") == 0 && x->body_size > 0 ? x->body : NULL;
}
bool http_argument(const http_exchange *x, const char *name, char *out, size_t size) {
    (void)x, (void)name, (void)out, (void)size;
    return false;
}
void http_set_mark(http_exchange *x, void *mark) {
    x->mark = mark;
}
void *http_mark(const http_exchange *x) {
    return x->mark;
}
void http_reply_header(http_exchange *x, const char *name, const char *value) {
    require(x->status == 0 && name[0] != '\0' && strpbrk(value, "\r\n") == NULL);
}
void http_reply(http_exchange *x, unsigned status, const char *type, char *bytes, size_t size) {
    require(x->status == 0 && status >= 200 && status < 600 && (bytes != NULL || size == 0));
    x->status = status;
    x->type = type;
    x->reply = bytes;
    x->size = size;
    x->ended = true;
}
void http_stream_open(http_exchange *x, const char *type) {
    require(x->status == 0);
    x->status = 200;
    x->type = type != NULL ? type : "text/event-stream";
    x->stream = true;
}
bool http_stream_write(http_exchange *x, const char *bytes, size_t size) {
    require(x->stream && !x->ended);
    x->reply = realloc(x->reply, x->size + size + 1);
    require(x->reply != NULL);
    if (size > 0)
        memcpy(x->reply + x->size, bytes, size);
    x->size += size;
    return true;
}
void http_stream_end(http_exchange *x) {
    x->ended = true;
}
void http_stream_cut(http_exchange *x) {
    (void)x;
    abort(); /* never happens: there is memory */
}
bool http_gone(http_exchange *x) {
    (void)x;
    return false;
}
unsigned http_status(http_exchange *x) {
    return x->status;
}
uint64_t http_sent_bytes(http_exchange *x) {
    return x->size;
}
double http_began(const http_exchange *x) {
    (void)x;
    return 0.0;
}
static size_t try_number; /* 1: the second request with this input */
const char *http_address(const http_server *s) {
    (void)s;
    return try_number == 0 ? "http://127.0.0.1:8080" : "unix:/run/it's a socket";
}
unsigned http_active(const http_server *s) {
    (void)s;
    return 1;
}

/* ---- the server's facts ---------------------------------------------------------------------- */

bool server_needs_key(server *s) {
    (void)s;
    return try_number > 0;
}

/* ---- one model, which is always loaded ------------------------------------------------------- */

static served the_model;

const served *server_model(const http_exchange *x) {
    (void)x;
    return &the_model;
}
size_t models_count(const models *all) {
    (void)all;
    return 1;
}
model_entry *models_at(models *all, size_t i) {
    (void)all, (void)i;
    return NULL;
}
model_entry *models_find(models *all, const char *name) {
    (void)all;
    return strcmp(name, "tiny") == 0 ? (model_entry *)&the_model : NULL; /* never looked into */
}
model_entry *models_entry(const server *s, const char *name, refusal *r) {
    (void)s;
    model_entry *e = name != NULL ? models_find(NULL, name) : NULL;
    if (e == NULL)
        (void)refuse(r, 404, "model", "the model is tiny");
    return e;
}
const char *model_name(const model_entry *e) {
    (void)e;
    return the_model.params.name;
}
const char *model_state_name(model_state state) {
    return state == MODEL_LOADED ? "loaded" : "unloaded";
}
void models_tell(models *all, model_entry *e, model_facts *out) {
    (void)all, (void)e;
    *out = (model_facts){.name = "tiny",
                         .path = "",
                         .state = MODEL_LOADED,
                         .known = true,
                         .isa = "scalar",
                         .info = the_model.info,
                         .n_ctx = CONTEXT};
}
void models_count_answers(models *all, model_entry *e, answer_metrics *counts,
                          tern_engine_state *state) {
    (void)all, (void)e;
    *counts = (answer_metrics){0};
    *state = tern_engine_now(the_model.engine);
}
const served *models_borrow(models *all, model_entry *e) {
    (void)all, (void)e;
    return &the_model;
}
void models_give_back(const served *m) {
    (void)m;
}
/* Clients fetch nothing here. */
bool model_is_there(const model_entry *e) {
    (void)e;
    return true;
}
bool model_is_fetched(const model_entry *e) {
    (void)e;
    return false;
}
bool models_remove(models *all, model_entry *e) {
    (void)all, (void)e;
    return false;
}
tern_status models_add(models *all, const char *name, const char *path, tern_error *err) {
    (void)all, (void)path;
    return tern_fail(err, TERN_ERR_NAME, "%s: clients fetch nothing here", name);
}
static void keep_lease(const void *of) {
    (void)of;
}

/* ---- a worker without a thread --------------------------------------------------------------- */

struct worker {
    tern_engine *engine;
};

static void cancel(worker *w, const job *j) {
    for (size_t i = 0; i < j->ask.n_prompts; i++)
        if (j->ids[i] != 0)
            (void)tern_engine_cancel(w->engine, j->ids[i]);
}

static void hand_over(job *j, const tern_event *e) {
    for (size_t i = 0; i < j->ask.n_prompts; i++)
        if (j->ids[i] == e->request && !job_take(j, i, e))
            j->over = true;
}

/* Makes some steps, then cancels the rest. */
static void answer(worker *w, job *j) {
    const int steps = j->ask.grammar != NULL ? STEPS_IN_FORM : STEPS;
    job_begin(j);
    for (int i = 0; j->n_left > 0; i++) {
        const tern_event *events;
        size_t n;
        if (i == steps || j->over)
            cancel(w, j);
        require(i <= steps + 1);
        require(tern_engine_step(w->engine, &events, &n, NULL) == TERN_OK);
        for (size_t k = 0; k < n; k++)
            hand_over(j, &events[k]);
    }
    require(j->over);
}

void worker_submit(worker *w, job *j) {
    const tern_event *events;
    tern_error err = {0};
    tern_status status = TERN_OK;
    size_t n;
    refusal r;
    for (size_t i = 0; i < j->ask.n_prompts && status == TERN_OK; i++) {
        const tern_request request = job_request(j, i);
        status = tern_engine_submit(w->engine, &request, &j->ids[i], &err);
    }
    if (status == TERN_OK) {
        answer(w, j);
    } else {
        require(status != TERN_ERR_NULL && status != TERN_ERR_EMPTY);
        cancel(w, j);
        require(tern_engine_step(w->engine, &events, &n, NULL) == TERN_OK);
        (void)refuse_error(&r, NULL, &err);
        job_refuse(j, &r);
    }
    job_free(j);
    const tern_engine_state left = tern_engine_now(w->engine);
    require(left.waiting + left.running == 0 && left.used_pages == 0);
    tern_engine_forget(w->engine);
}

size_t worker_write_slots(worker *w, size_t most, bool named, text *out) {
    (void)w;
    (void)named;
    (void)most;
    (void)out;
    return 0;
}
bool worker_do(worker *w, slot_order *order) {
    (void)w;
    (void)order;
    return false;
}
double worker_stalled(worker *w) {
    (void)w;
    return 0.0;
}

/* ---- a server -------------------------------------------------------------------------------- */

static struct worker the_worker;
static server s;
static char methods[MOST_ROUTES][16], paths[MOST_ROUTES][64];
static size_t n_routes;

/* The table itself says which routes exist. */
static void read_routes(void) {
    text list = {0};
    route_list(&list);
    for (char *line = strtok(list.bytes, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        require(n_routes < MOST_ROUTES);
        require(sscanf(line, " %15s %63s", methods[n_routes], paths[n_routes]) == 2);
        char *star = strchr(paths[n_routes], '*');
        if (star != NULL)
            *star = 'x';
        n_routes++;
    }
    text_free(&list);
    require(n_routes > 0);
}

static tern_model *open_model(void) {
    char path[] = "/tmp/tern-fuzz-XXXXXX";
    tern_model *model = NULL;
    const int fd = mkstemp(path);
    require(fd >= 0 && close(fd) == 0);
    require(tern_synth("llama-tiny-f16", path, TERN_OUT_REPLACE, 1, NULL, NULL, NULL) == TERN_OK);
    require(tern_model_open(path, NULL, &model, NULL) == TERN_OK);
    (void)unlink(path);
    return model;
}

static void open_server(void) {
    tern_model *model = open_model();
    served *m = &the_model;
    m->params = (served_params){.config = &s.config, .name = "tiny"};
    m->with = (model_setup){.model = model,
                            .engine = {.n_ctx = CONTEXT,
                                       .n_sequences = 4,
                                       .n_queue = 16,
                                       .threads = 1,
                                       .kv = TERN_FORMAT_F16,
                                       .clock = read_clock,
                                       .clock_user = &now},
                            .sampling = tern_sampler_params_default(),
                            .pooling = TERN_POOLING_MEAN};
    require(tern_model_tokenizer(model, &m->tokenizer, NULL) == TERN_OK);
    require(tern_engine_new(model, &m->with.engine, &m->engine, NULL) == TERN_OK);
    m->scales = malloc(sizeof *m->scales);
    require(m->scales != NULL);
    adapter_scales_open(m->scales, model);
    tern_model_describe(model, &m->info);
    the_worker.engine = m->engine;
    m->worker = &the_worker;
    m->rules = (ask_rules){.tokenizer = m->tokenizer,
                           .model = m->params.name,
                           .sampling = m->with.sampling,
                           .seeded = true,
                           .n_vocab = m->info.n_vocab,
                           .n_ctx = CONTEXT,
                           .most_choices = m->with.engine.n_queue,
                           .adapters = m->scales,
                           .vectors = model,
                           .n_embd = m->info.n_embd};
    m->place = (job_place){.tokenizer = m->tokenizer,
                           .model = m->params.name,
                           .fingerprint = m->fingerprint,
                           .n_ctx = CONTEXT,
                           .threads = 1,
                           .pooling = m->with.pooling,
                           .lease = {m, keep_lease, keep_lease}};
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* A model may produce a zero byte. The reader takes JSON without any, so another byte replaces
 * it. */
static void check_json(const char *bytes, size_t size) {
    char *copy = malloc(size + 1);
    require(copy != NULL);
    memcpy(copy, bytes, size);
    copy[size] = '\0';
    for (char *at = copy; (at = strstr(at, "\\u0000")) != NULL;)
        at[5] = '1';
    json_t *root = json_read(copy, size, "reply", NULL);
    require(root != NULL);
    json_decref(root);
    free(copy);
}

/* Ollama's interface streams a line of JSON for each piece. */
static void check_lines(const http_exchange *x) {
    const char *at = x->reply, *end = at + x->size;
    while (at < end) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        require(next != NULL);
        check_json(at, (size_t)(next - at));
        at = next + 1;
    }
}

/* Events end with an empty line. Their data is JSON, or the word that ends a stream. */
static void check_events(const http_exchange *x) {
    const char *at = x->reply, *end = at + x->size;
    while (at < end) {
        const char *next = memmem(at, (size_t)(end - at), "\n\n", 2);
        const char *data = memmem(at, (size_t)(end - at), "data: ", 6);
        require(next != NULL && data != NULL && data < next);
        data += 6;
        require(memchr(data, '\n', (size_t)(next - data)) == NULL);
        if (next - data != 6 || memcmp(data, "[DONE]", 6) != 0)
            check_json(data, (size_t)(next - data));
        at = next + 2;
    }
}

static void check_reply(const http_exchange *x) {
    require(x->owners == 1 && x->status != 0 && x->ended);
    if (x->stream && strcmp(x->type, "text/event-stream") == 0)
        check_events(x);
    else if (x->stream)
        check_lines(x);
    else if (strcmp(x->type, "application/json") == 0)
        check_json(x->reply, x->size);
}

/* ---- a request ---------------------------------------------------------------------------------
 */

/* Resets everything that the previous input left. */
static void forget(void) {
    now = 1.0;
    drawn = 0;
    grammars_free(&the_model.grammars);
    require(grammars_open(the_model.tokenizer, the_model.info.n_vocab, &the_model.grammars, NULL) ==
            TERN_OK);
    the_model.rules.grammars = the_model.grammars;
}

/* Handles route number i; x holds the reply. */
static void answer_route(size_t i, http_exchange *x) {
    char found[64];
    account *v = account_new(NULL);
    x->owners = 1;
    x->mark = v;
    memcpy(x->method, methods[i], sizeof x->method);
    memcpy(x->path, paths[i], sizeof x->path);
    const route *r = route_find(x->method, x->path, found, sizeof found);
    require(v != NULL && r != NULL);
    r->handle(&s, x);
    account_release(v);
}

static json_t *description; /* of the interface; the words point into it */
static words known;

/* Opens the server once. Its description supplies the words for requests. */
static void begin(void) {
    if (n_routes > 0)
        return;
    open_server();
    read_routes();
    for (size_t i = 0; i < n_routes; i++) {
        http_exchange x = {.body = ""};
        if (strcmp(paths[i], "/openapi.json") != 0)
            continue;
        answer_route(i, &x);
        description = json_read(x.reply, x.size, "openapi.json", NULL);
        words_learn(&known, json_object_get(description, "paths"));
        free(x.reply);
    }
    require(known.n_names > 0 && known.n_values > 0);
}

static size_t change_body(uint8_t *data, size_t size, size_t most, const json_t *other,
                          unsigned seed) {
    if (size < CHOICES)
        return 0;
    const size_t made =
        change_json(&known, (char *)data + CHOICES, size - CHOICES, most - CHOICES, other, seed);
    return made > 0 ? made + CHOICES : 0;
}

/* One change in eight affects arbitrary bytes. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    begin();
    const size_t made = seed % 8 > 0 ? change_body(data, size, most, NULL, seed) : 0;
    return made > 0 ? made : LLVMFuzzerMutate(data, size, most);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t most, unsigned seed) {
    begin();
    json_t *other = NULL;
    if (b_size >= CHOICES)
        other = json_read((const char *)b + CHOICES, b_size - CHOICES, "input", NULL);
    size_t made = 0;
    if (other != NULL && a_size <= most) {
        memcpy(out, a, a_size);
        made = change_body(out, a_size, most, other, seed);
    }
    json_decref(other);
    return made;
}

static void ask_once(size_t i, const char *body, size_t size) {
    http_exchange x = {.body = body, .body_size = size};
    answer_route(i, &x);
    check_reply(&x);
    free(x.reply);
}

/* The highest bit of the second byte makes the request twice, because the server keeps compiled
 * grammars. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    begin();
    if (size < CHOICES)
        return 0;
    const size_t body_size = size - CHOICES;
    char *body = malloc(body_size + 1); /* terminated, and not a byte longer */
    require(body != NULL);
    memcpy(body, data + CHOICES, body_size);
    body[body_size] = '\0';
    the_model.rules.calls = call_form_of((call_style)(data[1] % 0x80 % CALL_STYLES));
    forget();
    for (try_number = 0; try_number <= data[1] / 0x80; try_number++)
        ask_once(data[0] % n_routes, body, body_size);
    try_number = 0;
    free(body);
    return 0;
}
