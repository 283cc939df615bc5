/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tern bench: prefill and decode compared with the speed of this machine's memory and arithmetic.
 */

#include <inttypes.h>
#include <stdlib.h>

#include "base/chacha.h"
#include "base/metrics.h"
#include "tern/inspect.h"
#include "tools/commands/commands.h"
#include "tools/prompt/text_file.h"
#include "tools/record/receipt.h"
#include "tools/speed/speed.h"
#include "tools/touch/touch_options.h"

enum {
    MAX_THREADS = 1024,
    MAX_BATCH = 4096,
    MAX_DEPTH = 10000000,
    MAX_SEQUENCES = 1024
}; /* also limits of the option table */

/* ---- what to measure --------------------------------------------------------------------------
 */

/* Limits the default prompt to the room in the context: a small model has less. */
static void plan_main(bench *b) {
    bench_point *p = &b->main;
    const size_t room = b->context > p->n_decode ? b->context - p->n_decode : 0;
    p->threads = tern_model_threads(b->l.model, (uint32_t)options_integer(b->o, OPT_THREADS));
    if (!options_given(b->o, OPT_BENCH_PROMPT) && p->n_prompt > room)
        p->n_prompt = room;
    p->depth = options_given(b->o, OPT_DEPTH) ? options_integer(b->o, OPT_DEPTH) : p->n_prompt;
}

/* Plans the points and passes of the sweeps: like the main point except for what the lists say. */
static int plan_sweeps(bench *b) {
    uint64_t depths[BENCH_LIST_MAX], threads[BENCH_LIST_MAX], sizes[BENCH_LIST_MAX];
    size_t n_sizes;
    if (bench_list(b->o, OPT_DEPTHS, 0, MAX_DEPTH, depths, &b->n_depths) != EXIT_DONE ||
        bench_list(b->o, OPT_THREAD_COUNTS, 1, MAX_THREADS, threads, &b->n_threads) != EXIT_DONE ||
        bench_list(b->o, OPT_BATCH_SIZES, 1, MAX_BATCH, sizes, &n_sizes) != EXIT_DONE)
        return EXIT_USAGE;
    const bool one_first = n_sizes == 0 || sizes[0] == 1; /* otherwise one is added in front */
    b->n_batches = n_sizes + (one_first ? 0 : 1);
    b->depths = calloc(b->n_depths + 1, sizeof *b->depths);
    b->threads = calloc(b->n_threads + 1, sizeof *b->threads);
    b->batches = calloc(b->n_batches + 1, sizeof *b->batches);
    if (b->depths == NULL || b->threads == NULL || b->batches == NULL) {
        complain("no memory for the figures");
        return EXIT_FAILED;
    }
    for (size_t i = 0; i < b->n_depths; i++) {
        b->depths[i] = b->main;
        b->depths[i].n_prompt = 0;
        b->depths[i].depth = depths[i];
    }
    for (size_t i = 0; i < b->n_threads; i++) {
        b->threads[i] = b->main;
        b->threads[i].threads = (uint32_t)threads[i];
    }
    for (size_t i = 0; i < b->n_batches; i++)
        b->batches[i].tokens = i == 0 && !one_first ? 1 : sizes[one_first ? i : i - 1];
    return EXIT_DONE;
}

/* Plans how many sequences run at once, and the prompt that arrives while they decode. */
static int plan_sequences(bench *b) {
    uint64_t counts[BENCH_LIST_MAX];
    const int status = bench_list(b->o, OPT_SEQUENCES, 1, MAX_SEQUENCES, counts, &b->n_sequences);
    if (status != EXIT_DONE)
        return status;
    if (b->n_sequences > 0 && b->main.n_decode == 0) {
        complain("--sequences: -n 0 leaves nothing to decode");
        return EXIT_USAGE;
    }
    if (b->n_sequences == 0 && options_given(b->o, OPT_ARRIVING)) {
        complain("--arriving: --sequences says what it arrives at");
        return EXIT_USAGE;
    }
    b->n_arriving = options_integer(b->o, OPT_ARRIVING);
    b->sequences = calloc(b->n_sequences + 1, sizeof *b->sequences);
    b->arrivals = calloc(b->n_sequences + 1, sizeof *b->arrivals);
    if (b->sequences == NULL || b->arrivals == NULL) {
        complain("no memory for the figures");
        return EXIT_FAILED;
    }
    for (size_t i = 0; i < b->n_sequences; i++) {
        b->sequences[i].n = counts[i];
        b->arrivals[i].n = counts[i];
    }
    return EXIT_DONE;
}

