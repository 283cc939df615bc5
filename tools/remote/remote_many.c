/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tern run --server --prompts-file: many prompts, answered by a server. Several threads, each with
 * its own connection, ask for one answer after the other; this thread prints them in order.
 */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/metrics.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json_line.h"
#include "tools/cli/output.h"
#include "tools/prompt/prompt.h"
#include "tools/prompt/prompt_file.h"
#include "tools/remote/remote.h"

enum {
    AT_ONCE = 8, /* without --parallel */
    AHEAD = 4,   /* times as many may be complete and wait until the first is printed */
    TRIES = 6,   /* per prompt, if the server says when to ask again */
    MOST_SECONDS = 60
};

typedef struct told {
    remote_answer answer;
    tern_status status;
    tern_error error; /* if the status is not TERN_OK */
    bool done;
} told;

typedef struct many many;

typedef struct asker {
    many *m;
    remote *server;
    pthread_t thread;
} asker;

struct many {
    const options *o;
    const json_t *fields;
    prompts prompts;
    asker *askers; /* [at_once], of which n_threads are running */
    size_t at_once, n_threads;
    bool json;
    size_t answers, failures;
    long long prompt_tokens, generated_tokens;

    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t changed;
    told *answered;        /* [prompts.n] */
    size_t begun, n_shown; /* the first that no thread has; the first that is not printed */
    bool broken;           /* the output cannot be written */
};

/* ---- threads that ask ------------------------------------------------------------------------ */

static bool is_over(const many *m) {
    return m->begun == m->prompts.n || m->broken || interrupt_seen();
}

/* Takes the next prompt; false: there are no more. */
static bool take(many *m, size_t *i) {
    (void)pthread_mutex_lock(&m->lock);
    while (!is_over(m) && m->begun >= m->n_shown + AHEAD * m->at_once)
        (void)pthread_cond_wait(&m->changed, &m->lock);
    const bool more = !is_over(m);
    *i = m->begun;
    m->begun += more;
    (void)pthread_mutex_unlock(&m->lock);
    return more;
}

static bool go_on(void *user, const char *bytes, size_t size) {
    (void)user, (void)bytes, (void)size; /* the answer keeps it */
    return !interrupt_seen();
}

/* Waits for a busy server; false: a signal came. */
static bool wait_seconds(long seconds) {
    const struct timespec pause = {.tv_nsec = 50000000};
    const double until =
        tern_clock_seconds() + (double)(seconds < MOST_SECONDS ? seconds : MOST_SECONDS);
    while (tern_clock_seconds() < until && !interrupt_seen())
        (void)nanosleep(&pause, NULL);
    return !interrupt_seen();
}

static void ask(const asker *a, size_t i, told *t) {
    const many *m = a->m;
    for (unsigned left = TRIES; left > 0; left--) {
        const long retry = t->answer.retry_seconds;
        if (retry > 0 && !wait_seconds(retry)) {
            t->status = TERN_OK;
            t->answer.end = REMOTE_INTERRUPTED;
            return;
        }
        remote_answer_free(&t->answer);
        t->status = remote_ask(a->server, m->o, &m->prompts.items[i], m->fields, go_on, NULL,
                               &t->answer, &t->error);
        if (t->status == TERN_OK || t->answer.retry_seconds == 0)
            return;
    }
}

static void *work(void *user) {
    const asker *a = user;
    many *m = a->m;
    size_t i;
    while (take(m, &i)) {
        told t = {.done = true};
        ask(a, i, &t);
        (void)pthread_mutex_lock(&m->lock);
        m->answered[i] = t;
        (void)pthread_cond_broadcast(&m->changed);
        (void)pthread_mutex_unlock(&m->lock);
    }
    (void)pthread_mutex_lock(&m->lock);
    (void)pthread_cond_broadcast(&m->changed);
    (void)pthread_mutex_unlock(&m->lock);
    return NULL;
}

/* ---- output ---------------------------------------------------------------------------------- */

static void print_line(const many *m, size_t i, const told *t) {
    json_t *line = json_pack("{s:I, s:I}", "prompt", (json_int_t)i + 1, "round", (json_int_t)1);
    if (t->status != TERN_OK)
        json_object_set_new(line, "error", json_text(t->error.message, strlen(t->error.message)));
    else
        remote_set_answer(line, m->askers[0].server, &t->answer);
    (void)json_print(line);
    out_flush();
}

