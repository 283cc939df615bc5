/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of an engine give back the memory that they took, and so does the engine. */
#include "tests/engine/engine_case.h"
#include "tests/support/check.h"
#include "tests/support/failing_malloc.h"

/* Guesses what cannot be right. */
static size_t guess(void *user, const tern_progress *progress, int32_t *guesses, size_t most) {
    (void)user;
    (void)progress;
    for (size_t i = 0; i < most; i++)
        guesses[i] = (int32_t)i;
    return most;
}

static tern_request plain(void) {
    return engine_case_request(20);
}

static tern_request drafted(void) {
    tern_request r = engine_case_request(40);
    r.draft = TERN_DRAFT_ALWAYS;
    return r;
}

static tern_request guessed(void) {
    tern_request r = engine_case_request(20);
    r.guess = guess;
    return r;
}

static tern_request branched(void) {
    tern_request r = drafted();
    r.branches = 3;
    r.logprobs = true;
    r.n_logprobs = 3;
    return r;
}

static tern_request late(void) {
    tern_request r = drafted();
    r.deadline_seconds = 1.0; /* the clock is set beyond them */
    return r;
}

static tern_request (*const requests[])(void) = {plain, drafted, guessed, branched, late};
enum { REQUESTS = sizeof requests / sizeof *requests };

/* Answers a request, cancels it after a few passes, or closes the engine over it. */
static void answer_once(size_t i, bool cancels) {
    const tern_request request = requests[i]();
    const uint64_t id = engine_case_submit(&request);
    for (int step = 0; step < 4; step++)
        engine_case_step();
    engine_case.now += 2.0;
    if (cancels)
        (void)tern_engine_cancel(engine_case.engine, id);
    engine_case_finish();
    engine_case.n = 0; /* records of answers */
}

static void test_answers(void **state) {
    (void)state;
    if (!ALLOCATIONS_CAN_FAIL)
        check_skip("a sanitizer has allocations of its own");
    engine_case_open((tern_engine_params){.threads = 1});
    for (size_t i = 0; i < 2 * REQUESTS; i++) {
        answer_once(i / 2, i % 2); /* what the engine keeps for the next one is there then */
        const long before = allocations_live;
        answer_once(i / 2, i % 2);
        check_case("request %zu, cancelled %d", i / 2, (int)(i % 2));
        if (allocations_live != before)
            check_fail("%ld blocks are left", allocations_live - before);
    }
}

static long blocks_after(size_t n_sequences) {
    engine_case_open((tern_engine_params){.threads = 1, .n_sequences = (uint32_t)n_sequences});
    for (size_t i = 0; i < REQUESTS; i++) {
        const tern_request request = requests[i]();
        (void)engine_case_submit(&request);
        engine_case_step();
    }
    tern_engine_free(&engine_case.engine); /* some are running, some wait */
    return allocations_live;
}

static void test_engines(void **state) {
    (void)state;
    if (!ALLOCATIONS_CAN_FAIL)
        check_skip("a sanitizer has allocations of its own");
    const long before = blocks_after(4);
    assert_int_equal(blocks_after(4), before);
    assert_int_equal(blocks_after(2), before);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers),
                                       cmocka_unit_test(test_engines)};
    return cmocka_run_group_tests(tests, engine_case_begin, engine_case_end);
}
