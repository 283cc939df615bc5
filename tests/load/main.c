/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tern_load --port PORT | --unix PATH [--pid PID] [--clients N] [--seconds S] [--recipes N]
 *      [--tokens N] [--prompt N] [--seed N] [--even | --other | --unchecked]
 *
 * Puts load on tern serve on this machine. First it makes each of its requests alone. Then all
 * clients make requests at once until the time is over, some of them misbehaving, and compare the
 * answers. It prints a line of JSON, and the same in words on standard error. The status is 1 if an
 * answer differed, was mixed up with another or incomplete, if the server still holds something for
 * clients that have gone, or if its memory grew. --pid names the process whose memory is measured.
 *
 * For figures of speed: --even makes only streams of equal length, for prompts of --prompt tokens.
 * --other does the same with a server that may not be tern's: texts are not compared, each request
 * has its own connection, and only one request is made alone before. --unchecked does the same with
 * tern's server: no request is made before, and connections are kept.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/json_tree/write.h"
#include "tests/load/load.h"

enum { SHOWN = 10, PATIENCE = 300, EVENTS = 64 };

typedef struct settings {
    long port, pid, clients, seconds, recipes, tokens, prompt, seed;
    const char *path; /* of a socket; NULL: use the port */
    bool even, other, unchecked;
} settings;

void load_fail(tally *t, const char *format, ...) {
    if (t->failures++ < SHOWN) {
        va_list args;
        va_start(args, format);
        (void)fprintf(stderr, "load: ");
        (void)vfprintf(stderr, format, args);
        (void)fprintf(stderr, "\n");
        va_end(args);
    }
}

