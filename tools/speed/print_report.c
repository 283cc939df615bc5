/* SPDX-License-Identifier: Apache-2.0 */
/* The output of tern bench for people. */

#include <inttypes.h>

#include "tools/load/together.h"
#include "tools/speed/speed.h"

static double percent(double x) {
    return 100.0 * x;
}

static double mb(uint64_t bytes) {
    return 1e-6 * (double)bytes;
}

static void print_machine(const bench *b) {
    const series *reads = &b->main.read_gbs;
    const char *device = tern_model_device(b->l.model);
    out_print("machine    %s", device != NULL ? device : tern_model_isa(b->l.model));
    if (device == NULL)
        out_print(", %u thread%s", b->main.threads, b->main.threads == 1 ? "" : "s");
    if (series_high(reads) > 0.0) {
        out_print("; memory reads %.1f GB/s (%.1f to %.1f between rounds)", series_median(reads),
                  series_low(reads), series_high(reads));
    }
    if (b->peak_gmacs > 0.0) {
        out_print("; %s multiplies %.0f G %s/s in registers", b->peak_isa, b->peak_gmacs,
                  b->peak_unit);
    }
    out_print("\n");
}

static void print_prefill(const bench *b) {
    const bench_point *p = &b->main;
    if (p->n_prompt == 0) {
        out_print("load       %.0f ms\n", 1e3 * b->load_seconds);
        return;
    }
    out_print("load       %.0f ms; first token after %.1f ms with loading\n", 1e3 * b->load_seconds,
              1e3 * b->load_seconds + p->first_ms.values[0]);
    out_print("prefill    %zu tokens: %.2f tokens/s (spread %.1f %%), first token after %.1f ms\n",
              p->n_prompt, series_median(&p->prefill_tps), series_spread(&p->prefill_tps),
              series_median(&p->first_ms));
}

static void print_decode(const bench *b) {
    const bench_point *p = &b->main;
    const tern_model_info *i = &b->l.info;
    const uint64_t bytes = bench_token_bytes(b, p);
    out_print("decode     %zu tokens after %zu: %.2f tokens/s (spread %.1f %%), p50 %.2f ms, "
              "p95 %.2f ms\n",
              p->n_decode, p->depth, series_median(&p->decode_tps), series_spread(&p->decode_tps),
              series_median(&p->p50_ms), series_median(&p->p95_ms));
    if (b->l.draft != NULL)
        out_print("drafted    %" PRIu64 " tokens, %" PRIu64 " right\n", p->n_drafted,
                  p->n_accepted);
    out_print(
        "bytes      %.1f MB a token: attention %.1f, feed-forward %.1f, head %.1f, cache %.1f; "
        "%.1f %% of the model's file\n",
        mb(bytes), mb(i->attention_bytes), mb(i->feed_forward_bytes), mb(i->head_bytes),
        mb(bench_cache_bytes(b, p)), percent(bench_ratio((double)bytes, (double)i->file_bytes)));
    if (series_high(&p->head_rows) > 0.0) {
        out_print("head       scanned; %.0f rows a token multiplied exactly\n",
                  series_median(&p->head_rows));
    }
    out_print("bandwidth  %.2f GB/s", bench_gbs(b, p));
    if (bench_fraction(b, p) > 0.0)
        out_print(", %.1f %% of what the memory gives", percent(bench_fraction(b, p)));
    out_print("\n");
}

/* Prints the fraction of the peak, if the peak was measured. */
static void print_of_peak(const bench *b, double gweights, const char *of) {
    if (b->peak_gmacs > 0.0)
        out_print(", %.1f %%%s", percent(bench_ratio(gweights, b->peak_gmacs)), of);
}

static void print_arithmetic(const bench *b) {
    const double prefill = bench_prefill_gweights(b, &b->main);
    const double decode = bench_decode_gweights(b, &b->main);
    out_print("arithmetic");
    if (b->main.n_prompt > 0) {
        out_print(" prefill %.1f G weights/s", prefill);
        print_of_peak(b, prefill, " of the peak");
        out_print("%s", b->main.n_decode > 0 ? ";" : "");
    }
    if (b->main.n_decode > 0) {
        out_print(" decode %.1f%s", decode, b->main.n_prompt > 0 ? "" : " G weights/s");
        print_of_peak(b, decode, b->main.n_prompt > 0 ? "" : " of the peak");
    }
    out_print("; %.1f operations a byte of weights\n", bench_intensity(b));
}

static void print_energy(const bench *b) {
    if (b->main.joules.n > 0) {
        out_print("energy     %.2f J a token decoded, the whole processor\n",
                  series_median(&b->main.joules));
    } else {
        out_print("energy     not readable here\n");
    }
}

static void print_fetch(const bench *b) {
    const tern_fetch f = tern_model_fetch(b->l.model);
    if (f.ahead > 0)
        out_print("ahead      %u bytes of each matrix for each thread%s\n", f.ahead,
                  f.hint == TERN_FETCH_PASSING ? ", not to be kept in caches" : "");
}