/* Checks that the context has `n` positions; *most keeps the largest number that was needed. */
static int check_room(const bench *b, size_t n, size_t *most) {
    if (n > b->context) {
        complain("%zu tokens do not fit into a context of %u; see --ctx", n, b->context);
        return EXIT_USAGE;
    }
    *most = n > *most ? n : *most;
    return EXIT_DONE;
}

static size_t point_end(const bench_point *p) {
    return p->n_decode > 0 ? (p->depth > 0 ? p->depth : 1) + p->n_decode : p->depth;
}

static int plan_tokens(bench *b) {
    b->n_tokens = 1;
    int status = check_room(b, b->main.n_prompt, &b->n_tokens);
    if (status == EXIT_DONE)
        status = check_room(b, point_end(&b->main), &b->n_tokens);
    for (size_t i = 0; i < b->n_depths && status == EXIT_DONE; i++)
        status = check_room(b, point_end(&b->depths[i]), &b->n_tokens);
    for (size_t i = 0; i < b->n_batches && status == EXIT_DONE; i++)
        status = check_room(b, b->main.depth + b->batches[i].tokens, &b->n_tokens);
    if (status == EXIT_DONE && b->n_sequences > 0)
        status = check_room(b, bench_sequence_end(b), &b->n_tokens);
    if (status == EXIT_DONE && b->n_arriving > 0)
        status = check_room(b, b->n_arriving + 1, &b->n_tokens);
    return status;
}

