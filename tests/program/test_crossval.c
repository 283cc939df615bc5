/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of a cross-validation, computed by hand, and refused references. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/crossval/compare.h"
#include "tools/crossval/reference.h"
#include "tools/crossval/run.h"

static void assert_near(double a, double b) {
    assert_true(fabs(a - b) <= 1e-12 * fmax(1.0, fabs(b)));
}

static void test_vectors(void **state) {
    (void)state;
    const float r[] = {3.0F, 4.0F};
    const float o[] = {4.0F, 3.0F};
    const pair_figures f = compare_vectors(r, o, 2);
    assert_near(f.cosine, 24.0 / 25.0);
    assert_near(f.max_abs, 1.0);
    assert_near(f.squares, 2.0);
    assert_near(f.deviation, 0.5); /* around 3.5 */
    const float zero[] = {0.0F, 0.0F};
    assert_near(compare_vectors(zero, zero, 2).cosine, 1.0);
    assert_near(compare_vectors(zero, o, 2).cosine, 0.0);
    const float broken[] = {NAN, 3.0F};
    assert_near(compare_vectors(r, broken, 2).cosine, 0.0);
}

static void test_kl(void **state) {
    (void)state;
    const float r[] = {0.0F, 0.0F};
    const float o[] = {(float)log(3.0), 0.0F}; /* 3/4, 1/4 */
    assert_near(compare_kl(r, r, 2), 0.0);
    const double expected = 0.5 * log(0.5 / 0.75) + 0.5 * log(0.5 / 0.25);
    assert_true(fabs(compare_kl(r, o, 2) - expected) < 1e-7); /* ln 3 as a float */
}

static void test_margin(void **state) {
    (void)state;
    int32_t best = -1;
    const float x[] = {1.0F, 5.0F, 4.5F, 5.0F};
    assert_near(compare_margin(x, 4, &best), 0.0);
    assert_int_equal(best, 1);
    assert_near(compare_margin(x, 3, &best), 0.5);
}

static void test_sums(void **state) {
    (void)state;
    const float r[] = {3.0F, 4.0F};
    const float o[] = {4.0F, 3.0F};
    sum_figures s = {0};
    assert_near(sum_cosine_mean(&s), 1.0);
    const pair_figures same = compare_vectors(r, r, 2);
    const pair_figures other = compare_vectors(r, o, 2);
    sum_add(&s, &same);
    sum_add(&s, &other);
    assert_near(sum_cosine_mean(&s), 49.0 / 50.0);
    assert_near(s.cosine_min, 24.0 / 25.0);
    assert_near(sum_rms(&s), sqrt(2.0 / 4.0));
    assert_near(sum_scaled_mse(&s), 2.0);
}

/* A single difference that is not a near-tie fails, and so does one bad position among good
 * ones. */
static void test_judgement(void **state) {
    (void)state;
    greedy_difference d = {.step = 3, .near_tie = true};
    sum_figures layer = {.pairs = 1, .cosine_min = 1.0, .cosine_sum = 1.0};
    case_result r = {.logits = {.pairs = 2, .cosine_min = 0.995, .cosine_sum = 1.995},
                     .steps = 8,
                     .differences = &d,
                     .n_differences = 1,
                     .n_layer = 1,
                     .keys = &layer,
                     .values = &layer};
    assert_true(crossval_passed(&r, 0.99));
    assert_int_equal(crossval_equal_steps(&r), 3);
    assert_false(crossval_passed(&r, 0.998)); /* mean 0.9975 */
    r.text_told = true;
    assert_false(crossval_passed(&r, 0.99));
    r.text_equal = true;
    assert_true(crossval_passed(&r, 0.99));
    layer.cosine_min = layer.cosine_sum = 0.98;
    assert_false(crossval_passed(&r, 0.99));
    layer.cosine_min = layer.cosine_sum = 1.0;
    d.near_tie = false;
    assert_false(crossval_passed(&r, 0.99));
    d.near_tie = true;
    r.logits = (sum_figures){.pairs = 100, .cosine_min = 0.89, .cosine_sum = 99.89};
    assert_false(crossval_passed(&r, 0.99)); /* below 0.9 */
}

