/* SPDX-License-Identifier: Apache-2.0 */
/* Variables: those of options, those of other programs, and mistakes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/program/options_case.h"

static void test_environment_mirrors_flags(void **state) {
    (void)state;
    set("TERN_MODEL", "e.gguf");
    set("TERN_TOP_K", "3");
    set("TERN_JSON", "yes");
    set("TERN_THREADS", "2");
    const options o = good(COMMAND_RUN, "");
    assert_string_equal(options_text(&o, OPT_MODEL), "e.gguf");
    assert_int_equal(options_integer(&o, OPT_TOP_K), 3);
    assert_int_equal(options_integer(&o, OPT_THREADS), 2);
    assert_true(options_switch(&o, OPT_JSON) && options_given(&o, OPT_JSON));
}

static void test_older_variables(void **state) {
    (void)state;
    set("BITNET_SEED", "7");
    set("BITNET_DETERMINISTIC", "1");
    set("BITNET_STRICT_MODE", "true");
    set("BITNET_GGUF", "b.gguf");
    set("RAYON_NUM_THREADS", "3");
    set("IE_REQUIRE_MODEL", "1");
    set("AFFINITY", "scatter");
    set("IE_TP_USE_AFFINITY", "0");
    const options o = good(COMMAND_RUN, "");
    assert_string_equal(options_text(&o, OPT_AFFINITY), "scatter");
    assert_true(options_given(&o, OPT_USE_AFFINITY));
    assert_false(options_switch(&o, OPT_USE_AFFINITY));
    assert_int_equal(options_integer(&o, OPT_SEED), 7);
    assert_true(options_switch(&o, OPT_DETERMINISTIC));
    assert_true(options_switch(&o, OPT_STRICT));
    assert_true(options_switch(&o, OPT_REQUIRE_MODEL));
    assert_string_equal(options_text(&o, OPT_MODEL), "b.gguf");
    assert_int_equal(options_integer(&o, OPT_THREADS), 3);
}

static void test_variables_of_shared_bytes(void **state) {
    static const char *const wrong[][3] = {
        {"IE_DEDUP", "perhaps", "IE_DEDUP wants 1 or 0"},
        {"IE_DEDUP_POLICY", "lossy", "IE_DEDUP_POLICY wants one of: lossless"},
        {"IE_DEDUP_CACHE_MB", "-1", "IE_DEDUP_CACHE_MB wants an integer"}};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        set(wrong[i][0], wrong[i][1]);
        bad(COMMAND_RUN, "", wrong[i][2]);
        assert_int_equal(unsetenv(wrong[i][0]), 0);
    }
    set("IE_DEDUP", "0");
    set("IE_DEDUP_STRICT", "1");
    set("IE_DEDUP_CACHE_MB", "7");
    const options o = good(COMMAND_RUN, "");
    assert_true(options_given(&o, OPT_DEDUP));
    assert_false(options_switch(&o, OPT_DEDUP));
    assert_true(options_switch(&o, OPT_DEDUP_STRICT));
    assert_int_equal(options_integer(&o, OPT_DEDUP_CACHE), 7);
}

static void test_order_of_precedence(void **state) {
    (void)state;
    set("BITNET_SEED", "7");
    set("TERN_SEED", "8");
    const options environment = good(COMMAND_RUN, "");
    assert_int_equal(options_integer(&environment, OPT_SEED), 8);
    const options flag = good(COMMAND_RUN, "--seed 9");
    assert_int_equal(options_integer(&flag, OPT_SEED), 9);
    set("TERN_SEED", "");
    const options empty = good(COMMAND_RUN, "");
    assert_int_equal(options_integer(&empty, OPT_SEED), 7);
    set("TERN_JSON", "1");
    const options off = good(COMMAND_RUN, "--json=no");
    assert_false(options_switch(&off, OPT_JSON));
}

static void test_bad_variables_are_errors(void **state) {
    (void)state;
    set("TERN_THREADS", "many");
    bad(COMMAND_RUN, "", "TERN_THREADS wants an integer from 0 to 1024, not 'many'");
    (void)good(COMMAND_RUN, "--threads 1"); /* the flag wins */
    (void)good(COMMAND_INSPECT, "");        /* inspect does not use it */
    (void)unsetenv("TERN_THREADS");
    set("BITNET_DETERMINISTIC", "perhaps");
    bad(COMMAND_RUN, "", "BITNET_DETERMINISTIC wants 1 or 0, not 'perhaps'");
}

