/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server and its client in one process, for the test that makes allocations fail. "server MODEL
 * LOG" makes each kind of request once, with a key, and prints the replies. Halfway, keys and log
 * are replaced. A request whose reply was refused or cut is repeated: a server must recover from a
 * moment without memory, and answer then. The status is 2 if it does not, or if a reply looks whole
 * and is not. The client itself allocates nothing.
 *
 * "server MODEL LOG CERTIFICATE KEY OPENSSL" makes fewer requests, by TLS, with openssl as its
 * client.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "serve/http/tls.h"
#include "serve/server.h"
#include "tests/support/one_model.h"

enum { MOST = 1 << 18, WAIT_SECONDS = 90 /* the server waits 60 */, PROBLEM = 2, OVER_TLS = 7 };

#define KEY "one-key"
#define KEYS KEY ",another-key"

static char *openssl_path; /* NULL: no TLS */

/* The outcome of a request. */
typedef enum verdict { WHOLE, REFUSED, CUT, HALF } verdict;

typedef struct reply {
    char bytes[MOST]; /* the body without chunk sizes, terminated */
    size_t size;
    unsigned status;
} reply;

static const struct {
    const char *line, *body; /* body: NULL if there is none */
    const char *last;        /* required in a stream's last event; NULL: no stream */
    bool varies;             /* the reply depends on the moment */
} requests[] = {
    {"GET /health", NULL, NULL, false},
    {"GET /ready", NULL, NULL, false},
    {"GET /v1/models", NULL, NULL, true},
    {"GET /props", NULL, NULL, true},
    {"GET /metrics", NULL, NULL, true},
    {"POST /v1/chat/completions",
     "{\"messages\":[{\"role\":\"system\",\"content\":[{\"type\":\"text\",\"text\":\"Be brief.\"},"
     "{\"type\":\"text\",\"text\":\"And right.\"}]},{\"role\":\"user\",\"content\":\"What is "
     "17+25?\"}],\"max_tokens\":6,\"logprobs\":true,\"top_logprobs\":2,\"unknown\":1,\"other\":2}",
     NULL, false},
    {"POST /v1/chat/completions",
     "{\"messages\":[{\"role\":\"user\",\"content\":\"What is 2+2?\"}],\"max_tokens\":6,"
     "\"stream\":true,\"stream_options\":{\"include_usage\":true},\"ignored\":[]}",
     "data: [DONE]", false},
    {"POST /v1/completions",
     "{\"prompt\":[\"Once "
     "upon\",\"Once\"],\"max_tokens\":5,\"echo\":true,\"n\":2,\"temperature\":1,"
     "\"stop\":[\"never said\"],\"logit_bias\":{\"42\":1.5},\"seed\":7}",
     NULL, false},
    {"POST /v1/completions",
     "{\"prompt\":[1,2,3],\"max_tokens\":5,\"stream\":true,\"logprobs\":2,\"ignore_eos\":true}",
     "data: [DONE]", false},
    {"POST /completion",
     "{\"prompt\":\"Once upon\",\"n_predict\":5,\"stream\":true,\"n_probs\":2,\"ignore_eos\":true}",
     "\"stop\":true", false},
    {"POST /completion", "{\"prompt\":\"Once upon\",\"n_predict\":5}", NULL, false},
    {"POST /v1/messages",
     "{\"model\":\"small\",\"max_tokens\":6,\"stream\":true,\"messages\":[{\"role\":\"user\","
     "\"content\":\"What is 2+2?\"}]}",
     "event: message_stop", false},
    {"POST /v1/messages",
     "{\"model\":\"small\",\"max_tokens\":6,\"system\":\"Be brief.\",\"messages\":[{\"role\":"
     "\"user\",\"content\":[{\"type\":\"text\",\"text\":\"What is 2+2?\"}]}]}",
     NULL, false},
    {"POST /v1/responses",
     "{\"model\":\"small\",\"max_output_tokens\":6,\"stream\":true,\"input\":\"What is 2+2?\"}",
     "event: response.completed", false},
    {"POST /v1/responses",
     "{\"model\":\"small\",\"max_output_tokens\":6,\"input\":[{\"role\":\"user\",\"content\":"
     "\"What is 2+2?\"}]}",
     NULL, false},
    {"POST /v1/messages/count_tokens",
     "{\"model\":\"small\",\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}", NULL, false},
    {"GET /slots", NULL, NULL, true},
    {"POST /v1/completions", "{\"prompt\":\"Q\",\"max_tokens\":-7}", NULL, false},
    {"POST /tokenize", "{\"content\":\"What is 2+2?\",\"with_pieces\":true}", NULL, false},
    {"POST /detokenize", "{\"tokens\":[100,101,102]}", NULL, false},
    {"POST /apply-template", "{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}", NULL,
     false},
};
enum { REQUESTS = sizeof requests / sizeof *requests };

/* ---- a client -------------------------------------------------------------------------------- */

