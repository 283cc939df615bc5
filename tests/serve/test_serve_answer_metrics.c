/* SPDX-License-Identifier: Apache-2.0 */
/* A server's figures about its answers: the bucket of a duration, the page that shows it, and from
 * where to where the durations of an answer are measured. */
#include <math.h>
#include <string.h>

#include "serve/work/answer_metrics.h"
#include "tests/support/check.h"

static uint64_t all_of(const histogram *h) {
    uint64_t n = 0;
    for (size_t i = 0; i <= HISTOGRAM_BOUNDS; i++)
        n += h->counts[i];
    return n;
}

static bool has_line(const text *page, const char *line) {
    const char *at = page->bytes;
    const size_t size = strlen(line);
    while ((at = strstr(at, line)) != NULL && !(at == page->bytes || at[-1] == '\n'))
        at++;
    return at != NULL && at[size] == '\n';
}

/* A bucket includes its own bound, and `+Inf` also holds durations above the last bound. */
static void test_buckets(void **state) {
    static const double seconds[] = {0.0, 0.0005, 0.000501, 0.1, 1000.0, 1000.5, 86400.0};
    static const char *const lines[] = {
        "t_bucket{le=\"0.0005\"} 2", "t_bucket{le=\"0.001\"} 3",
        "t_bucket{le=\"0.05\"} 3",   "t_bucket{le=\"0.1\"} 4",
        "t_bucket{le=\"500\"} 4",    "t_bucket{le=\"1000\"} 5",
        "t_bucket{le=\"+Inf\"} 7",   "t_count 7",
    };
    histogram h = {.sum = 0.0};
    text page = {0};
    double sum = 0.0;
    (void)state;
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        histogram_add(&h, seconds[i]);
        sum += seconds[i];
    }
    assert_true(h.sum == sum);
    assert_int_equal(h.counts[HISTOGRAM_BOUNDS], 2);
    histogram_write(&h, "t", "", &page);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!has_line(&page, lines[i]))
            check_fail("no line %s in\n%s", lines[i], page.bytes);
    text_free(&page);
}

/* No token precedes the first token of an answer. */
static void test_tokens(void **state) {
    answer_metrics f = {.jobs = 0};
    (void)state;
    answer_metrics_note_token(&f, 0.0, 2.0);
    answer_metrics_note_token(&f, 2.0, 2.25);
    answer_metrics_note_token(&f, 2.25, 3.0);
    assert_int_equal(f.generated_tokens, 3);
    assert_int_equal(all_of(&f.first_token), 1);
    assert_true(f.first_token.sum == 2.0);
    assert_int_equal(all_of(&f.between_tokens), 2);
    assert_true(f.between_tokens.sum == 1.0);
}

static void test_replays(void **state) {
    answer_metrics f = {.jobs = 0};
    (void)state;
    answer_metrics_note_replay(&f, true);
    answer_metrics_note_replay(&f, false);
    answer_metrics_note_replay(&f, true);
    assert_int_equal(f.replays, 3);
    assert_int_equal(f.mismatches, 1);
}

static tern_event end_of(tern_end end, double queued, double first, double whole) {
    return (tern_event){.kind = TERN_EVENT_END,
                        .end = end,
                        .figures = {.n_prompt = 100,
                                    .n_shared = 64,
                                    .n_guessed = 9,
                                    .n_guessed_right = 5,
                                    .queued_seconds = queued,
                                    .first_token_seconds = first,
                                    .seconds = whole}};
}

/* An answer, an answer that ended before its first token, and one that left the queue. */
static void test_ends(void **state) {
    answer_metrics f = {.jobs = 0};
    (void)state;
    const tern_event answer = end_of(TERN_END_LENGTH, 1.0, 3.0, 10.0);
    const tern_event early = end_of(TERN_END_CANCELLED, 2.0, 0.0, 4.0);
    const tern_event queued = end_of(TERN_END_DEADLINE, 0.0, 0.0, 0.5);
    answer_metrics_note_end(&f, &answer);
    answer_metrics_note_end(&f, &early);
    answer_metrics_note_end(&f, &queued);
    assert_int_equal(f.ends[TERN_END_LENGTH], 1);
    assert_int_equal(f.ends[TERN_END_CANCELLED], 1);
    assert_int_equal(f.ends[TERN_END_DEADLINE], 1);
    assert_int_equal(f.prompt_tokens, 300);
    assert_int_equal(f.shared_tokens, 192);
    assert_int_equal(f.guessed_tokens, 27);
    assert_int_equal(f.right_guesses, 15);
    assert_true(all_of(&f.queue) == 2 && f.queue.sum == 3.0);
    assert_true(all_of(&f.prefill) == 1 && f.prefill.sum == 2.0);
    assert_true(all_of(&f.decode) == 1 && f.decode.sum == 7.0);
    assert_true(all_of(&f.whole) == 3 && f.whole.sum == 14.5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_replays),
        cmocka_unit_test(test_ends),
    };
    return cmocka_run_group_tests_name("figures of a server", tests, NULL, NULL);
}
