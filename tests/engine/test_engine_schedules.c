/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random schedules (tools/eval/schedules.h) of tiny models. Every sequence must give the same
 * results as alone.
 *
 * TERN_TEST_SCHEDULES sets the number of schedules, and TERN_TEST_FIRST the first one (the number
 * is its seed, so a stopped run goes on from the last number it printed). TERN_TEST_ISA sets the
 * instruction set on which they run together (otherwise each in turn), and TERN_TEST_MODEL a model
 * file to use instead of the tiny ones.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"
#include "tests/support/tiny_model.h"
#include "tools/eval/schedules.h"

enum { MODELS = 6, ISAS = 16 };

/* The last two have windows, in some layers and in all. */
static const char *const presets[MODELS] = {"bitnet-tiny",   "qwen3-tiny",  "llama-tiny-f16",
                                            "falcon-e-tiny", "gemma3-tiny", "mistral-tiny"};

typedef struct models {
    tern_model *open[MODELS][ISAS];
    const char *isas[ISAS];
    const char *path; /* NULL: the presets */
} models;

static tern_model *open_file(const char *path, const char *isa) {
    const tern_model_params params = {.isa = isa, .threads = 2};
    tern_error err = {0};
    tern_model *model = NULL;
    if (tern_model_open(path, &params, &model, &err) != TERN_OK)
        check_fail("%s", err.message);
    return model;
}

static const tern_model *model_of(void *user, uint64_t number, size_t isa, tern_error *err) {
    models *m = user;
    const size_t preset = number % MODELS;
    tern_model **model = &m->open[m->path != NULL ? 0 : preset][isa];
    (void)err; /* a model that does not open fails the test */
    if (*model == NULL)
        *model = m->path != NULL ? open_file(m->path, m->isas[isa])
                                 : tiny_open(presets[preset], m->isas[isa]);
    return *model;
}

static void find_models(models *m, schedules *s) {
    const char *only = getenv("TERN_TEST_ISA");
    m->path = getenv("TERN_TEST_MODEL");
    s->model = model_of;
    s->user = m;
    s->n_isas = tiny_isas(m->isas, ISAS);
    s->only = only != NULL ? 0 : s->n_isas;
    while (only != NULL && s->only < s->n_isas && strcmp(m->isas[s->only], only) != 0)
        s->only++;
    if (only != NULL && s->only == s->n_isas)
        check_fail("the instruction set %s does not run here", only);
}

static void close_models(models *m) {
    for (size_t i = 0; i < MODELS; i++)
        for (size_t j = 0; j < ISAS; j++)
            tern_model_free(&m->open[i][j]);
}

static uint64_t number_of(const char *variable, uint64_t otherwise) {
    const char *text = getenv(variable);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void test_schedules(void **state) {
    (void)state;
    static models m;
    static schedules s;
    const uint64_t first = number_of("TERN_TEST_FIRST", 0);
    const uint64_t n = number_of("TERN_TEST_SCHEDULES", 24);
    find_models(&m, &s);
    for (uint64_t i = first; i < first + n; i++) {
        if (i > first && i % 100 == 0)
            print_message("schedules before %llu\n", (unsigned long long)i);
        if (!schedules_run(&s, i))
            check_fail("%s", s.message);
    }
    const schedules_totals *t = &s.totals;
    print_message("%llu schedules: %llu sequences, %llu tokens, %llu cancelled, %llu tokens "
                  "shared, %llu set aside, %llu guesses right\n",
                  (unsigned long long)n, (unsigned long long)t->sequences,
                  (unsigned long long)t->tokens, (unsigned long long)t->cancelled,
                  (unsigned long long)t->shared_tokens, (unsigned long long)t->set_aside,
                  (unsigned long long)t->guesses_right);
    if (n >= 24)
        assert_true(t->cancelled > 0 && t->shared_tokens > 0 && t->set_aside > 0 &&
                    t->guesses_right > 0);
    close_models(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_schedules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