static void print_touch(const bench *b) {
    const touch *t = &b->touch;
    if (t->words != NULL) {
        out_print("touched    %.1f MB more a token, %.2f ms each; every word was read%s\n",
                  mb(t->steps * t->stride * sizeof *t->words),
                  1e3 * bench_ratio(t->seconds, (double)t->tokens),
                  t->non_temporal ? ", none to be kept in caches" : "");
    }
}

static void print_points(const bench *b, const char *title, const bench_point *points, size_t n) {
    const double base = n > 0 ? series_median(&points[0].decode_tps) : 0.0;
    if (n > 0) {
        out_print("\n%s\n%8s %8s %12s %12s %8s %10s %8s %10s\n", title, "threads", "depth",
                  "prefill/s", "decode/s", "ratio", "MB/token", "GB/s", "of memory");
    }
    for (size_t i = 0; i < n; i++) {
        const bench_point *p = &points[i];
        const double tps = series_median(&p->decode_tps);
        out_print("%8u %8zu %12.2f %12.2f %8.3f %10.1f %8.2f %8.1f %%\n", p->threads, p->depth,
                  series_median(&p->prefill_tps), tps, bench_ratio(tps, base),
                  mb(bench_token_bytes(b, p)), bench_gbs(b, p), percent(bench_fraction(b, p)));
    }
}

static void print_batches(const bench *b) {
    if (b->n_batches > 0) {
        out_print(
            "\npasses of several tokens after %zu, with logits of all, or a pick after the last\n"
            "%8s %12s %8s %12s %8s\n",
            b->main.depth, "tokens", "ms, all", "ratio", "ms, pick", "ratio");
    }
    for (size_t i = 0; i < b->n_batches; i++) {
        const bench_batch *s = &b->batches[i];
        out_print("%8zu %12.2f %8.3f %12.2f %8.3f\n", s->tokens, series_median(&s->all_ms),
                  series_median(&s->all_ratio), series_median(&s->pick_ms),
                  series_median(&s->pick_ratio));
    }
}

static void print_sequences(const bench *b) {
    const double one = b->n_sequences > 0 ? series_median(&b->sequences[0].tps) : 0.0;
    if (b->n_sequences > 0) {
        out_print("\nsequences together behind %zu, a token of each in every pass\n"
                  "%8s %12s %8s %12s %10s %10s %10s\n",
                  b->main.depth, "n", "tokens/s", "ratio", "each", "p50, ms", "p95, ms",
                  "MB/token");
    }
    for (size_t i = 0; i < b->n_sequences; i++) {
        const bench_sequences *s = &b->sequences[i];
        const double tps = series_median(&s->tps);
        out_print("%8zu %12.2f %8.3f %12.2f %10.2f %10.2f %10.1f\n", s->n, tps,
                  bench_ratio(tps, one), tps / (double)s->n, series_median(&s->p50_ms),
                  series_median(&s->p95_ms), 1e-6 * bench_shared_bytes(b, s->n));
    }
}

static void print_arrivals(const bench *b) {
    if (b->n_arriving > 0) {
        out_print("\nms between tokens while a prompt of %zu tokens arrives, %" PRIu64
                  " ms aimed at\n%8s %12s %12s %12s %12s %14s\n",
                  b->n_arriving, options_integer(b->o, OPT_GAP), "n", "p50 before", "p95 before",
                  "p50 during", "p95 during", "its first, ms");
    }
    for (size_t i = 0; i < b->n_sequences && b->n_arriving > 0; i++) {
        const bench_arrival *a = &b->arrivals[i];
        out_print("%8zu %12.2f %12.2f %12.2f %12.2f %14.1f\n", a->n,
                  series_median(&a->before_p50_ms), series_median(&a->before_p95_ms),
                  series_median(&a->during_p50_ms), series_median(&a->during_p95_ms),
                  series_median(&a->first_ms));
    }
}

/* Prints a figure and its share of the whole. */
static void print_share(double ms, double whole) {
    out_print(" %10.4f %6.2f %%", ms, percent(bench_ratio(ms, whole)));
}

static void print_stage(tern_stage which, const bench_stage *s, double whole) {
    out_print("%-10s", tern_stage_name(which));
    print_share(series_median(&s->work_ms), whole);
    print_share(series_median(&s->wait_ms), whole);
    if (s->bytes > 0.0)
        out_print(" %9.3f %7.2f", 1e-6 * s->bytes, bench_stage_gbs(s));
    else
        out_print(" %9s %7s", "", "");
    if (s->weights > 0.0)
        out_print(" %8.2f", bench_stage_gweights(s));
    else
        out_print(" %8s", "");
    out_print("  %s\n", tern_stage_what(which));
}

