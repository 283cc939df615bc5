/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: flags, environment, defaults, mistakes and their hints, help texts. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/program/options_case.h"
#include "tools/cli/near_word.h"

/* ---- flags ----------------------------------------------------------------------------------- */

static void test_defaults(void **state) {
    (void)state;
    const options o = good(COMMAND_RUN, "");
    assert_null(options_text(&o, OPT_MODEL));
    assert_null(options_text(&o, OPT_PROMPT));
    assert_null(options_text(&o, OPT_ISA));
    assert_int_equal(options_integer(&o, OPT_MAX_TOKENS), 128);
    assert_int_equal(options_integer(&o, OPT_SEED), 42);
    assert_int_equal(options_integer(&o, OPT_TOP_K), 0);
    assert_true(options_real(&o, OPT_TEMPERATURE) == 0.0);
    assert_true(options_real(&o, OPT_TOP_P) == 1.0);
    assert_string_equal(options_text(&o, OPT_KV), "f16");
    assert_false(options_switch(&o, OPT_JSON));
    assert_false(options_given(&o, OPT_SEED));
    const options b = good(COMMAND_BENCH, "");
    assert_int_equal(options_integer(&b, OPT_BENCH_PROMPT), 512);
    assert_int_equal(options_integer(&b, OPT_BENCH_TOKENS), 64);
    assert_false(options_given(&b, OPT_DEPTH));
}

static void test_flags(void **state) {
    (void)state;
    const options o = good(COMMAND_RUN, "-m a.gguf --prompt Hello_you -n5 --temp=0.5 --top-k 40 "
                                        "--top-p=0.9 --seed 18446744073709551615 --json --kv f32");
    assert_string_equal(options_text(&o, OPT_MODEL), "a.gguf");
    assert_string_equal(options_text(&o, OPT_PROMPT), "Hello you");
    assert_int_equal(options_integer(&o, OPT_MAX_TOKENS), 5);
    assert_true(options_real(&o, OPT_TEMPERATURE) == 0.5);
    assert_true(options_real(&o, OPT_TOP_P) == 0.9);
    assert_int_equal(options_integer(&o, OPT_TOP_K), 40);
    assert_true(options_integer(&o, OPT_SEED) == UINT64_MAX);
    assert_true(options_switch(&o, OPT_JSON) && options_given(&o, OPT_SEED));
    assert_string_equal(options_text(&o, OPT_KV), "f32");
}

static void test_aliases(void **state) {
    (void)state;
    const char *lines[] = {"--max-new 7", "--max-tokens 7", "--max-new-tokens 7", "-n 7", "-n7"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const options o = good(COMMAND_RUN, lines[i]);
        assert_int_equal(options_integer(&o, OPT_MAX_TOKENS), 7);
    }
    const options t = good(COMMAND_RUN, "--temperature 1.25");
    assert_true(options_real(&t, OPT_TEMPERATURE) == 1.25);
    const options m = good(COMMAND_RUN, "--model x");
    assert_string_equal(options_text(&m, OPT_MODEL), "x");
}

static void test_letters_belong_to_commands(void **state) {
    (void)state;
    const options run = good(COMMAND_RUN, "-p 512");
    assert_string_equal(options_text(&run, OPT_PROMPT), "512");
    const options bench = good(COMMAND_BENCH, "-p 256 -n 3");
    assert_int_equal(options_integer(&bench, OPT_BENCH_PROMPT), 256);
    assert_int_equal(options_integer(&bench, OPT_BENCH_TOKENS), 3);
    bad(COMMAND_BENCH, "-p text", "an integer");
}

static void test_last_flag_wins_and_values_may_look_like_flags(void **state) {
    (void)state;
    const options o = good(COMMAND_RUN, "-n 1 -n 2 -p -x --model=--json");
    assert_int_equal(options_integer(&o, OPT_MAX_TOKENS), 2);
    assert_string_equal(options_text(&o, OPT_PROMPT), "-x");
    assert_string_equal(options_text(&o, OPT_MODEL), "--json");
    const options dash = good(COMMAND_RUN, "-p -");
    assert_string_equal(options_text(&dash, OPT_PROMPT), "-");
    const options off = good(COMMAND_RUN, "--json --json=0");
    assert_false(options_switch(&off, OPT_JSON));
}

