/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_PLAN_PREDICT_H
#define TERN_TOOLS_PLAN_PREDICT_H

/*
 * How fast a model decodes on some machines, by arithmetic alone: what a token reads, divided by
 * the speed of the memory, and the times at which threads or ranks wait for each other.
 * docs/scaling.md explains it.
 */

#include "tools/plan/model.h"

/* Figures that are measured or given. A machine has sockets, each with memory of its own. */
typedef struct plan_machine {
    uint32_t nodes;         /* machines */
    uint32_t sockets;       /* of a machine */
    uint32_t threads;       /* of a socket */
    double bus;             /* bytes a second that they read together */
    double reach;           /* the share of it that decoding reaches */
    double tops;            /* operations a second of a socket in products of many tokens */
    double meet_seconds;    /* a meeting of threads */
    double network_seconds; /* a message between machines */
    double network_bytes;   /* bytes a second between them */
    double near_seconds;    /* a message between ranks of one machine */
    double near_bytes;      /* bytes a second between them */
    uint64_t memory;        /* bytes of a machine; 0: unknown */
} plan_machine;

/* X(ID, name in JSON, title) */
#define PLAN_WAYS(X)                                                                               \
    X(PROCESS, "process", "one process")                                                           \
    X(SOCKETS, "sockets", "a rank on each socket")                                                 \
    X(RANKS, "ranks", "ranks on all machines")                                                     \
    X(REPLICAS, "replicas", "replicas")

typedef enum plan_way {
#define PLAN_WAY_ID(id, name, title) PLAN_WAY_##id,
    PLAN_WAYS(PLAN_WAY_ID)
#undef PLAN_WAY_ID
        PLAN_WAY_COUNT
} plan_way;

/* One way to use the machines. Times are seconds of a pass that makes a token for each sequence. */
typedef struct plan_figures {
    uint32_t ranks;         /* that compute one model */
    uint32_t copies;        /* of the model */
    uint64_t sequences;     /* of a copy */
    uint64_t weights;       /* bytes that the slowest rank reads in a pass */
    uint64_t cache;         /* bytes of the cache that it reads, of all its sequences */
    double bus;             /* bytes a second that it reads */
    uint64_t meetings;      /* of its threads */
    uint64_t gathers;       /* exchanges between ranks */
    uint64_t gather_bytes;  /* that a rank receives in all of them */
    double read_seconds;    /* of weights and cache */
    double product_seconds; /* of products, where these take longer than reading the weights */
    double meet_seconds;
    double latency_seconds;  /* of gathers, without their bytes */
    double transfer_seconds; /* of their bytes */
    double seconds;          /* all of it */
    double each, all;        /* tokens a second of a sequence, and of all sequences */
    uint64_t memory;         /* bytes of a rank: weights and cache */
    uint64_t most_context;   /* positions of a sequence that fit a machine's memory; 0: unknown, or
                                the weights alone do not fit */
    bool fits;               /* false: a machine's memory is too small */
} plan_figures;

/* The title of a way, for people; its name, for JSON. Static storage. */
const char *plan_way_title(plan_way way);
const char *plan_way_name(plan_way way);

/* False where a way makes no sense: sockets or machines of which there is only one. */
bool plan_way_applies(plan_way way, const plan_machine *machine);

/* For `users` sequences at once, each after `position` tokens. */
plan_figures plan_predict(const plan_model *model, const plan_machine *machine, plan_way way,
                          uint64_t position, uint64_t users);

/* Messages that a gather of so many ranks takes one after the other: log2, rounded up. */
uint32_t plan_messages(uint32_t ranks);

#endif
