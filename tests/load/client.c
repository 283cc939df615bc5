/* SPDX-License-Identifier: Apache-2.0 */
/* One client: what it sends, how it behaves, and what it makes of the replies. */

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/load/load.h"

const char *const behaviour_names[N_BEHAVIOURS] = {
    "behaves well",  "leaves",        "resets",     "half closes",  "reads slowly",
    "writes slowly", "stops writing", "asks pages", "asks nonsense"};

enum { SLOW_BUFFER = 4096 };

static const struct {
    unsigned status;
    const char *request;
} nonsense[] = {
    {404, "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"},
    {405, "DELETE /health HTTP/1.1\r\nHost: localhost\r\n\r\n"},
    {400, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
          "Content-Length: 1\r\n\r\n{"},
    {400, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
          "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"},
    {415, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
          "Content-Length: 2\r\n\r\n{}"},
    {404, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
          "Content-Length: 30\r\n\r\n{\"model\":\"other\",\"prompt\":\"a\"}"},
};
enum { N_NONSENSE = sizeof nonsense / sizeof *nonsense };

static const char *const pages[] = {"/health", "/ready", "/metrics", "/v1/models", "/props", "/"};
enum { N_PAGES = sizeof pages / sizeof *pages };

double load_now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- the connection -------------------------------------------------------------------------- */

static void hang_up(client *c) {
    if (c->fd >= 0) {
        (void)close(c->fd);
        c->fd = -1;
    }
}

static void listen_for(const client *c, int epoll, uint32_t what) {
    struct epoll_event event = {.events = what, .data.ptr = (void *)c};
    (void)epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &event);
}

static bool connect_to(client *c, int epoll) {
    const place *at = &c->plan->at;
    const int yes = 1, few = SLOW_BUFFER;
    c->fd = socket(at->name.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (c->behaviour == READS_SLOWLY)
        (void)setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &few, sizeof few);
    struct epoll_event event = {.events = EPOLLOUT, .data.ptr = c};
    if (c->fd < 0 || (connect(c->fd, &at->name.any, at->size) != 0 && errno != EINPROGRESS) ||
        epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event) != 0) {
        load_fail(c->plan->tally, "no connection: %s", strerror(errno));
        hang_up(c);
        return false;
    }
    c->plan->tally->connections++;
    return true;
}

/* ---- requests -------------------------------------------------------------------------------- */

static behaviour choose(client *c) {
    static const behaviour often[] = {LEAVES,        RESETS,        HALF_CLOSES, READS_SLOWLY,
                                      WRITES_SLOWLY, STOPS_WRITING, ASKS_PAGES,  ASKS_NONSENSE};
    const uint32_t k = random_below(&c->random, 16);
    return c->plan->gentle || k >= sizeof often / sizeof *often ? BEHAVES_WELL : often[k];
}

static void write_request(client *c) {
    bytes_drop(&c->out, c->out.size);
    c->recipe = NULL;
    c->stream = c->plan->gentle || random_below(&c->random, 2) == 0;
    if (c->behaviour == ASKS_PAGES) {
        page_write(pages[random_below(&c->random, N_PAGES)], &c->out);
    } else if (c->behaviour == ASKS_NONSENSE) {
        c->pause_at = random_below(&c->random, N_NONSENSE);
        const char *request = nonsense[c->pause_at].request;
        bytes_add(&c->out, request, strlen(request));
    } else {
        c->recipe = &c->plan->recipes[random_below(&c->random, (uint32_t)c->plan->n_recipes)];
        recipe_write(c->recipe, c->stream, &c->out);
    }
}

/* Chooses where the client pauses and leaves. */
static void make_intentions(client *c) {
    const bool pauses = c->behaviour == WRITES_SLOWLY || c->behaviour == STOPS_WRITING;
    c->leave_at = SIZE_MAX;
    if (c->behaviour == LEAVES || c->behaviour == RESETS || c->behaviour == HALF_CLOSES)
        c->leave_at = random_below(&c->random, 3) * random_below(&c->random, 3000);
    if (c->behaviour != ASKS_NONSENSE)
        c->pause_at = pauses ? random_below(&c->random, (uint32_t)c->out.size) : SIZE_MAX;
}

void client_begin(client *c, int epoll) {
    c->behaviour = choose(c);
    if (c->behaviour == READS_SLOWLY)
        hang_up(c); /* it needs a new socket, with a smaller buffer */
    write_request(c);
    make_intentions(c);
    framing_clear(&c->reply);
    answer_clear(&c->answer);
    c->sent = 0;
    c->wake = 0.0;
    c->last = 0.0;
    c->busy = true;
    c->began = load_now();
    c->plan->tally->begun[c->behaviour]++;
    if (c->fd >= 0) {
        listen_for(c, epoll, EPOLLIN | EPOLLOUT);
    } else if (!connect_to(c, epoll)) {
        c->busy = false;
        c->wake = load_now() + 0.1;
    }
}

/* ---- the end of a reply ---------------------------------------------------------------------- */

static void fail(client *c, const char *what) {
    char *body = c->recipe != NULL ? c->out.data : NULL;
    load_fail(c->plan->tally,
              "a client that %s: %s (status %u, %zu bytes of body)\n  asked: %s\n  got: %.400s",
              behaviour_names[c->behaviour], what, c->reply.status, c->reply.body.size,
              body != NULL ? body : c->out.data,
              c->reply.body.size > 0 ? c->reply.body.data : "nothing");
}

static void rest(client *c) {
    const bool idles = !c->plan->gentle && random_below(&c->random, 8) == 0;
    c->busy = false;
    c->wake = load_now() + (idles ? 0.001 * random_below(&c->random, 200) : 0.0);
}

