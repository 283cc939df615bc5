/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Abilities of the shipped model, on every instruction set of this machine: sums that were not in
 * its training data, questions of fact, a story. A wrong kernel fails these long before anyone
 * compares bits.
 */

#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/cpu.h"
#include "dispatch/select.h"
#include "tern/tern.h"

#define MODEL_FILE TERN_SOURCE_DIR "/models/tern-small.gguf"
#define SUMS_FILE TERN_SOURCE_DIR "/models/tern-small.heldout.txt"
#define FACTS_FILE TERN_SOURCE_DIR "/models/tern-small.facts.txt"

enum { MAX_TOKENS = 256, MAX_TEXT = 1024, SLOW_STEP = 10 };

typedef struct setup {
    tern_model *model;
    tern_session *session;
    tern_sampler *sampler;
    const tern_tokenizer *tokenizer;
} setup;

/* The answer as text, collected token by token. */
typedef struct answer {
    const tern_tokenizer *tokenizer;
    char text[MAX_TEXT];
    size_t size;
} answer;

static setup set_up(const char *isa) {
    setup s = {.model = NULL};
    tern_error err = {0};
    tern_model_info info;
    tern_model_params params = tern_model_params_default();
    const tern_sampler_params greedy = tern_sampler_params_default();
    params.isa = isa;
    check_case("%s", isa);
    if (tern_model_open(MODEL_FILE, &params, &s.model, &err) != TERN_OK)
        fail_msg("%s", err.message);
    tern_model_describe(s.model, &info);
    assert_int_equal(tern_session_new(s.model, NULL, &s.session, &err), TERN_OK);
    assert_int_equal(tern_sampler_new(&greedy, info.n_vocab, &s.sampler, &err), TERN_OK);
    assert_int_equal(tern_model_tokenizer(s.model, &s.tokenizer, &err), TERN_OK);
    return s;
}

static void tear_down(setup *s) {
    tern_sampler_free(&s->sampler);
    tern_session_free(&s->session);
    tern_model_free(&s->model);
}

static bool collect(int32_t token, double seconds, void *user) {
    answer *a = user;
    size_t size = 0;
    const char *bytes = tern_token_bytes(a->tokenizer, token, false, &size);
    (void)seconds;
    if (a->size + size >= sizeof a->text)
        return false;
    memcpy(a->text + a->size, bytes, size);
    a->size += size;
    a->text[a->size] = '\0';
    return true;
}

/* Greedy continuation of a prompt, from an empty context. */
static tern_end continue_text(const setup *s, const char *prompt, size_t max_tokens, answer *out) {
    tern_error err = {0};
    int32_t ids[MAX_TOKENS];
    size_t n = 0;
    tern_generation result;
    *out = (answer){.tokenizer = s->tokenizer};
    assert_int_equal(tern_session_rewind(s->session, 0, &err), TERN_OK);
    assert_int_equal(tern_tokenize(s->tokenizer, prompt, strlen(prompt), TERN_TOKENIZE_SPECIAL, ids,
                                   MAX_TOKENS, &n, &err),
                     TERN_OK);
    if (tern_generate(s->session, s->sampler, ids, n,
                      &(tern_generate_params){.max_tokens = max_tokens}, collect, out, &result,
                      &err) != TERN_OK)
        fail_msg("%s", err.message);
    return result.stop;
}

/* Runs `body` for every instruction set of this machine. */
static void for_each_isa(void (*body)(const setup *s, const char *isa)) {
    size_t count = 0;
    const tern_isa_info *isas = tern_isas(&count);
    for (size_t i = 0; i < count; i++) {
        if (!isas[i].built || (isas[i].needs & ~tern_cpu_features()) != 0) {
            print_message("%s: cannot run here\n", isas[i].name);
            continue;
        }
        setup s = set_up(isas[i].name);
        body(&s, isas[i].name);
        tear_down(&s);
    }
}

static bool adds_up(const setup *s, int a, int b) {
    char prompt[64];
    answer got;
    snprintf(prompt, sizeof prompt, "Q: What is %d+%d? A:", a, b);
    const tern_end stop = continue_text(s, prompt, 8, &got);
    char *end = got.text;
    const long sum = strtol(got.text, &end, 10);
    return stop == TERN_END_OF_TEXT && end != got.text && *end == '\0' && sum == a + b;
}