static void test_operands(void **state) {
    (void)state;
    const options o = good(COMMAND_VERIFY, "--json r.json --threads 2");
    assert_int_equal(o.n_operands, 1);
    assert_string_equal(o.operands[0], "r.json");
    const options dashed = good(COMMAND_VERIFY, "-- --json");
    assert_string_equal(dashed.operands[0], "--json");
    assert_false(options_switch(&dashed, OPT_JSON));
    bad(COMMAND_VERIFY, "", "missing argument: RECEIPT");
    bad(COMMAND_INSPECT, "a b", "unexpected argument 'b'");
}

/* Positional arguments are the model, then the prompt (or text), unless a flag gave them. */
static void test_places(void **state) {
    (void)state;
    set("TERN_MODEL", "variable.gguf");
    static const struct {
        command_id command;
        const char *line, *model, *second;
    } cases[] = {
        {COMMAND_RUN, "m.gguf Hello_you", "m.gguf", "Hello you"},
        {COMMAND_RUN, "-m m.gguf Hello", "m.gguf", "Hello"},
        {COMMAND_RUN, "Hello --model=m.gguf", "m.gguf", "Hello"},
        {COMMAND_RUN, "-p Hello m.gguf -n 3", "m.gguf", "Hello"},
        {COMMAND_RUN, "m.gguf -- -5", "m.gguf", "-5"},
        {COMMAND_RUN, "m.gguf", "m.gguf", NULL},
        {COMMAND_RUN, "", "variable.gguf", NULL},
        {COMMAND_LOGITS, "m.gguf Hello", "m.gguf", "Hello"},
        {COMMAND_TOKENIZE, "m.gguf Hello", "m.gguf", "Hello"},
        {COMMAND_PERPLEXITY, "m.gguf t.txt", "m.gguf", "t.txt"},
        {COMMAND_CROSSVAL, "m.gguf r.json", "m.gguf", "r.json"},
        {COMMAND_CHAT, "m.gguf", "m.gguf", NULL},
        {COMMAND_BENCH, "m.gguf -p 8", "m.gguf", NULL},
        {COMMAND_INSPECT, "--json m.gguf", "m.gguf", NULL},
        {COMMAND_KERNELS, "m.gguf", "m.gguf", NULL},
        {COMMAND_TUNE, "m.gguf", "m.gguf", NULL},
        {COMMAND_VERIFY_DETERMINISM, "m.gguf", "m.gguf", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const options o = good(cases[i].command, cases[i].line);
        const option_id second = cases[i].command == COMMAND_PERPLEXITY ? OPT_FILE
                                 : cases[i].command == COMMAND_CROSSVAL ? OPT_REFERENCE
                                                                        : OPT_PROMPT;
        assert_string_equal(options_text(&o, OPT_MODEL), cases[i].model);
        assert_int_equal(options_given(&o, second), cases[i].second != NULL);
        if (cases[i].second != NULL)
            assert_string_equal(options_text(&o, second), cases[i].second);
        assert_int_equal(o.n_operands, 0);
    }
    bad(COMMAND_RUN, "-m a -p b c", "unexpected argument 'c'");
    bad(COMMAND_RUN, "-m a b c", "unexpected argument 'c'");
    bad(COMMAND_CHAT, "a b", "unexpected argument 'b'");
    bad(COMMAND_BENCH, "-m a b", "unexpected argument 'b'");
}

/* ---- mistakes -------------------------------------------------------------------------------- */

static void test_bad_values(void **state) {
    (void)state;
    const struct {
        const char *line, *part;
    } cases[] = {
        {"-n x", "-n wants an integer from 0 to 100000000, not 'x'"},
        {"-n -1", "not '-1'"},
        {"-n 1.5", "not '1.5'"},
        {"-n 100000001", "not '100000001'"},
        {"-n 99999999999999999999999", "not '9999"},
        {"--seed 18446744073709551616", "--seed wants an integer"},
        {"--seed=", "not ''"},
        {"--temp -0.1", "--temp wants a number from 0 to 1000, not '-0.1'"},
        {"--temp nan", "not 'nan'"},
        {"--temp inf", "not 'inf'"},
        {"--temp 0x1", "not '0x1'"},
        {"--temp 1,5", "not '1,5'"},
        {"--temp 1e", "not '1e'"},
        {"--temp 1e999", "not '1e999'"},
        {"--top-p 0", "--top-p wants"},
        {"--top-p 1.01", "not '1.01'"},
        {"--kv f64", "--kv wants one of: f16 f32 q8_0 int8, not 'f64'"},
        {"--kv f", "not 'f'"},
        {"--json=maybe", "--json wants 1 or 0, not 'maybe'"},
        {"--threads 1025", "--threads wants an integer from 0 to 1024"},
        {"-n", "option '-n' needs a value: N"},
        {"--model", "option '--model' needs a value: FILE"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        bad(COMMAND_RUN, cases[i].line, cases[i].part);
}

static void test_unknown_flags_get_a_hint(void **state) {
    (void)state;
    bad(COMMAND_RUN, "-model m.gguf", "unknown option '-model', did you mean --model?");
    bad(COMMAND_RUN, "-threads=2", "unknown option '-threads', did you mean --threads?");
    bad(COMMAND_CHAT, "-p hello", "unknown option '-p', which `tern run` has");
    bad(COMMAND_CHAT, "--prompt=hello", "unknown option '--prompt', which `tern run` has");
    bad(COMMAND_RUN, "--preset x", "'--preset', which `tern plan` has; see `tern run --help`");
    bad(COMMAND_RUN, "--temprature 1",
        "unknown option '--temprature', did you mean --temperature?");
    bad(COMMAND_RUN, "--topk=3", "unknown option '--topk', did you mean --top-k?");
    bad(COMMAND_RUN, "--sede 3", "did you mean --seed?");
    bad(COMMAND_RUN, "--frobnicate", "unknown option '--frobnicate', see `tern run --help`");
    bad(COMMAND_RUN, "-Q", "unknown option '-Q', see `tern run --help`");
    bad(COMMAND_RUN, "-vh", "unknown option '-vh'");
    bad(COMMAND_RUN, "--sha256", "unknown option '--sha256'"); /* an option of another command */
    bad(COMMAND_RUN, "--mod\nel x", "'--mod?el', did you mean --model?");
    bad(COMMAND_RUN,
        "--aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "unknown option");
}

static void test_unknown_commands_get_a_hint(void **state) {
    (void)state;
    command_id command;
    assert_true(command_find("bench", &command));
    assert_int_equal(command, COMMAND_BENCH);
    assert_false(command_find("benhc", &command));
    assert_string_equal(command_nearest("benhc"), "bench");
    assert_string_equal(command_nearest("kernel"), "kernels");
    assert_null(command_nearest("frobnicate"));
    assert_null(command_nearest(""));
}

static void test_word_distance(void **state) {
    (void)state;
    assert_int_equal(word_distance("", ""), 0);
    assert_int_equal(word_distance("abc", ""), 3);
    assert_int_equal(word_distance("abc", "abc"), 0);
    assert_int_equal(word_distance("abc", "acb"), 1);
    assert_int_equal(word_distance("kitten", "sitting"), 3);
    assert_int_equal(word_distance("ca", "abc"), 3); /* restricted: no letter is edited twice */
}

/* ---- repeated options, and options without effect -------------------------------------------- */

static void test_repeated(void **state) {
    (void)state;
    const options o = good(COMMAND_RUN, "--stop a --stop-token 3 --stop=b --stop-token 1");
    assert_int_equal(options_count(&o, OPT_STOP), 2);
    assert_string_equal(options_nth(&o, OPT_STOP, 0)->text, "a");
    assert_string_equal(options_nth(&o, OPT_STOP, 1)->text, "b");
    assert_null(options_nth(&o, OPT_STOP, 2));
    assert_int_equal(options_count(&o, OPT_STOP_TOKEN), 2);
    assert_int_equal(options_nth(&o, OPT_STOP_TOKEN, 1)->integer, 1);
    assert_int_equal(options_count(&o, OPT_LOGIT_BIAS), 0);
    bad(COMMAND_RUN, "--stop-token 3 --stop-token x", "--stop-token wants");
    set("TERN_STOP", "c");
    const options flag = good(COMMAND_RUN, "--stop a");
    assert_int_equal(options_count(&flag, OPT_STOP), 1); /* all flags win over the variable */
    const options environment = good(COMMAND_RUN, "");
    assert_string_equal(options_nth(&environment, OPT_STOP, 0)->text, "c");
}

static void test_options_without_effect(void **state) {
    (void)state;
    const options none = good(COMMAND_RUN, "-n 5");
    check_remarks(&none, "");
    const options flags = good(COMMAND_RUN, "-ngl 99 --no-mmap -n5");
    assert_int_equal(options_integer(&flags, OPT_MAX_TOKENS), 5);
    check_remarks(&flags, "tern: --n-gpu-layers has no effect: --device cuda takes all layers\n"
                          "tern: --no-mmap has no effect: files are always mapped\n");
    bad(COMMAND_RUN, "-ngl", "needs a value");
    bad(COMMAND_RUN, "-ngl many", "-ngl wants an integer");
    bad(COMMAND_RUN, "--precision int3w", "--precision wants one of");
    bad(COMMAND_SYNTH, "-ngl 4", "unknown option '-ngl'");
    set("PRECISION", "int4w");
    const options hints = good(COMMAND_RUN, "");
    check_remarks(&hints, "");
    const options loud = good(COMMAND_RUN, "-v");
    check_remarks(&loud, "tern: PRECISION has no effect: the model's file decides how its weights "
                         "are stored\n");
    set("IE_PRECISION", "int3w");
    bad(COMMAND_RUN, "", "IE_PRECISION wants one of");
}

/* --precision fp32 selects the float path, unless activations are named. Other values do not. */
static void test_precision_fp32(void **state) {
    (void)state;
    const options flag = good(COMMAND_RUN, "--precision fp32");
    assert_string_equal(options_text(&flag, OPT_ACTIVATION_PRECISION), "fp32");
    check_remarks(&flag, "");
    const options both = good(COMMAND_RUN, "--precision fp32 --act-prec bf16");
    assert_string_equal(options_text(&both, OPT_ACTIVATION_PRECISION), "bf16");
    const options other = good(COMMAND_RUN, "--precision fp16");
    assert_false(options_given(&other, OPT_ACTIVATION_PRECISION));
    set("PRECISION", "fp32");
    for (int c = 0; c < COMMAND_COUNT; c++) {
        const bool takes = option_applies(OPT_ACTIVATION_PRECISION, (command_id)c);
        assert_int_equal(option_applies(OPT_PRECISION, (command_id)c), takes);
    }
    const options hint = good(COMMAND_INSPECT, "");
    assert_string_equal(options_text(&hint, OPT_ACTIVATION_PRECISION), "fp32");
    assert_int_equal(hint.values[OPT_ACTIVATION_PRECISION].source, OPTION_ENVIRONMENT);
}

/* In strict mode, a flag without effect is an error. A variable without effect is only a hint. */
static void test_hints(void **state) {
    (void)state;
    const options flag = good(COMMAND_RUN, "--strict --precision int4w");
    assert_string_equal(options_ignored_strictly(&flag), "precision");
    const options float_path = good(COMMAND_RUN, "--strict --precision fp32");
    assert_null(options_ignored_strictly(&float_path));
    const options loose = good(COMMAND_RUN, "--precision int4w");
    assert_null(options_ignored_strictly(&loose));
    static const char *const names[] = {"PRECISION", "IE_PRECISION", "TERN_PRECISION"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        set(names[i], "int4w");
        const options hint = good(COMMAND_RUN, "--strict");
        assert_string_equal(options_text(&hint, OPT_PRECISION), "int4w");
        assert_null(options_ignored_strictly(&hint));
    }
}

static void test_activation_precision(void **state) {
    (void)state;
    const options flag = good(COMMAND_RUN, "--act-prec fp8-e5m2");
    assert_string_equal(options_text(&flag, OPT_ACTIVATION_PRECISION), "fp8-e5m2");
    check_remarks(&flag, "");
    bad(COMMAND_RUN, "--activation-precision fp4", "--activation-precision wants one of");
    bad(COMMAND_SYNTH, "--act-prec fp8", "unknown option");
    set("IE_ACT_PREC", "bf16");
    const options hint = good(COMMAND_SERVE, "");
    assert_string_equal(options_text(&hint, OPT_ACTIVATION_PRECISION), "bf16");
    set("TERN_ACTIVATION_PRECISION", "fp16");
    const options own = good(COMMAND_INSPECT, "");
    assert_string_equal(options_text(&own, OPT_ACTIVATION_PRECISION), "fp16");
}

/* ---- the tables and help --------------------------------------------------------------------- */

static void test_table_is_consistent(void **state) {
    (void)state;
    for (int c = 0; c < COMMAND_COUNT; c++) {
        bool letters[128] = {false};
        for (int i = 0; i < OPT_COUNT; i++) {
            const option_spec *spec = option_describe((option_id)i);
            assert_non_null(spec->name);
            assert_non_null(spec->help);
            assert_true((spec->type == OPTION_SWITCH) == (spec->argument == NULL));
            if (!option_applies((option_id)i, (command_id)c))
                continue;
            option_id found;
            assert_true(option_find((command_id)c, spec->name, strlen(spec->name), &found));
            assert_int_equal(found, i); /* no other option of the command has this name */
            assert_true(spec->letter == 0 || !letters[(int)spec->letter]);
            letters[(int)spec->letter] = true;
        }
        options o;
        tern_error err = {0};
        static const char *const operands[] = {"", "x", "x y"};
        const unsigned n = command_describe((command_id)c)->min_operands;
        assert_int_equal(options_of(&o, (command_id)c, operands[n], &err), TERN_OK);
    }
}

/* Every option is in a group with a heading, and no command has more than ten common ones. */
static void test_groups(void **state) {
    (void)state;
    for (int g = GROUP_NONE + 1; g < GROUP_COUNT; g++)
        assert_non_null(option_group_title((option_group)g));
    unsigned most_used[COMMAND_COUNT] = {0};
    for (int i = 0; i < OPT_COUNT; i++) {
        const option_spec *spec = option_describe((option_id)i);
        if (spec->group == GROUP_NONE)
            fail_msg("--%s has no group", spec->name);
        for (int c = 0; c < COMMAND_COUNT; c++)
            most_used[c] += (spec->commands & spec->often) >> c & 1U;
    }
    assert_int_equal(most_used[COMMAND_RUN], 10);
    assert_int_equal(most_used[COMMAND_SERVE], 10);
    for (int c = 0; c < COMMAND_COUNT; c++)
        if (most_used[c] > 10)
            fail_msg("%s has %u most used options", command_describe((command_id)c)->name,
                     most_used[c]);
}

static void test_help_flag(void **state) {
    (void)state;
    const options alone = good(COMMAND_RUN, "--help");
    assert_true(options_switch(&alone, OPT_HELP));
    const options o = good(COMMAND_INSPECT, "--nonsense -h");
    assert_true(options_switch(&o, OPT_HELP));
    bad(COMMAND_INSPECT, "a --nonsense -- --help", "unknown option");
}

/* Captures the output of a help function and checks its width. */
static char *captured(void (*print)(FILE *, command_id), command_id command) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    print(out, command);
    assert_int_equal(fclose(out), 0);
    for (const char *line = text; *line != '\0';) {
        const size_t n = strcspn(line, "\n");
        if (n > 100)
            fail_msg("%zu columns: %.*s", n, (int)n, line);
        line += n + (line[n] == '\n');
    }
    return text;
}

static void print_program(FILE *out, command_id command) {
    (void)command;
    help_print_program(out);
}

static void print_environment(FILE *out, command_id command) {
    (void)command;
    help_print_environment(out);
}

/* True if the text contains --name as a word. */
static bool has_flag(const char *text, const char *name) {
    char flag[WORD_BYTES + 4];
    (void)snprintf(flag, sizeof flag, "--%s", name);
    for (const char *at = strstr(text, flag); at != NULL; at = strstr(at + 1, flag))
        if (strchr(" \n", at[strlen(flag)]) != NULL)
            return true;
    return false;
}

static void test_help_texts(void **state) {
    (void)state;
    for (int c = 0; c < COMMAND_COUNT; c++) {
        char *text = captured(help_print_command, (command_id)c);
        assert_non_null(strstr(text, "usage: tern "));
        assert_non_null(strstr(text, "examples:\n  tern "));
        for (int i = 0; i < OPT_COUNT; i++)
            if (option_applies((option_id)i, (command_id)c))
                assert_true(has_flag(text, option_describe((option_id)i)->name));
        free(text);
    }
    char *program = captured(print_program, COMMAND_RUN);
    char *environment = captured(print_environment, COMMAND_RUN);
    for (int c = 0; c < COMMAND_COUNT; c++)
        assert_non_null(strstr(program, command_describe((command_id)c)->summary));
    assert_non_null(strstr(environment, "TERN_THREADS RAYON_NUM_THREADS"));
    assert_null(strstr(environment, "TERN_PROMPT "));
    free(program);
    free(environment);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CLEAN_TEST(test_defaults),
        CLEAN_TEST(test_flags),
        CLEAN_TEST(test_aliases),
        CLEAN_TEST(test_letters_belong_to_commands),
        CLEAN_TEST(test_last_flag_wins_and_values_may_look_like_flags),
        CLEAN_TEST(test_operands),
        CLEAN_TEST(test_places),
        CLEAN_TEST(test_bad_values),
        CLEAN_TEST(test_unknown_flags_get_a_hint),
        CLEAN_TEST(test_unknown_commands_get_a_hint),
        CLEAN_TEST(test_word_distance),
        CLEAN_TEST(test_repeated),
        CLEAN_TEST(test_precision_fp32),
        CLEAN_TEST(test_hints),
        CLEAN_TEST(test_activation_precision),
        CLEAN_TEST(test_options_without_effect),
        CLEAN_TEST(test_table_is_consistent),
        CLEAN_TEST(test_groups),
        CLEAN_TEST(test_help_flag),
        CLEAN_TEST(test_help_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
