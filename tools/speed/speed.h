/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_SPEED_SPEED_H
#define TERN_TOOLS_SPEED_SPEED_H

/*
 * The measurements and reports of `tern bench`: a point (prefill and decode at one depth with one
 * number of threads) in several rounds, then the sweeps that were asked for.
 */

#include "base/json_tree/value.h"
#include "tools/cli/output.h"
#include "tools/load/loader.h"
#include "tools/speed/bandwidth.h"
#include "tools/speed/energy.h"
#include "tools/speed/sequences.h"
#include "tools/speed/series.h"
#include "tools/speed/sparsity.h"
#include "tools/speed/stages.h"
#include "tools/touch/touch.h"

enum { BENCH_LIST_MAX = 32 }; /* numbers in --depths and similar options */

/* Prefill and decode, measured in rounds: value i of each series belongs to round i. */
typedef struct bench_point {
    uint32_t threads;
    size_t n_prompt; /* 0: no prefill */
    size_t n_decode; /* 0: no decoding */
    size_t depth;    /* length of the context before decoding */
    series prefill_tps, first_ms;
    series decode_tps, p50_ms, p95_ms;
    series read_gbs;  /* of the memory: the faster of two measurements right before and right after
                         decoding, so that a disturbed one does not flatter us */
    series head_rows; /* rows of the head multiplied exactly after a scan, per token; 0: no scan */
    series joules;    /* per decoded token; empty if it cannot be read */
    uint64_t n_drafted, n_accepted; /* guessed with --draft-model in all rounds, and right */
} bench_point;

/*
 * A pass of some tokens after the main point's depth, in milliseconds: with logits of all of them,
 * or with a token picked after the last one as in decoding. The ratios compare it with the pass of
 * one token in the same round.
 */
typedef struct bench_batch {
    size_t tokens;
    series all_ms, all_ratio, pick_ms, pick_ratio;
} bench_batch;

typedef struct bench {
    const options *o;
    loaded l;
    tern_sampler *sampler;
    int32_t *tokens; /* [n_tokens] random, or from --file */
    size_t n_tokens; /* enough for the longest context */
    bandwidth_meter memory;
    energy_meter energy;
    touch touch; /* words == NULL: not asked for */
    bench_point main;
    bench_point *depths;  /* [n_depths] owned */
    bench_point *threads; /* [n_threads] owned */
    bench_batch *batches; /* [n_batches] owned; the first one has one token */
    size_t n_depths, n_threads, n_batches;
    bench_sequences *sequences;     /* [n_sequences] owned */
    bench_arrival *arrivals;        /* [n_sequences] owned; measured if n_arriving > 0 */
    size_t n_sequences, n_arriving; /* n_arriving: tokens of the prompt that arrives */
    uint32_t context;               /* positions of the session */
    double load_seconds;            /* to open model and session */
    double rss_mib;
    uint64_t dequantized; /* rows of weights expanded to floats while measuring */
    double peak_gmacs;    /* multiply-accumulates in registers, all threads, G/s; 0: unknown */
    const char *peak_isa, *peak_unit;
    bench_all_stages *stages; /* owned; NULL: not asked for */
    sparsity sparsity;        /* n_layer == 0: not asked for */
} bench;

/* Reads an option's list of numbers such as "0,512,2048" into list[BENCH_LIST_MAX], each from min
 * to max; an option that is not given has none. EXIT_USAGE after a complaint. */
int bench_list(const options *o, option_id id, uint64_t min, uint64_t max, uint64_t *list,
               size_t *n);

/* ---- measuring: EXIT_DONE, or the exit status after a complaint -------------------------------
 */

/* Measures a point in --repeat rounds with the open session. */
int bench_measure(bench *b, bench_point *p);

/* Measures passes of several tokens at the main point's depth. */
int bench_measure_batches(bench *b);

/* Measures the stages of the main point, in --repeat rounds. */
int bench_measure_stages(bench *b);

/* Measures the peak rate of multiplications with the threads of the main point. */
void bench_measure_peak(bench *b);

/* Fills the cache with the first `depth` tokens, untimed. */
tern_status bench_fill(bench *b, size_t depth, tern_error *err);

/* ---- derived from a point -------------------------------------------------------------------- */

/* Bytes of keys and values that a decoded token reads on average. */
uint64_t bench_cache_bytes(const bench *b, const bench_point *p);

/* Bytes of weights, keys and values that a decoded token reads. */
uint64_t bench_token_bytes(const bench *b, const bench_point *p);

/* The same for a token of n sequences that are decoded together. They share the cost of weights,
 * except for experts: each token is assumed to choose other experts as long as there are any. */
double bench_shared_bytes(const bench *b, size_t n);

/* Bytes read per second of decoding, in GB/s, and the fraction of the memory's rate. */
double bench_gbs(const bench *b, const bench_point *p);
double bench_fraction(const bench *b, const bench_point *p);

/* Weights multiplied per second, in G/s: in the blocks for each token, in the head for each token
 * that gets logits (of a prompt only the last one). */
double bench_prefill_gweights(const bench *b, const bench_point *p);
double bench_decode_gweights(const bench *b, const bench_point *p);

/* Multiplications and additions of a decoded token per byte of weights that it reads. */
double bench_intensity(const bench *b);

/* x / y, or 0 if y is not above 0. */
double bench_ratio(double x, double y);

/* ---- reporting ------------------------------------------------------------------------------ */

int bench_print_text(const bench *b);
int bench_print_markdown(const bench *b);

json_t *bench_figures(const bench *b);               /* the figures that a receipt holds, too */
void bench_set_sweeps(json_t *root, const bench *b); /* all other measurements */
int bench_print_json(const bench *b);

/* Writes all measurements with every sample as a benchmark document (--record). */
int bench_write_record(const bench *b);

/* Runs the main point once more, watched, in a separate session, and writes the receipt. */
int bench_write_receipt(bench *b);

#endif