/* Milliseconds are per token, averaged over the threads. */
static void print_stages(const char *title, size_t depth, const bench_stages *s) {
    const double whole = series_median(&s->whole_ms);
    if (s->tokens == 0)
        return;
    out_print("\nwhere the time of %s goes, %zu tokens after %zu, mean of %u thread%s\n"
              "%-10s %10s %8s %10s %8s %9s %7s %8s\n",
              title, s->tokens, depth, s->threads, s->threads == 1 ? "" : "s", "stage", "work, ms",
              "share", "wait, ms", "share", "MB", "GB/s", "G w/s");
    for (tern_stage i = 0; i < TERN_STAGE_COUNT; i++)
        if (bench_stage_ran(&s->stage[i]))
            print_stage(i, &s->stage[i], whole);
    out_print("%-10s", "all");
    print_share(series_median(&s->work_ms), whole);
    print_share(series_median(&s->wait_ms), whole);
    out_print("\n%-10s", "outside");
    print_share(series_median(&s->outside_ms), whole);
    out_print("\n%-10s", "whole");
    print_share(whole, whole);
    out_print("\n");
}

static void print_sparsity_row(const char *name, const sparsity_layer *l) {
    out_print("%8s %7.2f %%", name, percent(bench_ratio((double)l->zeros, (double)l->values)));
    for (size_t i = 0; i < SPARSITY_SIZES; i++) {
        out_print(" %8.3f %%",
                  percent(bench_ratio((double)l->zero_groups[i], (double)l->groups[i])));
    }
    out_print("\n");
}

static void print_sparsity(const bench *b) {
    static const size_t sizes[SPARSITY_SIZES] = SPARSITY_GROUPS;
    if (b->sparsity.n_layer == 0)
        return;
    out_print("\nzeros among what the down projections multiply, and groups of columns that are "
              "all zero\n%8s %9s",
              "layer", "zeros");
    for (size_t i = 0; i < SPARSITY_SIZES; i++)
        out_print("   %2zu whole", sizes[i]);
    out_print("\n");
    for (size_t i = 0; i < b->sparsity.n_layer; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "%zu", i);
        print_sparsity_row(name, &b->sparsity.layers[i]);
    }
    const sparsity_layer total = sparsity_total(&b->sparsity);
    print_sparsity_row("all", &total);
}

static void print_ranks(void) {
    if (together_ranks() == NULL)
        return;
    const tern_ranks_work work = tern_ranks_done(together_ranks());
    out_print("ranks      %u; %" PRIu64
              " exchanges in %.3f s, of which %.3f s until the others had "
              "come; %.1f MB received\n",
              tern_ranks_size(together_ranks()), work.gathers, work.seconds, work.waiting,
              mb(work.bytes));
}

int bench_print_text(const bench *b) {
    out_print("model      %s\n", b->l.info.path);
    print_machine(b);
    out_print("kernels    choice: %s, layout of ternary weights: %s\n",
              tern_model_choice(b->l.model), tern_model_layout(b->l.model));
    out_print("activations %s (precision %s)\n", tern_model_activation_forms(b->l.model),
              tern_model_activations(b->l.model));
    print_prefill(b);
    if (b->main.n_decode > 0)
        print_decode(b);
    if (b->main.n_prompt > 0 || b->main.n_decode > 0)
        print_arithmetic(b);
    if (b->main.n_decode > 0)
        print_energy(b);
    print_fetch(b);
    print_touch(b);
    out_print("memory     %.0f MiB at most\n", b->rss_mib);
    print_ranks();
    print_points(b, "decode by depth", b->depths, b->n_depths);
    print_points(b, "by threads", b->threads, b->n_threads);
    print_batches(b);
    print_sequences(b);
    print_arrivals(b);
    if (b->stages != NULL) {
        print_stages("a token of the prompt", 0, &b->stages->prefill);
        print_stages("a decoded token", b->main.depth, &b->stages->decode);
    }
    print_sparsity(b);
    return EXIT_DONE;
}

/* Prints a table row in the form of docs/performance.md. */
int bench_print_markdown(const bench *b) {
    const bench_point *p = &b->main;
    out_print(
        "| model | threads | prefill %zu, tokens/s | decode, tokens/s | ms a token, p50 / p95 | "
        "MB a token | of the file | GB/s | of what the memory gives | peak MiB |\n"
        "|---|---|---|---|---|---|---|---|---|---|\n",
        p->n_prompt);
    out_print("| %s | %u | %.1f (± %.0f %%) | %.1f (± %.0f %%) | %.1f / %.1f | %.0f | %.0f %% | "
              "%.1f of %.1f | %.0f %% | %.0f |\n",
              b->l.info.name[0] != '\0' ? b->l.info.name : b->l.info.path, p->threads,
              series_median(&p->prefill_tps), series_spread(&p->prefill_tps),
              series_median(&p->decode_tps), series_spread(&p->decode_tps),
              series_median(&p->p50_ms), series_median(&p->p95_ms), mb(bench_token_bytes(b, p)),
              percent(bench_ratio((double)bench_token_bytes(b, p), (double)b->l.info.file_bytes)),
              bench_gbs(b, p), series_median(&p->read_gbs), percent(bench_fraction(b, p)),
              b->rss_mib);
    return EXIT_DONE;
}