/* Names that other programs use only count if the value is known here. */
static void test_common_names(void **state) {
    (void)state;
    set("PRECISION", "yes");
    set("AFFINITY", "0-3");
    set("RAYON_NUM_THREADS", "many");
    set("PROMPTS", "x");
    const options o = good(COMMAND_RUN, "");
    assert_false(options_given(&o, OPT_PRECISION));
    assert_string_equal(options_text(&o, OPT_AFFINITY), "auto");
    assert_int_equal(options_integer(&o, OPT_THREADS), 0);
    check_remarks(&o, "");
    const options loud = good(COMMAND_RUN, "-v");
    check_remarks(&loud, "tern: RAYON_NUM_THREADS is ignored: --threads does not take its value\n"
                         "tern: AFFINITY is ignored: --affinity does not take its value\n"
                         "tern: PRECISION is ignored: --precision does not take its value\n");
    set("IE_PRECISION", "yes");
    bad(COMMAND_RUN, "", "IE_PRECISION wants one of");
}

/* Checks that a variable with this value is refused with a message that holds `part`; NULL:
 * accepted. */
static void check_variable(const char *name, const char *value, const char *part) {
    set(name, value);
    if (part != NULL) {
        bad(COMMAND_RUN, "", part);
        bad(COMMAND_KEYGEN, "file", part);
    } else {
        (void)good(COMMAND_RUN, "");
    }
    assert_int_equal(unsetenv(name), 0);
}

static void test_unknown_variables(void **state) {
    (void)state;
    check_variable("TERN_TMEP", "1", "unknown variable TERN_TMEP, did you mean TERN_TEMP?");
    check_variable("TERN_FOO", "1", "unknown variable TERN_FOO, see `tern help environment`");
    check_variable("TERN_", "1", "unknown variable TERN_,");
    check_variable("TERN_PROMPT", "x", "--prompt is for one call");
    check_variable("TERN_FOO", "", NULL);
    check_variable("TERN_CUDA_MODULE", "x", NULL);
    check_variable("TERN_TEST_ANYTHING", "x", NULL);
    check_variable("TERN_FAULTS_AT", "x", NULL);
    check_variable("XTERN_FOO", "x", NULL);
    static const char *const links[][2] = {
        {"TERN_SERVICE_HOST", "10.0.0.1"},
        {"TERN_SERVICE_PORT", "8080"},
        {"TERN_SERVICE_PORT_HTTP", "8080"},
        {"TERN_PORT", "tcp://10.0.0.1:8080"},
        {"TERN_PORT_8080_TCP", "tcp://10.0.0.1:8080"},
        {"TERN_PORT_8080_TCP_ADDR", "10.0.0.1"},
        {"TERN_API_PORT_53_UDP_PROTO", "udp"},
    };
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        check_variable(links[i][0], links[i][1], NULL);
    check_variable("TERN_PORT", "8080", "--port is for one call");
    check_variable("TERN_PORT_X_TCP", "1", "unknown variable");
    check_variable("TERN_PORT_80_TCP_X", "1", "unknown variable");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CLEAN_TEST(test_environment_mirrors_flags), CLEAN_TEST(test_older_variables),
        CLEAN_TEST(test_variables_of_shared_bytes), CLEAN_TEST(test_order_of_precedence),
        CLEAN_TEST(test_bad_variables_are_errors),  CLEAN_TEST(test_common_names),
        CLEAN_TEST(test_unknown_variables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