/* ---- references ------------------------------------------------------------------------------ */

static const char complete[] =
    "{\"tern_reference\": 1, \"engine\": {\"name\": \"e\", \"version\": \"2\"},\n"
    " \"model\": {\"sha256\": \"ab\"}, \"cases\": [{\"name\": \"c\", \"text\": \"hi\",\n"
    " \"tokens\": [1, 2], \"greedy\": [3, 4], \"margins\": [0.5, 1], \"logits\": \"c.f32\",\n"
    " \"first\": 1, \"some\": [{\"position\": 0, \"ids\": [7], \"logits\": [-1.5]},\n"
    " {\"position\": 2, \"ids\": [8, 9], \"logits\": [1, 2]}], \"keys\": \"k\", \"values\": "
    "\"v\"}]}";

static void test_reference(void **state) {
    (void)state;
    reference *r = NULL;
    tern_error err = {0};
    assert_int_equal(reference_parse("a/b/r.json", complete, strlen(complete), &r, &err), TERN_OK);
    assert_string_equal(r->folder, "a/b");
    assert_string_equal(r->engine, "e");
    assert_string_equal(r->settings, "");
    assert_string_equal(r->sha256, "ab");
    assert_int_equal(r->n_cases, 1);
    const reference_case *c = r->cases;
    assert_int_equal(c->n_tokens, 2);
    assert_int_equal(c->tokens[1], 2);
    assert_int_equal(c->n_greedy, 2);
    assert_int_equal(crossval_positions(c), 3);
    assert_true(c->margins[0] == 0.5 && c->margins[1] == 1.0);
    assert_int_equal(c->first, 1);
    assert_int_equal(c->n_rows, 2);
    assert_int_equal(c->rows[1].position, 2);
    assert_true(c->rows[0].logits[0] == -1.5F);
    assert_string_equal(c->values, "v");
    reference_free(&r);
    assert_null(r);
}

static void assert_refused_text(const char *json, const char *message) {
    reference *r = NULL;
    tern_error err = {0};
    const tern_status status = reference_parse("r.json", json, strlen(json), &r, &err);
    assert_true(status == TERN_ERR_ARG || status == TERN_ERR_JSON);
    assert_null(r);
    if (strstr(err.message, message) == NULL)
        fail_msg("%s: %s", json, err.message);
}

/* Replaces `from` in the complete reference by `to`. The result must be refused. */
static void assert_refused(const char *from, const char *to, const char *message) {
    char json[1024];
    const char *at = strstr(complete, from);
    assert_non_null(at);
    (void)snprintf(json, sizeof json, "%.*s%s%s", (int)(at - complete), complete, to,
                   at + strlen(from));
    assert_refused_text(json, message);
}