/* At least 99 of 100. The slow scalar rows only do every tenth pair. */
static void sums_body(const setup *s, const char *isa) {
    FILE *file = fopen(SUMS_FILE, "r");
    int a = 0;
    int b = 0;
    int right = 0;
    int total = 0;
    assert_non_null(file);
    const int step = strcmp(isa, "scalar") == 0 ? SLOW_STEP : 1;
    for (int line = 0; fscanf(file, "%d %d", &a, &b) == 2; line++) {
        if (line % step != 0)
            continue;
        assert_in_range(a, 0, 99);
        assert_in_range(b, 0, 99);
        right += adds_up(s, a, b);
        total++;
    }
    fclose(file);
    print_message("%s: %d of %d sums held out from training are right\n", isa, right, total);
    assert_true(total >= 90);
    assert_true(right * 100 >= total * 99);
}

static void facts_body(const setup *s, const char *isa) {
    FILE *file = fopen(FACTS_FILE, "r");
    char line[512];
    int total = 0;
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        char prompt[600];
        answer got;
        char *tab = strchr(line, '\t');
        assert_non_null(tab);
        *tab = '\0';
        tab[1 + strcspn(tab + 1, "\n")] = '\0';
        snprintf(prompt, sizeof prompt, "Q: %s A:", line);
        check_case("%s: %s", isa, prompt);
        const tern_end stop = continue_text(s, prompt, 24, &got);
        const char *text = got.text + (got.text[0] == ' ');
        if (stop != TERN_END_OF_TEXT || strcmp(text, tab + 1) != 0)
            fail_msg("%s: \"%s\" was answered \"%s\", not \"%s\"", isa, line, text, tab + 1);
        total++;
    }
    fclose(file);
    print_message("%s: %d questions of fact are answered right\n", isa, total);
    assert_true(total >= 36);
}

/* A hundred tokens of words without repetition: no run of eight words occurs twice. */
static void story_body(const setup *s, const char *isa) {
    answer got;
    const char *words[MAX_TOKENS];
    size_t n = 0;
    (void)continue_text(s, "Once upon a time", 100, &got);
    print_message("%s: Once upon a time%s\n", isa, got.text);
    for (char *word = strtok(got.text, " \n"); word != NULL && n < MAX_TOKENS;
         word = strtok(NULL, " \n"))
        words[n++] = word;
    assert_true(n >= 40);
    for (size_t i = 0; i + 8 <= n; i++)
        for (size_t j = i + 1; j + 8 <= n; j++) {
            size_t same = 0;
            while (same < 8 && strcmp(words[i + same], words[j + same]) == 0)
                same++;
            assert_true(same < 8);
        }
}

/* Text to ids and back, byte for byte. Scripts that the model never saw are spelled in bytes. */
static void round_trip_body(const setup *s, const char *isa) {
    static const char *const texts[] = {"Hello, world! \u4f60\u597d\u4e16\u754c",
                                        "The quick brown fox", " two  spaces\n\ttab", ""};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tern_error err = {0};
        int32_t ids[MAX_TOKENS];
        char text[MAX_TEXT];
        size_t n = 0;
        size_t size = 0;
        check_case("%s: %s", isa, texts[i]);
        assert_int_equal(
            tern_tokenize(s->tokenizer, texts[i], strlen(texts[i]), 0, ids, MAX_TOKENS, &n, &err),
            TERN_OK);
        assert_int_equal(
            tern_detokenize(s->tokenizer, ids, n, true, text, sizeof text, &size, &err), TERN_OK);
        assert_int_equal(size, strlen(texts[i]));
        assert_memory_equal(text, texts[i], size);
    }
}

static void test_round_trips(void **state) {
    (void)state;
    for_each_isa(round_trip_body);
}

static void test_sums(void **state) {
    (void)state;
    for_each_isa(sums_body);
}

static void test_facts(void **state) {
    (void)state;
    for_each_isa(facts_body);
}

static void test_story(void **state) {
    (void)state;
    for_each_isa(story_body);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_story),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