static int connect_to(uint16_t port) {
    const struct sockaddr_in name = {.sin_family = AF_INET,
                                     .sin_port = htons(port),
                                     .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    const struct timeval wait = {.tv_sec = WAIT_SECONDS};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) != 0 ||
        connect(fd, (const struct sockaddr *)&name, sizeof name) != 0) {
        fprintf(stderr, "tern: no connection\n");
        exit(PROBLEM);
    }
    return fd;
}

/* Becomes a TLS client that talks to its standard input and output. */
static _Noreturn void become_client(int end, uint16_t port) {
    char place[32];
    char *arguments[] = {openssl_path, "s_client", "-quiet", "-connect", place, NULL};
    char *nothing[] = {NULL};
    snprintf(place, sizeof place, "127.0.0.1:%u", (unsigned)port);
    const int silent = open("/dev/null", O_WRONLY);
    if (dup2(end, STDIN_FILENO) >= 0 && dup2(end, STDOUT_FILENO) >= 0 &&
        dup2(silent, STDERR_FILENO) >= 0)
        execve(openssl_path, arguments, nothing);
    _exit(PROBLEM);
}

/* Another program, so that its allocations are not counted. */
static int connect_by_tls(uint16_t port, pid_t *client) {
    const struct timeval wait = {.tv_sec = WAIT_SECONDS};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0 ||
        setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) != 0)
        exit(PROBLEM);
    *client = fork();
    if (*client == 0)
        become_client(ends[1], port);
    close(ends[1]);
    return ends[0];
}