static void test_refusals(void **state) {
    (void)state;
    assert_refused("{\"tern_reference\": 1", "{\"tern_reference\": 2",
                   "tern_reference is 2, not 1");
    assert_refused("{\"tern_reference\": 1", "{\"tern\": 1", "tern_reference is 0");
    assert_refused("\"v\"}]}", "\"v\"}]", "line 5");
    assert_refused_text("{\"tern_reference\": 1, \"cases\": []}",
                        "cases is not a list of 1 to 4096");
    assert_refused("\"tokens\": [1, 2]", "\"tokens\": []", "at least one id");
    assert_refused("\"tokens\": [1, 2]", "\"tokens\": 5", "c: tokens is not a list");
    assert_refused("\"tokens\": [1, 2]", "\"token\": [1, 2]", "c: 'token' is not a key");
    assert_refused("\"tokens\": [1, 2]", "\"tokens\": [1, -2]", "list of token ids");
    assert_refused("\"tokens\": [1, 2]", "\"tokens\": [1, 4294967297]", "list of token ids");
    assert_refused("\"tokens\": [1, 2]", "\"tokens\": [1, 2.5]", "list of token ids");
    assert_refused("\"margins\": [0.5, 1]", "\"margins\": [0.5]", "1 numbers for 2 tokens");
    assert_refused("\"margins\": [0.5, 1]", "\"margins\": [0.5, \"1\"]", "list of numbers");
    assert_refused("\"first\": 1", "\"first\": -1", "first is not a position");
    assert_refused("\"first\": 1", "\"first\": \"1\"", "first is not a position");
    assert_refused("\"position\": 0, ", "", "position is not there");
    assert_refused("\"position\": 0, ", "\"position\": 2, ", "ordered by position");
    assert_refused("\"ids\": [8, 9]", "\"ids\": [8]", "2 numbers for 1 tokens");
    assert_refused("[-1.5]", "[1e300]", "range of float");
    assert_refused("\"c.f32\"", "\"../c.f32\"", "plain name");
    assert_refused("\"c.f32\"", "\"a/c.f32\"", "plain name");
    assert_refused("\"c.f32\"", "\"\"", "plain name");
    assert_refused("\"c.f32\"", "7", "logits is not text");
    assert_refused("\"text\": \"hi\"", "\"text\": \"hi\", \"text\": \"ho\"",
                   "\"text\" occurs twice");
    assert_refused("\"name\": \"e\"", "\"name\": [\"e\"]", "name is not text");
}

/* An unknown name would silently compare nothing, so it is reported with its place. */
static void test_unknown_keys(void **state) {
    (void)state;
    assert_refused("\"greedy\"", "\"greedi\"", "r.json: c: 'greedi' is not a key");
    assert_refused("\"name\": \"c\", \"text\"", "\"txt\"", "r.json: case 1: 'txt' is not a key");
    assert_refused("\"ids\": [7]", "\"id\": 1, \"ids\": [7]", "r.json: c: some: 'id' is not a key");
    assert_refused("\"version\"", "\"versions\"", "r.json: engine: 'versions' is not a key");
    assert_refused("{\"sha256\"", "{\"sha\"", "r.json: model: 'sha' is not a key");
    assert_refused(" \"model\"", " \"models\"", "r.json: 'models' is not a key");
    assert_refused("{\"name\": \"e\", \"version\": \"2\"}", "\"e\"", "engine is not an object");
    assert_refused("[{\"name\"", "[7, {\"name\"", "case 1: a case is not an object");
    assert_refused("[{\"position\"", "[1, {\"position\"", "c: some is not an object");
}

/* Entries that compare nothing by themselves, and a case with no entries left. */
static void test_nothing_to_compare(void **state) {
    (void)state;
    assert_refused("\"greedy\": [3, 4], ", "", "margins has 2 numbers for 0 tokens");
    assert_refused("\"text\": \"hi\"", "\"special\": true",
                   "special without text compares nothing");
    assert_refused("\"text\": \"hi\"", "\"text\": \"hi\", \"special\": 1",
                   "special is not true or");
    assert_refused("\"logits\": \"c.f32\",", "", "c: first without logits compares nothing");
    assert_refused(", \"values\": \"v\"", "", "c: keys without values compares nothing");
    assert_refused("\"keys\": \"k\", ", "", "c: values without keys compares nothing");
    assert_refused_text("{\"tern_reference\": 1, \"cases\": [{\"tokens\": [1]}]}",
                        "r.json: case 1: nothing to compare");
    assert_refused_text("{\"tern_reference\": 1, \"cases\": [{\"name\": \"a\", \"tokens\": [1],"
                        " \"greedy\": [], \"some\": []}]}",
                        "r.json: a: nothing to compare");
    const case_result nothing = {0};
    assert_false(crossval_passed(&nothing, 0.99));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_kl),
        cmocka_unit_test(test_margin),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_judgement),
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_unknown_keys),
        cmocka_unit_test(test_nothing_to_compare),
    };
    return cmocka_run_group_tests_name("crossval", tests, NULL, NULL);
}
