/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/work/answer_metrics.h"

#include <inttypes.h>

/* Three bounds a decade, from a token of a small model to a prompt that takes minutes. */
static const double bounds[HISTOGRAM_BOUNDS] = {0.0005, 0.001, 0.0025, 0.005, 0.01,  0.025, 0.05,
                                                0.1,    0.25,  0.5,    1.0,   2.5,   5.0,   10.0,
                                                25.0,   50.0,  100.0,  250.0, 500.0, 1000.0};

void histogram_add(histogram *h, double seconds) {
    size_t i = 0;
    while (i < HISTOGRAM_BOUNDS && seconds > bounds[i])
        i++;
    h->counts[i]++;
    h->sum += seconds;
}

void histogram_write(const histogram *h, const char *name, const char *labels, text *out) {
    const bool labelled = labels[0] != '\0';
    const char *open = labelled ? "{" : "", *close = labelled ? "}" : "",
               *comma = labelled ? "," : "";
    uint64_t n = 0;
    for (size_t i = 0; i < HISTOGRAM_BOUNDS; i++) {
        n += h->counts[i];
        text_print(out, "%s_bucket{%s%sle=\"%g\"} %" PRIu64 "\n", name, labels, comma, bounds[i],
                   n);
    }
    n += h->counts[HISTOGRAM_BOUNDS];
    text_print(out, "%s_bucket{%s%sle=\"+Inf\"} %" PRIu64 "\n", name, labels, comma, n);
    text_print(out, "%s_sum%s%s%s %.17g\n%s_count%s%s%s %" PRIu64 "\n", name, open, labels, close,
               h->sum, name, open, labels, close, n);
}

void answer_metrics_note_token(answer_metrics *f, double before, double seconds) {
    f->generated_tokens++;
    if (before > 0.0)
        histogram_add(&f->between_tokens, seconds - before);
    else
        histogram_add(&f->first_token, seconds);
}

void answer_metrics_note_replay(answer_metrics *f, bool same) {
    f->replays++;
    f->mismatches += !same;
}

void answer_metrics_note_end(answer_metrics *f, const tern_event *e) {
    const tern_branch_figures *b = &e->figures;
    f->ends[e->end]++;
    f->prompt_tokens += b->n_prompt;
    f->shared_tokens += b->n_shared;
    f->guessed_tokens += b->n_guessed;
    f->right_guesses += b->n_guessed_right;
    if (b->queued_seconds > 0.0) /* 0: it ended before it was admitted */
        histogram_add(&f->queue, b->queued_seconds);
    histogram_add(&f->whole, b->seconds);
    if (b->first_token_seconds > 0.0) {
        histogram_add(&f->prefill, b->first_token_seconds - b->queued_seconds);
        histogram_add(&f->decode, b->seconds - b->first_token_seconds);
    }
}
