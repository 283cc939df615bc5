/* SPDX-License-Identifier: Apache-2.0 */
/* tern bench: prefill and decode on random tokens, against the speed of this machine's memory. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/chacha.h"
#include "runtime/metrics.h"
#include "runtime/team.h"
#include "tools/bandwidth.h"
#include "tools/commands.h"
#include "tools/json.h"
#include "tools/loader.h"
#include "tools/out.h"
#include "tools/receipt/receipt.h"

enum { MAX_REPEAT = 1000 };

/* One figure of all repeats. */
typedef struct series {
    double values[MAX_REPEAT];
    size_t n;
} series;

typedef struct bench {
    const options *o;
    loaded l;
    tern_sampler *sampler;
    int32_t *tokens; /* [max(n_prompt, depth, 1)] random */
    size_t n_prompt, n_decode, depth;
    series prefill_tps, decode_tps, p50_ms, p95_ms, first_ms;
    double read_before, read_after; /* GB/s of the memory */
    uint32_t threads;
    double rss_mib;
    uint64_t dequantized;
} bench;

static void add(series *s, double value) {
    s->values[s->n++] = value;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Middle value, or the mean of the two in the middle; 0 without values. */
static double median(const series *s) {
    if (s->n == 0) {
        return 0.0;
    }
    series sorted = *s;
    qsort(sorted.values, sorted.n, sizeof *sorted.values, compare);
    return (sorted.values[(sorted.n - 1) / 2] + sorted.values[sorted.n / 2]) / 2.0;
}

/* (largest - smallest) / median in percent. */
static double spread(const series *s) {
    double low = s->n > 0 ? s->values[0] : 0.0;
    double high = low;
    for (size_t i = 1; i < s->n; i++) {
        low = s->values[i] < low ? s->values[i] : low;
        high = s->values[i] > high ? s->values[i] : high;
    }
    const double middle = median(s);
    return middle > 0.0 ? 100.0 * (high - low) / middle : 0.0;
}

static double rate(size_t n, double seconds) {
    return seconds > 0.0 ? (double)n / seconds : 0.0;
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* Brings the cache to `depth` tokens, not timed. */
static tern_status fill_to(bench *b, size_t depth, tern_error *err) {
    tern_session *s = b->l.session;
    const size_t position = tern_session_position(s);
    if (position >= depth) {
        return tern_session_rewind(s, (uint32_t)depth, err);
    }
    return tern_session_eval(s, b->tokens + position, depth - position, TERN_LOGITS_NONE, NULL,
                             err);
}

static tern_status measure_prefill(bench *b, tern_error *err) {
    if (b->n_prompt == 0) {
        return TERN_OK;
    }
    tern_generation g;
    tern_status status = tern_session_rewind(b->l.session, 0, err);
    if (status == TERN_OK) {
        status = tern_generate(b->l.session, b->sampler, b->tokens, b->n_prompt,
                               &(tern_generate_params){.max_tokens = 0, .ignore_end = true}, NULL,
                               NULL, &g, err);
    }
    if (status == TERN_OK) {
        add(&b->prefill_tps, rate(b->n_prompt, g.prefill_seconds));
        add(&b->first_ms, 1e3 * g.prefill_seconds);
    }
    return status;
}

/* Decoding begins behind depth tokens, the last of which gives the first logits. */
static tern_status measure_decode(bench *b, tern_error *err) {
    if (b->n_decode == 0) {
        return TERN_OK;
    }
    tern_generation g;
    const size_t start = b->depth > 0 ? b->depth - 1 : 0;
    tern_status status = fill_to(b, start, err);
    if (status == TERN_OK) {
        status =
            tern_generate(b->l.session, b->sampler, b->tokens + start, 1,
                          &(tern_generate_params){.max_tokens = b->n_decode, .ignore_end = true},
                          NULL, NULL, &g, err);
    }
    if (status == TERN_OK) {
        add(&b->decode_tps, rate(g.n_generated, g.decode_seconds));
        add(&b->p50_ms, g.p50_ms);
        add(&b->p95_ms, g.p95_ms);
    }
    return status;
}

static int measure(bench *b) {
    tern_error err = {0};
    const uint64_t repeats = options_integer(b->o, OPT_REPEAT);
    const uint64_t before = tern_dequantize_calls();
    for (uint64_t i = 0; i < repeats; i++) {
        if (measure_prefill(b, &err) != TERN_OK || measure_decode(b, &err) != TERN_OK) {
            return complain_error(&err);
        }
    }
    b->dequantized = tern_dequantize_calls() - before;
    b->rss_mib = tern_peak_rss_mib();
    if (options_switch(b->o, OPT_STRICT) && b->dequantized > 0) {
        complain("strict: %" PRIu64 " rows of weights were expanded to floats", b->dequantized);
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

/* ---- printing -------------------------------------------------------------------------------- */

static double decode_gbs(const bench *b) {
    return median(&b->decode_tps) * (double)b->l.info.weight_bytes * 1e-9;
}

/* The faster of the two measurements of the memory: a disturbed one must not flatter us. */
static double read_gbs(const bench *b) {
    return b->read_before > b->read_after ? b->read_before : b->read_after;
}

static double fraction(const bench *b) {
    return read_gbs(b) > 0.0 ? decode_gbs(b) / read_gbs(b) : 0.0;
}

static int print_text(const bench *b) {
    out_print("model      %s\n", b->l.info.path);
    out_print("machine    %s, %u threads, memory reads %.1f GB/s before, %.1f GB/s after\n",
              tern_model_isa(b->l.model), b->threads, b->read_before, b->read_after);
    out_print("kernels    choice: %s, layout of ternary weights: %s\n",
              tern_model_choice(b->l.model), tern_model_layout(b->l.model));
    if (b->n_prompt > 0) {
        out_print(
            "prefill    %zu tokens: %.2f tokens/s (spread %.1f %%), first token after %.1f ms\n",
            b->n_prompt, median(&b->prefill_tps), spread(&b->prefill_tps), median(&b->first_ms));
    }
    if (b->n_decode > 0) {
        out_print("decode     %zu tokens behind %zu: %.2f tokens/s (spread %.1f %%), p50 %.2f ms, "
                  "p95 %.2f ms\n",
                  b->n_decode, b->depth, median(&b->decode_tps), spread(&b->decode_tps),
                  median(&b->p50_ms), median(&b->p95_ms));
        out_print("bandwidth  %.1f MB a token: %.2f GB/s, %.1f %% of what the memory gives\n",
                  (double)b->l.info.weight_bytes * 1e-6, decode_gbs(b), 100.0 * fraction(b));
    }
    out_print("memory     %.0f MiB at most\n", b->rss_mib);
    return EXIT_DONE;
}

#ifdef TERN_HAVE_JANSSON
/* What was measured. */
static json_t *figures(const bench *b) {
    json_t *root = json_object();
    json_object_set_new(root, "prompt_tokens", json_integer((json_int_t)b->n_prompt));
    json_object_set_new(root, "generated_tokens", json_integer((json_int_t)b->n_decode));
    json_object_set_new(root, "depth", json_integer((json_int_t)b->depth));
    json_object_set_new(root, "repeat",
                        json_integer((json_int_t)options_integer(b->o, OPT_REPEAT)));
    json_object_set_new(root, "prefill_tps", json_number(median(&b->prefill_tps)));
    json_object_set_new(root, "prefill_spread_percent", json_number(spread(&b->prefill_tps)));
    json_object_set_new(root, "decode_tps", json_number(median(&b->decode_tps)));
    json_object_set_new(root, "decode_spread_percent", json_number(spread(&b->decode_tps)));
    json_object_set_new(root, "first_token_ms", json_number(median(&b->first_ms)));
    json_object_set_new(root, "p50_ms", json_number(median(&b->p50_ms)));
    json_object_set_new(root, "p95_ms", json_number(median(&b->p95_ms)));
    json_object_set_new(root, "rss_mib", json_number(b->rss_mib));
    json_object_set_new(root, "bytes_per_token", json_integer((json_int_t)b->l.info.weight_bytes));
    json_object_set_new(root, "bandwidth_gbs", json_number(decode_gbs(b)));
    json_object_set_new(root, "read_gbs", json_number(read_gbs(b)));
    json_object_set_new(root, "bandwidth_fraction", json_number(fraction(b)));
    return root;
}

static int print_json(const bench *b) {
    json_t *root = figures(b);
    json_object_set_new(root, "threads", json_integer(b->threads));
    json_set_loading(root, &b->l);
    json_set_kernels(root, &b->l);
    json_object_set_new(root, "seed", json_unsigned(options_integer(b->o, OPT_SEED)));
    json_object_set_new(root, "deterministic",
                        json_boolean(options_switch(b->o, OPT_DETERMINISTIC)));
    json_object_set_new(root, "model", json_text(b->l.info.path, strlen(b->l.info.path)));
    return json_print(root);
}

/* ---- the receipt ----------------------------------------------------------------------------- */

/* One more run, watched and not part of the figures. */
typedef struct recording {
    answerer answerer;
    receipt_watch watch;
} recording;

static bool record_token(const char *bytes, size_t size, void *user) {
    recording *r = user;
    (void)bytes;
    (void)size;
    receipt_watch_logits(&r->watch, r->answerer.n_tokens - 1, false);
    return true;
}

static int record(const bench *b, recording *r, const tern_sampler_params *sampling) {
    const prompt tokens = {.ids = b->tokens, .n = b->depth > 0 ? b->depth : 1};
    const answer_request request = {.prompt = tokens.ids,
                                    .n_prompt = tokens.n,
                                    .seed = sampling->seed,
                                    .max_tokens = b->n_decode,
                                    .ignore_end = true,
                                    .sink = record_token,
                                    .user = r};
    const receipt_run run = {.o = b->o,
                             .l = &b->l,
                             .prompt = &tokens,
                             .sampling = sampling,
                             .request = &request,
                             .answer = &r->answerer,
                             .watch = &r->watch};
    tern_error err = {0};
    if (answerer_answer(&r->answerer, &request, &err) != TERN_OK) {
        return complain_error(&err);
    }
    receipt_watch_logits(&r->watch, r->answerer.n_tokens, true);
    json_t *benchmark = figures(b);
    const int status = receipt_write(&run, benchmark);
    json_decref(benchmark);
    return status;
}

/* In a session of its own: what it executes is all that it has executed. */
static int write_receipt(bench *b) {
    const tern_sampler_params sampling = tern_sampler_params_default();
    tern_error err = {0};
    recording r = {.watch = {.n = 0}};
    int status = loader_open_session(b->o, &b->l);
    if (status != EXIT_DONE) {
        return status;
    }
    r.watch = receipt_watch_begin(b->l.session);
    status = answerer_open(&r.answerer, b->l.session, NULL, &sampling, &err) == TERN_OK
                 ? record(b, &r, &sampling)
                 : complain_error(&err);
    receipt_watch_free(&r.watch);
    answerer_close(&r.answerer);
    return status;
}
#endif

/* ---- the command ----------------------------------------------------------------------------- */

/* Unless they were asked for, the prompt is what the context has room for: a small model has less.
 */
static void fit_prompt(bench *b) {
    const uint32_t context = tern_session_context(b->l.session);
    const size_t room = context > b->n_decode ? context - b->n_decode : 0;
    if (!options_given(b->o, OPT_BENCH_PROMPT) && b->n_prompt > room)
        b->n_prompt = room;
    b->depth = options_given(b->o, OPT_DEPTH) ? options_integer(b->o, OPT_DEPTH) : b->n_prompt;
}

/* Random tokens of the whole vocabulary; also checks that everything fits into the context. */
static int prepare(bench *b) {
    const size_t deepest = b->depth > 0 ? b->depth : 1;
    const size_t n = b->n_prompt > deepest ? b->n_prompt : deepest;
    const uint32_t context = tern_session_context(b->l.session);
    if (b->n_prompt > context || (b->n_decode > 0 && deepest + b->n_decode > context)) {
        complain("%zu tokens do not fit into a context of %u; see --ctx",
                 b->n_decode > 0 && deepest + b->n_decode > n ? deepest + b->n_decode : n, context);
        return EXIT_USAGE;
    }
    b->tokens = malloc(n * sizeof *b->tokens);
    const tern_sampler_params params = tern_sampler_params_default();
    tern_error err = {0};
    if (b->tokens == NULL) {
        complain("no memory for %zu tokens", n);
        return EXIT_FAILED;
    }
    if (tern_sampler_new(&params, b->l.info.n_vocab, &b->sampler, &err) != TERN_OK) {
        return complain_error(&err);
    }
    tern_chacha random;
    tern_chacha_seed(&random, options_integer(b->o, OPT_SEED));
    for (size_t i = 0; i < n; i++) {
        b->tokens[i] = (int32_t)(tern_chacha_uniform(&random) * (double)b->l.info.n_vocab);
    }
    return EXIT_DONE;
}

/* The session's threads are gone when the memory is measured again; the model stays for the report.
 */
static void measure_memory_again(bench *b) {
    tern_session_free(&b->l.session);
    b->read_after = bandwidth_measure(b->threads);
}

int cmd_bench(const options *o) {
    bench *b = calloc(1, sizeof *b);
    if (b == NULL) {
        complain("no memory");
        return EXIT_FAILED;
    }
    b->o = o;
    b->n_prompt = options_integer(o, OPT_BENCH_PROMPT);
    b->n_decode = options_integer(o, OPT_BENCH_TOKENS);
    const uint64_t asked = options_integer(o, OPT_THREADS);
    b->threads = asked > 0 ? (uint32_t)asked : tern_processor_count();
    int status = loader_open_model(o, true, &b->l);
    if (status == EXIT_DONE) {
        b->read_before = bandwidth_measure(b->threads);
        status = loader_open_session(o, &b->l);
    }
    if (status == EXIT_DONE) {
        fit_prompt(b);
        status = prepare(b);
    }
    if (status == EXIT_DONE) {
        status = measure(b);
    }
    if (status == EXIT_DONE) {
        measure_memory_again(b);
        status = options_switch(o, OPT_JSON) ? JSON_OR_NOTHING(print_json(b)) : print_text(b);
    }
    if (status == EXIT_DONE && options_given(o, OPT_RECEIPT)) {
        status = JSON_OR_NOTHING(write_receipt(b));
    }
    tern_sampler_free(&b->sampler);
    free(b->tokens);
    loader_close(&b->l);
    free(b);
    return status;
}
