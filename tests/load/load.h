/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_LOAD_H
#define TERN_TESTS_LOAD_H

/*
 * Load for tern serve: many clients in one thread, both well-behaved and misbehaving. Each of them
 * compares its answers with the answer to the same request when nobody else asked.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/json_tree/value.h"

/* ---- places and bytes
 * ----------------------------------------------------------------------------------- */

/* The address of a server: a port of this machine, or a socket in the file system. */
typedef struct place {
    union {
        struct sockaddr any;
        struct sockaddr_un file;
        struct sockaddr_storage room;
    } name;
    socklen_t size;
} place;

/* A growing buffer, always terminated. Initialise with zeros. */
typedef struct bytes {
    char *data;
    size_t size, capacity;
} bytes;

void bytes_add(bytes *b, const char *data, size_t size); /* exits if there is no memory */
void bytes_print(bytes *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void bytes_drop(bytes *b, size_t size); /* removes the first ones */
void bytes_free(bytes *b);

/* ---- random numbers -------------------------------------------------------------------------- */

uint32_t random_below(uint64_t *state, uint32_t n); /* splitmix64; n >= 1 */

/* ---- framing.c: replies framed as HTTP/1.1 --------------------------------------------------- */

typedef enum framing_state {
    FRAMING_HEAD,
    FRAMING_LENGTH,     /* in a body with Content-Length */
    FRAMING_CHUNK_SIZE, /* in a body in chunks */
    FRAMING_CHUNK,
    FRAMING_CHUNK_END,
    FRAMING_LAST_END, /* after the chunk of size 0 */
    FRAMING_DONE,
    FRAMING_WRONG
} framing_state;

typedef struct framing {
    framing_state state;
    unsigned status;
    bool closes; /* the server closes the connection after it */
    bool retry;  /* there is a Retry-After */
    size_t left; /* bytes of the body, or of a chunk */
    bytes head;  /* unparsed bytes of the header, or of a chunk's size */
    bytes body;
} framing;

/* Takes received bytes. Returns how many of them belong to this reply. */
size_t framing_take(framing *f, const char *data, size_t size);
void framing_clear(framing *f); /* keeps the allocated memory */
void framing_free(framing *f);

/* ---- answer.c: contents of replies ----------------------------------------------------------- */

enum { LOAD_MOST_CHOICES = 8 };

typedef struct answer {
    size_t n_choices;
    bytes texts[LOAD_MOST_CHOICES];
    json_t *logs[LOAD_MOST_CHOICES]; /* arrays of log-probabilities */
    char reasons[LOAD_MOST_CHOICES][16];
    char digests[LOAD_MOST_CHOICES][65];
    long long prompt_tokens, generated_tokens;
    unsigned n_texts; /* events with text so far */
    bool done;        /* the reply is complete */
    size_t read;      /* parsed bytes of a stream's body */
    char wrong[512];  /* the problem; "" if there is none */
} answer;

void answer_take_whole(answer *a, const bytes *body);
void answer_take_stream(answer *a, const bytes *body); /* may be incomplete */

/* True if the answer equals the expected one or, with `cut`, begins it. Otherwise sets a->wrong. */
bool answer_agrees(answer *a, const answer *expected, bool cut);
void answer_clear(answer *a);

/* ---- recipes.c: requests --------------------------------------------------------------------- */

typedef struct recipe {
    const char *path;
    json_t *body; /* without `stream` */
    answer expected;
} recipe;

/* Makes n requests of all kinds, with random lengths up to `most` tokens. */
recipe *recipes_new(size_t n, uint64_t seed, uint32_t most);

/* Makes n similar requests with different texts: streams of exactly `tokens` tokens after `prompt`
 * tokens. */
recipe *recipes_even(size_t n, uint32_t prompt, uint32_t tokens);
void recipes_free(recipe *recipes, size_t n);

/* Writes the bytes of a request. */
void recipe_write(const recipe *r, bool stream, bytes *out);
void page_write(const char *path, bytes *out);

/* ---- figures of a run -------------------------------------------------------------------------
 */

typedef struct samples {
    double *values;
    size_t n, capacity;
} samples;

void samples_add(samples *s, double value);
double samples_at(samples *s, double share); /* sorts; 0 if there are none */
void samples_free(samples *s);

/* ---- memory.c: resident memory of the server --------------------------------------------------
 */

enum { LOAD_FLAT_MIB = 4 }; /* growth between two quarters of a run that is tolerated */

typedef struct memory {
    long pid;      /* 0: not measured */
    double next;   /* time of the next measurement */
    double most;   /* MiB */
    samples looks; /* MiB, in order of time */
} memory;

double resident_mib(long pid);           /* MiB now; 0: unknown */
void memory_look(memory *m, double now); /* measures if it is time */
double memory_early(const memory *m);    /* median of the second quarter; 0: no samples */
double memory_late(const memory *m);     /* median of the last quarter */
bool memory_is_flat(const memory *m);

/* ---- client.c -------------------------------------------------------------------------------- */

typedef enum behaviour {
    BEHAVES_WELL,
    LEAVES,      /* closes in the middle of a reply */
    RESETS,      /* the same, with a reset */
    HALF_CLOSES, /* closes its sending side in the middle of a reply, and gets all of it */
    READS_SLOWLY,
    WRITES_SLOWLY, /* pauses in the middle of its request */
    STOPS_WRITING, /* sends half a request, waits, and leaves */
    ASKS_PAGES,
    ASKS_NONSENSE,
    N_BEHAVIOURS
} behaviour;

extern const char *const behaviour_names[N_BEHAVIOURS];

/* The figures of all clients together. */
typedef struct tally {
    uint64_t begun[N_BEHAVIOURS], whole, cut, busy, failures, connections, tokens;
    uint64_t compared, compared_cut; /* compared with the answers given alone */
    samples first, between; /* seconds: until the first text of a stream, and between two texts */
} tally;

typedef struct plan {
    recipe *recipes;
    size_t n_recipes;
    place at;
    bool gentle;    /* all clients behave well and ask for streams */
    bool unchecked; /* answers are counted, not compared */
    bool other;     /* the server is not tern's. Each request gets its own connection, because some
                       servers silently close those that they promised to keep */
    bool ending;    /* no new requests */
    tally *tally;
} plan;

typedef struct client {
    const plan *plan;
    int fd; /* -1: not connected */
    uint64_t random;
    behaviour behaviour;
    const recipe *recipe; /* NULL: a page, or nonsense */
    bool busy, stream;
    bytes out;
    size_t sent, pause_at; /* in bytes of `out` */
    size_t leave_at;       /* received bytes of body after which it leaves */
    double wake;           /* time to go on; 0: waits for the socket */
    double began, last;
    framing reply;
    answer answer;
} client;

double load_now(void); /* seconds */

void client_begin(client *c, int epoll);
void client_wake(client *c, int epoll); /* when its time has come */
void client_ready(client *c, int epoll, bool readable, bool writable);
void client_free(client *c);

/* Sends a request and waits for its reply: for expected answers, and for pages. Returns the status;
 * 0: no reply. */
unsigned ask_alone(const place *at, const bytes *request, bytes *body);

/* Prints a failure and counts it. */
void load_fail(tally *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