static void send_request(int fd, size_t i) {
    static char text[4096];
    const char *body = requests[i].body != NULL ? requests[i].body : "";
    const int n = snprintf(text, sizeof text,
                           "%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                           "Authorization: Bearer " KEY
                           "\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                           requests[i].line, strlen(body), body);
    (void)send(fd, text, (size_t)n, MSG_NOSIGNAL);
}

/* Receives everything until the server closes. */
static size_t receive(int fd, char *bytes, size_t most) {
    size_t size = 0;
    ssize_t n = 1;
    while (n > 0 && size < most) {
        n = recv(fd, bytes + size, most - size, 0);
        size += n > 0 ? (size_t)n : 0;
    }
    if (size == most || (n < 0 && recv(fd, bytes, 1, MSG_DONTWAIT) != 0 && size == 0))
        return 0;
    return size;
}

/* Joins the pieces of a chunked body. Returns false if it has no end. */
static bool join_chunks(const char *at, const char *end, reply *r) {
    for (;;) {
        char *next;
        const unsigned long n = strtoul(at, &next, 16);
        if (next == at || next + 2 > end)
            return false;
        at = next + 2;
        if (n == 0)
            return end - at == 2;
        if (n + 2 > (size_t)(end - at))
            return false;
        memcpy(r->bytes + r->size, at, n);
        r->size += n;
        at += n + 2;
    }
}

/* Splits a reply. Returns true if all of the body is there, by the header's own account. */
static bool take_apart(const char *text, size_t size, reply *r) {
    const char *body = strstr(text, "\r\n\r\n");
    const char *length = strstr(text, "Content-Length: ");
    if (body == NULL || sscanf(text, "HTTP/1.1 %u ", &r->status) != 1)
        return false;
    body += 4;
    if (strstr(text, "Transfer-Encoding: chunked") != NULL)
        return join_chunks(body, text + size, r);
    r->size = (size_t)(text + size - body);
    memcpy(r->bytes, body, r->size);
    return length != NULL && strtoul(length + 16, NULL, 10) == r->size;
}

static bool ends_with(const reply *r, const char *end) {
    const size_t n = strlen(end);
    return r->size >= n && memcmp(r->bytes + r->size - n, end, n) == 0;
}

/* True if the last event of a stream contains the words. */
static bool last_has(const reply *r, const char *words) {
    const char *at = r->bytes, *next;
    while ((next = strstr(at, "\n\n")) != NULL && next[2] != '\0')
        at = next + 2;
    return next != NULL && strstr(at, words) != NULL;
}

/* Judges a reply that is framed as whole: it must really be whole. Its contents are compared with
 * the output of a run without failures. */
static verdict judge(const char *header, size_t i, const reply *r) {
    if (strstr(header, "Content-Type: ") == NULL)
        return HALF;
    if (strstr(header, "text/event-stream") != NULL) {
        const bool refused = last_has(r, "\"error\":{") || last_has(r, "event: response.failed");
        return refused ? REFUSED : last_has(r, requests[i].last) ? WHOLE : HALF;
    }
    if (r->status >= 500)
        return strstr(r->bytes, "\"error\":{") != NULL && ends_with(r, "}") ? REFUSED : HALF;
    return WHOLE;
}

static verdict ask(uint16_t port, size_t i, reply *r) {
    static char text[MOST];
    pid_t client = -1;
    const int fd = openssl_path != NULL ? connect_by_tls(port, &client) : connect_to(port);
    send_request(fd, i);
    const size_t size = receive(fd, text, sizeof text - 1);
    close(fd);
    if (client > 0) { /* after a fault it might live on as long as the connection */
        kill(client, SIGKILL);
        (void)waitpid(client, NULL, 0);
    }
    text[size] = '\0';
    r->size = 0;
    const bool framed = take_apart(text, size, r);
    r->bytes[r->size] = '\0';
    return framed ? judge(text, i, r) : CUT;
}

/* ---- the output ------------------------------------------------------------------------------ */

/* Ids and times differ in each run, so they are removed. */
static void leave_out(reply *r, const char *name) {
    for (char *at = r->bytes; (at = strstr(at, name)) != NULL;) {
        at += strlen(name);
        const char *next = at + strcspn(at, "\",}");
        memmove(at, next, strlen(next) + 1);
    }
}

static void print(size_t i, reply *r) {
    leave_out(r, "\"id\":\"chatcmpl");
    leave_out(r, "\"id\":\"cmpl");
    leave_out(r, "\"id\":\"resp_");
    leave_out(r, "\"id\":\"msg_");
    leave_out(r, "\"item_id\":\"msg_");
    leave_out(r, "\"created\":");
    leave_out(r, "\"created_at\":");
    leave_out(r, "_ms\":");
    leave_out(r, "_per_second\":");
    if (requests[i].varies)
        r->bytes[0] = '\0';
    printf("%s: %u %s\n", requests[i].line, r->status, r->bytes);
}

/* True if further allocations fail after the first one. */
static bool lasts(void) {
    const char *when = getenv("TERN_FAULTS_AT");
    return when != NULL && strchr(when, '+') != NULL;
}

/* Makes a request, and repeats it once if that failed. EXIT_SUCCESS if a reply came. */
static int ask_until_answered(uint16_t port, size_t i) {
    static const char *const names[] = {"whole", "refused", "cut", "half"};
    static reply r;
    verdict v = ask(port, i, &r);
    if (v != WHOLE)
        fprintf(stderr, "tern: request %zu: %s\n", i, names[v]);
    if (v != WHOLE && v != HALF && !lasts())
        v = ask(port, i, &r);
    if (v != WHOLE)
        return v == HALF || !lasts() ? PROBLEM : EXIT_FAILURE;
    print(i, &r);
    return EXIT_SUCCESS;
}

/* Does what the server does on the signal that files have changed. */
static void reload(server *s) {
    keys fresh = {0};
    if (keys_add_list(&fresh, "a-new-key," KEYS, NULL) == TERN_OK)
        server_set_keys(s, &fresh);
    keys_free(&fresh);
    if (server_reopen_log(s, NULL) != TERN_OK)
        exit(PROBLEM);
}

static int ask_all(server *s) {
    const char *address = strrchr(server_address(s), ':');
    const uint16_t port = (uint16_t)strtoul(address + 1, NULL, 10);
    const size_t n = openssl_path != NULL ? OVER_TLS : REQUESTS;
    int status = EXIT_SUCCESS;
    for (size_t i = 0; i < n && status == EXIT_SUCCESS; i++) {
        if (i == n / 2)
            reload(s);
        status = ask_until_answered(port, i);
    }
    return status == EXIT_SUCCESS && fflush(stdout) != 0 ? EXIT_FAILURE : status;
}

/* ---- the server ------------------------------------------------------------------------------ */

static int serve(const tern_model *model, char **argv, tern_error *err) {
    keys known = {0};
    server *s = NULL;
    static const model_listed listed = {.name = "small", .path = ""};
    model_setup with = {.model = model,
                        .engine = tern_engine_params_default(),
                        .sampling = tern_sampler_params_default()};
    with.engine.threads = 1;
    with.engine.n_sequences = 3;
    const server_config config = {
        .http = {.host = "127.0.0.1", .tls = openssl_path != NULL, .limits = http_limits_default()},
        .models = &listed,
        .n_models = 1,
        .source = one_model(&with),
        .keys = &known,
        .seeded = true,
        .max_tokens = 8,
        .logs = true,
        .log = {.path = argv[2], .json = true, .prompts = true}};
    tern_status opened = keys_add_list(&known, KEYS, err);
    if (opened == TERN_OK && openssl_path != NULL)
        opened = http_tls_load(argv[3], argv[4], err);
    if (opened == TERN_OK)
        opened = server_open(&config, &s, err);
    const int status = opened == TERN_OK ? ask_all(s) : EXIT_FAILURE;
    server_close(&s);
    http_tls_free();
    keys_free(&known);
    return status;
}

int main(int argc, char **argv) {
    tern_model *model = NULL;
    tern_error err = {0};
    int status = EXIT_FAILURE;
    openssl_path = argc == 6 ? argv[5] : NULL;
    if (argc != 3 && argc != 6)
        (void)tern_fail(&err, TERN_ERR_ARG, "usage: server MODEL LOG [CERTIFICATE KEY OPENSSL]");
    else if (tern_model_open(argv[1], NULL, &model, &err) == TERN_OK)
        status = serve(model, argv, &err);
    tern_model_free(&model);
    if (err.status != TERN_OK)
        fprintf(stderr, "tern: %s\n", err.message);
    return status;
}