static int plan(bench *b) {
    b->main.n_prompt = options_integer(b->o, OPT_BENCH_PROMPT);
    b->main.n_decode = options_integer(b->o, OPT_BENCH_TOKENS);
    b->context = tern_session_context(b->l.session);
    plan_main(b);
    int status = plan_sweeps(b);
    if (status == EXIT_DONE)
        status = plan_sequences(b);
    return status == EXIT_DONE ? plan_tokens(b) : status;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

/* Takes the text of --file, repeated if it is too short. */
static int take_text(bench *b) {
    text_file text = {0};
    const int status = text_file_read(b->o, &b->l, &text);
    if (status == EXIT_DONE && text.n == 0) {
        complain("%s: holds no text", text.path);
        text_file_free(&text);
        return EXIT_FAILED;
    }
    for (size_t i = 0; i < b->n_tokens && status == EXIT_DONE; i++)
        b->tokens[i] = text.ids[i % text.n];
    text_file_free(&text);
    return status;
}

/* Takes random tokens of the whole vocabulary. */
static void take_random(bench *b) {
    tern_chacha random;
    tern_chacha_seed(&random, options_integer(b->o, OPT_SEED));
    for (size_t i = 0; i < b->n_tokens; i++)
        b->tokens[i] = (int32_t)(tern_chacha_uniform(&random) * (double)b->l.info.n_vocab);
}

static int prepare(bench *b) {
    const tern_sampler_params params = tern_sampler_params_default();
    tern_error err = {0};
    b->tokens = calloc(b->n_tokens + 1, sizeof *b->tokens);
    if (b->tokens == NULL) {
        complain("no memory for %zu tokens", b->n_tokens);
        return EXIT_FAILED;
    }
    if (tern_sampler_new(&params, b->l.info.n_vocab, &b->sampler, &err) != TERN_OK)
        return complain_error(&err);
    (void)energy_open(&b->energy, ENERGY_FOLDER);
    if (options_given(b->o, OPT_FILE)) {
        const int status = take_text(b);
        return status == EXIT_DONE ? touch_open_as_asked(b->o, &b->touch) : status;
    }
    take_random(b);
    return touch_open_as_asked(b->o, &b->touch);
}

/* Opens model and session and measures the time; starts the child that measures memory first. */
static int open_all(bench *b) {
    b->memory = bandwidth_open();
    const double begin = tern_clock_seconds();
    const int status = loader_open(b->o, true, &b->l);
    b->load_seconds = tern_clock_seconds() - begin;
    if (status != EXIT_DONE || tern_model_device(b->l.model) == NULL)
        return status;
    bandwidth_close(&b->memory); /* the processor's memory does not limit passes on a device */
    if (!options_switch(b->o, OPT_STAGES))
        return EXIT_DONE;
    complain("--stages is of passes on the processor: leave --device out");
    return EXIT_USAGE;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static int measure_main(bench *b) {
    const uint64_t before = tern_dequantize_calls();
    const int status = bench_measure(b, &b->main);
    b->dequantized = tern_dequantize_calls() - before;
    b->rss_mib = tern_peak_rss_mib();
    if (status == EXIT_DONE && options_switch(b->o, OPT_STRICT) && b->dequantized > 0) {
        complain("strict: %" PRIu64 " rows of weights were expanded to floats", b->dequantized);
        return EXIT_FAILED;
    }
    return status;
}

/* Counts zeros in the inputs of the down projections, in the prompt and in decoded tokens. */
static int measure_sparsity(bench *b) {
    tern_error err = {0};
    const tern_generate_params params = {.max_tokens = b->main.n_decode, .ignore_end = true};
    const size_t n = b->main.depth > 0 ? b->main.depth : 1;
    if (!sparsity_open(&b->sparsity, b->l.model)) {
        complain("no memory to count zeros");
        return EXIT_FAILED;
    }
    sparsity_watch(b->l.session, &b->sparsity);
    tern_status status = tern_session_rewind(b->l.session, 0, &err);
    if (status == TERN_OK) {
        status =
            tern_generate(b->l.session, b->sampler, b->tokens, n, &params, NULL, NULL, NULL, &err);
    }
    sparsity_watch(b->l.session, NULL);
    return status == TERN_OK ? EXIT_DONE : complain_error(&err);
}

/* Opens a session for each number of threads; the last one stays open. */
static int measure_threads(bench *b) {
    int status = EXIT_DONE;
    for (size_t i = 0; i < b->n_threads && status == EXIT_DONE; i++) {
        tern_session_free(&b->l.session);
        status = loader_open_session_on(b->o, b->threads[i].threads, &b->l);
        if (status == EXIT_DONE)
            status = bench_measure(b, &b->threads[i]);
    }
    return status;
}

static int measure(bench *b) {
    int status = measure_main(b);
    bench_measure_peak(b);
    for (size_t i = 0; i < b->n_depths && status == EXIT_DONE; i++)
        status = bench_measure(b, &b->depths[i]);
    if (status == EXIT_DONE && b->n_batches > 0)
        status = bench_measure_batches(b);
    if (status == EXIT_DONE && b->n_sequences > 0)
        status = bench_measure_sequences(b);
    if (status == EXIT_DONE && options_switch(b->o, OPT_STAGES))
        status = bench_measure_stages(b);
    if (status == EXIT_DONE && options_switch(b->o, OPT_SPARSITY))
        status = measure_sparsity(b);
    if (status == EXIT_DONE)
        status = measure_threads(b);
    return status == EXIT_DONE ? touch_verify_as_asked(b->o, &b->touch) : status;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int report(bench *b) {
    int status = options_switch(b->o, OPT_JSON)       ? bench_print_json(b)
                 : options_switch(b->o, OPT_MARKDOWN) ? bench_print_markdown(b)
                                                      : bench_print_text(b);
    if (status == EXIT_DONE && options_given(b->o, OPT_RECORD))
        status = bench_write_record(b);
    if (status == EXIT_DONE && options_given(b->o, OPT_RECEIPT))
        status = bench_write_receipt(b);
    return status;
}

static void close_all(bench *b) {
    sparsity_free(&b->sparsity);
    free(b->stages);
    touch_free(&b->touch);
    tern_sampler_free(&b->sampler);
    free(b->tokens);
    free(b->depths);
    free(b->threads);
    free(b->batches);
    free(b->sequences);
    free(b->arrivals);
    loader_close(&b->l);
    bandwidth_close(&b->memory);
}

/* Figures of passes with guesses are no figures of the model alone, which documents hold. */
static int check_draft(const options *o) {
    if (!options_given(o, OPT_DRAFT_MODEL) ||
        (!options_given(o, OPT_RECEIPT) && !options_given(o, OPT_RECORD) &&
         !options_switch(o, OPT_JSON)))
        return EXIT_DONE;
    complain("--draft-model: not with --json, --record or --receipt, which tell of one model");
    return EXIT_USAGE;
}

int cmd_bench(const options *o) {
    bench *b = calloc(1, sizeof *b);
    if (b == NULL) {
        complain("no memory");
        return EXIT_FAILED;
    }
    b->o = o;
    int status = check_draft(o);
    if (status == EXIT_DONE)
        status = receipt_check_key(o);
    if (status == EXIT_DONE)
        status = open_all(b);
    if (status == EXIT_DONE)
        status = plan(b);
    if (status == EXIT_DONE)
        status = prepare(b);
    if (status == EXIT_DONE)
        status = measure(b);
    if (status == EXIT_DONE)
        status = loader_check_file(&b->l);
    if (status == EXIT_DONE)
        status = report(b);
    close_all(b);
    free(b);
    return status;
}