static bool print_text(const many *m, size_t i, const told *t) {
    const prompt *p = &m->prompts.items[i];
    if (t->status != TERN_OK) {
        complain("prompt %zu: %s", i + 1, t->error.message);
        return true;
    }
    if (options_switch(m->o, OPT_ECHO))
        out_write(p->text, p->size);
    out_write(t->answer.said.bytes != NULL ? t->answer.said.bytes : "", t->answer.said.size);
    out_print("\n");
    return out_flush();
}

static void tell(many *m, size_t i, told *t) {
    m->answers++;
    m->failures += t->status != TERN_OK;
    m->prompt_tokens += t->answer.prompt_tokens;
    m->generated_tokens += t->answer.generated_tokens;
    bool written = true;
    if (m->json)
        print_line(m, i, t);
    else
        written = print_text(m, i, t);
    remote_answer_free(&t->answer);
    (void)pthread_mutex_lock(&m->lock);
    m->n_shown = i + 1;
    m->broken = !written;
    (void)pthread_cond_broadcast(&m->changed);
    (void)pthread_mutex_unlock(&m->lock);
}

/* Waits for an answer; false: it will never come. */
static bool wait_for(many *m, size_t i) {
    (void)pthread_mutex_lock(&m->lock);
    while (!m->answered[i].done && (i < m->begun || !is_over(m)))
        (void)pthread_cond_wait(&m->changed, &m->lock);
    const bool done = m->answered[i].done;
    (void)pthread_mutex_unlock(&m->lock);
    return done;
}

static int print_run(const many *m, double seconds) {
    json_t *root = json_pack("{s:I, s:I, s:I, s:I}", "answers", (json_int_t)m->answers, "failed",
                             (json_int_t)m->failures, "prompt_tokens", (json_int_t)m->prompt_tokens,
                             "generated_tokens", (json_int_t)m->generated_tokens);
    json_object_set_new(root, "parallel", json_integer((json_int_t)m->at_once));
    json_object_set_new(root, "server", json_string(remote_place(m->askers[0].server)));
    json_object_set_new(root, "seconds", json_number(seconds));
    return json_print(root);
}

static int answer_all(many *m) {
    const double begin = tern_clock_seconds();
    while (m->n_threads < m->at_once && pthread_create(&m->askers[m->n_threads].thread, NULL, work,
                                                       &m->askers[m->n_threads]) == 0)
        m->n_threads++;
    if (m->n_threads == 0) {
        complain("no thread to ask a server");
        return EXIT_FAILED;
    }
    for (size_t i = 0; i < m->prompts.n && !m->broken && wait_for(m, i); i++)
        tell(m, i, &m->answered[i]);
    for (size_t i = 0; i < m->n_threads; i++)
        (void)pthread_join(m->askers[i].thread, NULL);
    if (m->json && print_run(m, tern_clock_seconds() - begin) != EXIT_DONE)
        return EXIT_FAILED;
    return m->failures > 0 ? EXIT_FAILED : interrupt_status(EXIT_DONE);
}

/* ---- from the options ------------------------------------------------------------------------ */

static int open_all(many *m) {
    const uint64_t most = options_integer(m->o, OPT_RUN_PARALLEL);
    m->at_once = most > 0 ? (size_t)most : AT_ONCE;
    m->at_once = m->prompts.n < m->at_once ? m->prompts.n : m->at_once;
    m->askers = calloc(m->at_once + 1, sizeof *m->askers);
    m->answered = calloc(m->prompts.n + 1, sizeof *m->answered);
    if (m->askers == NULL || m->answered == NULL) {
        complain("no memory to ask a server");
        return EXIT_FAILED;
    }
    int status = EXIT_DONE;
    for (size_t i = 0; i < m->at_once && status == EXIT_DONE; i++) {
        m->askers[i].m = m;
        status = i == 0 ? remote_open(m->o, &m->askers[0].server)
                        : remote_open_again(m->askers[0].server, &m->askers[i].server);
    }
    return status;
}

int remote_run_many(const options *o, const json_t *fields) {
    many m = {.o = o,
              .fields = fields,
              .json = options_switch(o, OPT_JSON),
              .lock = PTHREAD_MUTEX_INITIALIZER,
              .changed = PTHREAD_COND_INITIALIZER};
    int status = prompts_read(options_text(o, OPT_PROMPTS_FILE), false, &m.prompts);
    if (status == EXIT_DONE)
        status = open_all(&m);
    if (status == EXIT_DONE)
        status = answer_all(&m);
    for (size_t i = 0; i < m.prompts.n && m.answered != NULL; i++)
        remote_answer_free(&m.answered[i].answer);
    for (size_t i = 0; i < m.at_once && m.askers != NULL; i++)
        remote_close(&m.askers[i].server);
    free(m.askers);
    free(m.answered);
    prompts_free(&m.prompts);
    return status;
}
