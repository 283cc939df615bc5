/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_LOAD_H
#define TERN_TESTS_LOAD_H

/*
 * Load for a server of tern serve: many clients in one thread, well behaved ones and others, each
 * of which compares what it gets with what the same request was answered when nobody else asked.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/json_tree/value.h"

/* ---- places and bytes
 * ----------------------------------------------------------------------------------- */

/* Where a server listens: a port of this machine, or a socket in the file system. */
typedef struct place {
    union {
        struct sockaddr any;
        struct sockaddr_un file;
        struct sockaddr_storage room;
    } name;
    socklen_t size;
} place;

/* Bytes that grow, always with a terminator. Zero-initialise. */
typedef struct bytes {
    char *data;
    size_t size, capacity;
} bytes;

void bytes_add(bytes *b, const char *data, size_t size); /* exits where there is no memory */
void bytes_print(bytes *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void bytes_drop(bytes *b, size_t size); /* the first ones */
void bytes_free(bytes *b);

/* ---- random numbers -------------------------------------------------------------------------- */

uint32_t random_below(uint64_t *state, uint32_t n); /* splitmix64; n >= 1 */

/* ---- framing.c: a reply as HTTP/1.1 frames it ------------------------------------------------ */

typedef enum framing_state {
    FRAMING_HEAD,
    FRAMING_LENGTH,     /* of a body with Content-Length */
    FRAMING_CHUNK_SIZE, /* of a body in chunks */
    FRAMING_CHUNK,
    FRAMING_CHUNK_END,
    FRAMING_LAST_END, /* after the chunk of size 0 */
    FRAMING_DONE,
    FRAMING_WRONG
} framing_state;

typedef struct framing {
    framing_state state;
    unsigned status;
    bool closes; /* the server ends the connection after it */
    bool retry;  /* there is a Retry-After */
    size_t left; /* of the body, or of a chunk */
    bytes head;  /* what is not understood yet: of the header, or of a chunk's size */
    bytes body;
} framing;

/* Takes bytes that came. Returns how many of them belong to this reply. */
size_t framing_take(framing *f, const char *data, size_t size);
void framing_clear(framing *f); /* keeps the memory */
void framing_free(framing *f);

/* ---- answer.c: what a reply says ------------------------------------------------------------- */

enum { LOAD_MOST_CHOICES = 8 };

typedef struct answer {
    size_t n_choices;
    bytes texts[LOAD_MOST_CHOICES];
    json_t *logs[LOAD_MOST_CHOICES]; /* arrays of log-probabilities */
    char reasons[LOAD_MOST_CHOICES][16];
    char digests[LOAD_MOST_CHOICES][65];
    long long prompt_tokens, generated_tokens;
    unsigned n_texts; /* events with text so far */
    bool done;        /* all of it has been read */
    size_t read;      /* bytes of a stream's body that were understood */
    char wrong[512];  /* what is wrong with it; "" nothing */
} answer;

void answer_take_whole(answer *a, const bytes *body);
void answer_take_stream(answer *a, const bytes *body); /* what is there of it so far */

/* Whether it is the expected one, or with `cut` the beginning of it. Sets a->wrong. */
bool answer_agrees(answer *a, const answer *expected, bool cut);
void answer_clear(answer *a);

/* ---- recipes.c: what is asked ---------------------------------------------------------------- */

typedef struct recipe {
    const char *path;
    json_t *body; /* without `stream` */
    answer expected;
} recipe;

/* Makes n requests of all kinds, with random lengths up to `most` tokens. */
recipe *recipes_new(size_t n, uint64_t seed, uint32_t most);

/* As many that are all alike but in their text: streams of exactly `tokens` tokens after `prompt`.
 */
recipe *recipes_even(size_t n, uint32_t prompt, uint32_t tokens);
void recipes_free(recipe *recipes, size_t n);

/* The bytes of a request for it. */
void recipe_write(const recipe *r, bool stream, bytes *out);
void page_write(const char *path, bytes *out);

/* ---- figures of a run -------------------------------------------------------------------------
 */

typedef struct samples {
    double *values;
    size_t n, capacity;
} samples;

void samples_add(samples *s, double value);
double samples_at(samples *s, double share); /* sorts; 0 of none */
void samples_free(samples *s);

/* ---- memory.c: resident memory of the server --------------------------------------------------
 */

enum { LOAD_FLAT_MIB = 4 }; /* more than that between two quarters of a run is growth */

typedef struct memory {
    long pid;      /* 0: nobody asks */
    double next;   /* when it is looked at again */
    double most;   /* MiB */
    samples looks; /* MiB, in the order of time */
} memory;

double resident_mib(long pid);           /* now; 0: it is not known */
void memory_look(memory *m, double now); /* if it is time */
double memory_early(const memory *m);    /* the median of the second quarter; 0: of none */
double memory_late(const memory *m);     /* of the last quarter */
bool memory_is_flat(const memory *m);

/* ---- client.c -------------------------------------------------------------------------------- */

typedef enum behaviour {
    BEHAVES_WELL,
    LEAVES,      /* closes in the middle */
    RESETS,      /* the same, rudely */
    HALF_CLOSES, /* closes its side of the connection in the middle */
    READS_SLOWLY,
    WRITES_SLOWLY, /* a request with a pause in it */
    STOPS_WRITING, /* half a request, then nothing, then it leaves */
    ASKS_PAGES,
    ASKS_NONSENSE,
    N_BEHAVIOURS
} behaviour;

extern const char *const behaviour_names[N_BEHAVIOURS];

/* What came of all clients together. */
typedef struct tally {
    uint64_t begun[N_BEHAVIOURS], whole, cut, busy, failures, connections, tokens;
    uint64_t compared, compared_cut; /* answers, with those that were given alone */
    samples first, between; /* seconds: until the first text of a stream, between two texts */
} tally;

typedef struct plan {
    recipe *recipes;
    size_t n_recipes;
    place at;
    bool gentle;    /* all clients behave well and ask for streams */
    bool unchecked; /* answers are counted, not compared */
    bool other;     /* the server is not tern's: a connection for each request, because some servers
                       close silently what they called kept */
    bool ending;    /* nothing more is begun */
    tally *tally;
} plan;

typedef struct client {
    const plan *plan;
    int fd; /* -1: not connected */
    uint64_t random;
    behaviour behaviour;
    const recipe *recipe; /* NULL: a page */
    bool busy, stream;
    bytes out;
    size_t sent, pause_at; /* bytes of out */
    size_t leave_at;       /* bytes received, after which it leaves */
    double wake;           /* when it goes on; 0: it waits for the socket */
    double began, last;
    framing reply;
    answer answer;
} client;

double load_now(void); /* seconds */

void client_begin(client *c, int epoll);
void client_wake(client *c, int epoll); /* its time has come */
void client_ready(client *c, int epoll, bool readable, bool writable);
void client_free(client *c);

/* Asks and waits: for the replies that are expected, and for pages. Status 0: no reply. */
unsigned ask_alone(const place *at, const bytes *request, bytes *body);

/* Prints what is wrong and counts it. */
void load_fail(tally *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