static place find(const settings *s) {
    place at = {0};
    if (s->path != NULL) {
        at.name.file.sun_family = AF_UNIX;
        at.size = sizeof at.name.file;
        (void)snprintf(at.name.file.sun_path, sizeof at.name.file.sun_path, "%s", s->path);
    } else {
        const struct sockaddr_in name = {.sin_family = AF_INET,
                                         .sin_port = htons((uint16_t)s->port),
                                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        memcpy(&at.name, &name, sizeof name);
        at.size = sizeof name;
    }
    return at;
}

/* ---- one at a time --------------------------------------------------------------------------- */

unsigned ask_alone(const place *at, const bytes *request, bytes *body) {
    const struct timeval patience = {.tv_sec = PATIENCE};
    framing reply = {0};
    char buffer[16384];
    const int fd = socket(at->name.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ssize_t n = -1;
    if (fd >= 0 && connect(fd, &at->name.any, at->size) == 0)
        n = send(fd, request->data, request->size, MSG_NOSIGNAL);
    while (n > 0 && reply.state != FRAMING_DONE && reply.state != FRAMING_WRONG) {
        n = recv(fd, buffer, sizeof buffer, 0);
        (void)framing_take(&reply, buffer, n > 0 ? (size_t)n : 0);
    }
    if (fd >= 0)
        (void)close(fd);
    const unsigned status = reply.state == FRAMING_DONE ? reply.status : 0;
    bytes_drop(body, body->size);
    bytes_add(body, reply.body.data, reply.body.size);
    framing_free(&reply);
    return status;
}

/* Makes each request alone. For another server one is enough: it warms up, and nothing is
 * compared. */
static bool ask_all_alone(const plan *p) {
    bytes request = {0}, body = {0};
    const size_t n = p->other ? 1 : p->n_recipes;
    for (size_t i = 0; i < n; i++) {
        recipe *r = &p->recipes[i];
        bytes_drop(&request, request.size);
        recipe_write(r, false, &request);
        const unsigned status = ask_alone(&p->at, &request, &body);
        answer_take_whole(&r->expected, &body);
        if (status != 200 || !r->expected.done || (r->expected.n_choices == 0 && !p->unchecked)) {
            load_fail(p->tally, "alone: status %u: %s\n  asked: %s", status,
                      body.size > 0 ? body.data : "nothing", request.data);
        }
    }
    bytes_free(&request);
    bytes_free(&body);
    return p->tally->failures == 0;
}

/* A figure of /metrics; -1 if it is missing. */
static double metric(const plan *p, const char *name) {
    bytes request = {0}, body = {0};
    double value = -1.0;
    page_write("/metrics", &request);
    if (ask_alone(&p->at, &request, &body) == 200) {
        const size_t n = strlen(name);
        for (const char *at = strstr(body.data, name); at != NULL; at = strstr(at + 1, name))
            if (at[-1] == '\n' && at[n] == ' ')
                value = strtod(at + n, NULL);
    }
    bytes_free(&request);
    bytes_free(&body);
    return value;
}

/* ---- all at once ----------------------------------------------------------------------------- */

/* Wakes the clients whose time has come. Returns how many are busy. */
static size_t look(client *clients, size_t n, int epoll) {
    const double now = load_now();
    size_t busy = 0;
    for (size_t i = 0; i < n; i++) {
        client *c = &clients[i];
        if ((c->wake > 0.0 && now >= c->wake) || (!c->busy && !c->plan->ending && c->wake == 0.0))
            client_wake(c, epoll);
        busy += c->busy;
    }
    return busy;
}

/* Runs the clients until the time is over, and then until all replies are there. */
static void storm(plan *p, client *clients, size_t n, double seconds, memory *m) {
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    const double began = load_now();
    double heard = began;
    struct epoll_event events[EVENTS];
    while (look(clients, n, epoll) > 0) {
        const int ready = epoll_wait(epoll, events, EVENTS, 1);
        for (int i = 0; i < ready; i++) {
            const uint32_t what = events[i].events;
            client_ready(events[i].data.ptr, epoll, (what & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0,
                         (what & EPOLLOUT) != 0);
        }
        p->ending = load_now() - began >= seconds;
        if (!p->ending)
            memory_look(m, load_now());
        if (ready > 0)
            heard = load_now();
        if (p->ending && load_now() - heard > PATIENCE) {
            load_fail(p->tally, "replies are not there, and nothing came for %d seconds", PATIENCE);
            break;
        }
    }
    (void)close(epoll);
}

/* Abandoned answers must have ended and hold no page. Returns the pages in use; -1: unknown. */
static double check_rest(const plan *p) {
    if (p->unchecked) {
        return -1.0;
    }
    double left = 1.0, used = -1.0, before = 0.0, changed = load_now();
    while (left > 0.0 && load_now() - changed < PATIENCE) {
        const struct timespec pause = {.tv_nsec = 50000000};
        left = metric(p, "tern_answers_running") + metric(p, "tern_answers_waiting");
        if (left != before)
            changed = load_now();
        before = left;
        used = metric(p, "tern_cache_pages_used");
        (void)nanosleep(&pause, NULL);
    }
    if (left != 0.0 || used != 0.0)
        load_fail(p->tally, "at the end %.0f answers are there and %.0f pages used", left, used);
    return used;
}

static json_t *times(samples *s) {
    return json_pack("{s:f, s:f, s:f, s:I}", "p50", samples_at(s, 0.5), "p99", samples_at(s, 0.99),
                     "most", samples_at(s, 1.0), "n", (json_int_t)s->n);
}

static void say_memory(const memory *m, double start_mib) {
    (void)fprintf(stderr,
                  "load: memory %.1f MiB at the start, %.1f MiB at the end, %.1f MiB at most; "
                  "median of the second quarter %.1f MiB, of the last %.1f MiB\n",
                  start_mib, resident_mib(m->pid), m->most, memory_early(m), memory_late(m));
}

/* Prints the figures for people. */
static void say(const plan *p, const settings *s, uint64_t all, double seconds, const memory *m,
                double start_mib, double used) {
    tally *t = p->tally;
    (void)fprintf(stderr, "load: %llu requests of %ld clients in %.1f s, %.1f tokens/s\n",
                  (unsigned long long)all, s->clients, seconds, (double)t->tokens / seconds);
    if (!p->unchecked) {
        (void)fprintf(stderr,
                      "load: %llu whole and %llu cut answers compared with the same alone (text, "
                      "log-probabilities, digest); %llu failures\n",
                      (unsigned long long)t->compared, (unsigned long long)t->compared_cut,
                      (unsigned long long)t->failures);
    }
    (void)fprintf(stderr, "load: first text of a stream after %.3f s (median), %.3f s (p99)\n",
                  samples_at(&t->first, 0.5), samples_at(&t->first, 0.99));
    if (s->pid > 0)
        say_memory(m, start_mib);
    if (used >= 0.0) {
        (void)fprintf(stderr, "load: %.0f pages of the cache in use at the end\n", used);
    }
}

static void report(const plan *p, const settings *s, double seconds, const memory *m,
                   double start_mib, double used) {
    tally *t = p->tally;
    json_t *begun = json_object();
    json_int_t all = 0;
    for (size_t i = 0; i < N_BEHAVIOURS; i++) {
        const json_int_t n = (json_int_t)t->begun[i];
        (void)json_object_set_new(begun, behaviour_names[i], json_integer(n));
        all += n;
    }
    json_t *out = json_pack(
        "{s:I, s:f, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:o, s:o, s:f, s:f, "
        "s:f, s:f, s:f, s:f}",
        "clients", (json_int_t)s->clients, "seconds", seconds, "requests", all, "behaviours", begun,
        "whole", (json_int_t)t->whole, "cut", (json_int_t)t->cut, "queue_full", (json_int_t)t->busy,
        "connections", (json_int_t)t->connections, "compared", (json_int_t)t->compared,
        "compared_cut", (json_int_t)t->compared_cut, "failures", (json_int_t)t->failures,
        "requests_per_second", (double)all / seconds, "tokens_per_second",
        (double)t->tokens / seconds, "first_text_seconds", times(&t->first),
        "between_texts_seconds", times(&t->between), "resident_mib_at_start", start_mib,
        "resident_mib_at_end", resident_mib(s->pid), "resident_mib_most", m->most,
        "resident_mib_second_quarter", memory_early(m), "resident_mib_last_quarter", memory_late(m),
        "pages_used", used);
    say(p, s, (uint64_t)all, seconds, m, start_mib, used);
    char *line = json_dump(out, (json_style){0});
    (void)printf("%s\n", line != NULL ? line : "no memory");
    free(line);
    json_decref(out);
}

/* ---- options --------------------------------------------------------------------------------- */

/* Sets an option without a value. Returns false if there is no such option. */
static bool read_switch(const char *name, settings *s) {
    s->other = s->other || strcmp(name, "--other") == 0;
    s->unchecked = s->unchecked || strcmp(name, "--unchecked") == 0;
    s->even = s->even || s->other || s->unchecked || strcmp(name, "--even") == 0;
    return strcmp(name, "--even") == 0 || strcmp(name, "--other") == 0 ||
           strcmp(name, "--unchecked") == 0;
}

static bool read_number(const char *name, const char *value, settings *s) {
    const struct {
        const char *name;
        long *value;
    } known[] = {{"--port", &s->port},       {"--pid", &s->pid},         {"--clients", &s->clients},
                 {"--seconds", &s->seconds}, {"--recipes", &s->recipes}, {"--tokens", &s->tokens},
                 {"--prompt", &s->prompt},   {"--seed", &s->seed}};
    enum { N = sizeof known / sizeof *known };
    size_t k = 0;
    while (k < N && strcmp(name, known[k].name) != 0)
        k++;
    char *end = "?";
    if (k < N && value != NULL)
        *known[k].value = strtol(value, &end, 10);
    return *end == '\0';
}

static bool read_options(int argc, char **argv, settings *s) {
    for (int i = 1; i < argc; i++) {
        if (read_switch(argv[i], s))
            continue;
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--unix") == 0 && value != NULL) {
            s->path = value;
        } else if (!read_number(argv[i], value, s)) {
            (void)fprintf(stderr, "load: %s: not understood; the top of main.c has the options\n",
                          argv[i]);
            return false;
        }
        i++;
    }
    return (s->path != NULL || (s->port > 0 && s->port < 65536)) && s->clients > 0 &&
           s->recipes > 0 && s->tokens > 0 && s->prompt > 0;
}

/* ---- the run --------------------------------------------------------------------------------- */

static void check_memory(const plan *p, const memory *m) {
    if (!memory_is_flat(m)) {
        load_fail(
            p->tally,
            "memory grew: the median of the second quarter was %.1f MiB, of the last %.1f MiB",
            memory_early(m), memory_late(m));
    }
}

/* A run that should compare answers must have compared at least one. */
static void check_compared(const plan *p) {
    if (!p->unchecked && p->tally->compared + p->tally->compared_cut == 0)
        load_fail(p->tally, "no answer was compared");
}

static void run(plan *p, const settings *s, client *clients) {
    const size_t n = (size_t)s->clients;
    memory m = {.pid = s->pid};
    for (size_t i = 0; i < n; i++)
        clients[i] = (client){.plan = p, .fd = -1, .random = (uint64_t)s->seed * 1000003 + i};
    const double start_mib = resident_mib(s->pid), began = load_now();
    storm(p, clients, n, (double)s->seconds, &m);
    const double seconds = load_now() - began;
    for (size_t i = 0; i < n; i++)
        client_free(&clients[i]);
    const double used = check_rest(p);
    check_memory(p, &m);
    check_compared(p);
    report(p, s, seconds, &m, start_mib, used);
    samples_free(&m.looks);
}

int main(int argc, char **argv) {
    settings s = {
        .clients = 64, .seconds = 20, .recipes = 48, .tokens = 64, .prompt = 3, .seed = 1};
    if (!read_options(argc, argv, &s))
        return 2;
    tally t = {0};
    plan p = {.n_recipes = (size_t)s.recipes,
              .at = find(&s),
              .gentle = s.even,
              .unchecked = s.other || s.unchecked,
              .other = s.other,
              .tally = &t};
    p.recipes = s.even ? recipes_even(p.n_recipes, (uint32_t)s.prompt, (uint32_t)s.tokens)
                       : recipes_new(p.n_recipes, (uint64_t)s.seed, (uint32_t)s.tokens);
    client *clients = calloc((size_t)s.clients, sizeof *clients);
    if (p.recipes != NULL && clients != NULL && (s.unchecked || ask_all_alone(&p)))
        run(&p, &s, clients);
    free(clients);
    recipes_free(p.recipes, p.recipes != NULL ? p.n_recipes : 0);
    samples_free(&t.first);
    samples_free(&t.between);
    return t.failures == 0 && clients != NULL ? 0 : 1;
}