/* Either side ended the reply in the middle. The part that came must begin the expected answer. */
static void end_cut(client *c) {
    if (c->recipe != NULL && c->stream && c->reply.status == 200) {
        answer_take_stream(&c->answer, &c->reply.body);
        c->plan->tally->compared_cut++;
        if (!answer_agrees(&c->answer, &c->recipe->expected, true))
            fail(c, c->answer.wrong);
    }
    c->plan->tally->cut++;
    hang_up(c);
    rest(c);
}

static void leave(client *c) {
    const struct linger rude = {.l_onoff = 1};
    if (c->behaviour == HALF_CLOSES) {
        (void)shutdown(c->fd, SHUT_WR);
        c->leave_at = SIZE_MAX;
        return; /* it still reads */
    }
    if (c->behaviour == RESETS)
        (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &rude, sizeof rude);
    end_cut(c);
}

static void check_text(client *c) {
    tally *t = c->plan->tally;
    if (c->reply.status == 429) {
        t->busy++;
        if (!c->reply.retry)
            fail(c, "no Retry-After");
        return;
    }
    if (c->reply.status != 200) {
        fail(c, "another status");
        return;
    }
    if (c->stream)
        answer_take_stream(&c->answer, &c->reply.body);
    else
        answer_take_whole(&c->answer, &c->reply.body);
    t->compared += !c->plan->unchecked;
    if (c->plan->unchecked ? !c->answer.done
                           : !answer_agrees(&c->answer, &c->recipe->expected, false))
        fail(c, c->answer.wrong);
    t->tokens += (uint64_t)c->answer.generated_tokens;
}

/* The whole reply is there. */
static void end_whole(client *c) {
    const bool nonsensical = c->behaviour == ASKS_NONSENSE;
    c->plan->tally->whole++;
    if (c->recipe != NULL)
        check_text(c);
    else if (c->reply.status != (nonsensical ? nonsense[c->pause_at].status : 200))
        fail(c, "another status");
    const bool kept = !c->plan->other && (c->plan->gentle || random_below(&c->random, 8) > 0);
    if (c->reply.closes || c->behaviour == HALF_CLOSES || c->behaviour == READS_SLOWLY || !kept)
        hang_up(c);
    rest(c);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Records times between texts of a stream, unless the client itself slows the stream down. */
static void note_time(client *c) {
    const unsigned before = c->answer.n_texts;
    if (c->recipe == NULL || !c->stream || c->reply.status != 200)
        return;
    answer_take_stream(&c->answer, &c->reply.body);
    if (c->answer.n_texts == before || c->behaviour == READS_SLOWLY ||
        c->behaviour == WRITES_SLOWLY)
        return;
    const double now = load_now();
    samples_add(before == 0 ? &c->plan->tally->first : &c->plan->tally->between,
                now - (before == 0 ? c->began : c->last));
    c->last = now;
}

static void receive(client *c, int epoll) {
    char buffer[16384];
    const bool slow = c->behaviour == READS_SLOWLY;
    const size_t most = slow ? 1 + random_below(&c->random, 512) : sizeof buffer;
    const ssize_t n = recv(c->fd, buffer, most, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        fail(c, n < 0 ? "the connection was reset" : "the connection was closed");
        end_cut(c);
        return;
    }
    const size_t taken = framing_take(&c->reply, buffer, (size_t)n);
    note_time(c);
    if (c->reply.state == FRAMING_WRONG || taken != (size_t)n) {
        fail(c, taken != (size_t)n ? "more came than the reply" : "the reply is not framed");
        end_cut(c);
    } else if (c->reply.state == FRAMING_DONE) {
        end_whole(c);
    } else if (c->reply.body.size >= c->leave_at) {
        leave(c);
    } else if (slow) {
        c->wake = load_now() + 0.001 * (1 + random_below(&c->random, 20));
        listen_for(c, epoll, 0);
    }
}

static void transmit(client *c, int epoll) {
    const size_t end = c->pause_at < c->out.size && c->recipe != NULL ? c->pause_at : c->out.size;
    const ssize_t n = send(c->fd, c->out.data + c->sent, end - c->sent, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        fail(c, strerror(errno));
        end_cut(c);
        return;
    }
    c->sent += n > 0 ? (size_t)n : 0;
    if (c->sent < end)
        return;
    if (end < c->out.size)
        c->wake = load_now() + 0.001 * random_below(&c->random, 300);
    else if (c->leave_at == 0)
        c->wake = load_now() + 0.001 * random_below(&c->random, 50);
    else if (c->behaviour == READS_SLOWLY)
        c->wake = load_now() + 0.001 * random_below(&c->random, 1500); /* the reply piles up */
    const bool deaf = end < c->out.size || c->behaviour == READS_SLOWLY;
    listen_for(c, epoll, c->wake > 0.0 && deaf ? 0 : EPOLLIN);
}

void client_wake(client *c, int epoll) {
    c->wake = 0.0;
    if (!c->busy) {
        if (!c->plan->ending)
            client_begin(c, epoll);
    } else if (c->behaviour == WRITES_SLOWLY) {
        c->pause_at = SIZE_MAX;
        listen_for(c, epoll, EPOLLIN | EPOLLOUT);
    } else if (c->behaviour == READS_SLOWLY) {
        listen_for(c, epoll, EPOLLIN);
    } else {
        leave(c);
    }
}

void client_ready(client *c, int epoll, bool readable, bool writable) {
    if (!c->busy) {
        if (readable)
            hang_up(c); /* the server closed the idle connection */
        return;
    }
    if (writable)
        transmit(c, epoll);
    else if (readable)
        receive(c, epoll);
}

void client_free(client *c) {
    hang_up(c);
    bytes_free(&c->out);
    framing_free(&c->reply);
    answer_clear(&c->answer);
}
