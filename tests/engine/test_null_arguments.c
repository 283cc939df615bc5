/* SPDX-License-Identifier: Apache-2.0 */
/* Public functions with one of their arguments missing: each says so, whichever it is. */
#include <string.h>

#include "runtime/engine/session.h"
#include "tern/engine.h"
#include "tern/grammar.h"
#include "tern/tokenizer.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"
#include "tests/text/tokenizer_case.h"

/* Calls the function with an error behind these arguments. */
#define REFUSES(function, ...)                                                                     \
    do {                                                                                           \
        tern_error err = {0};                                                                      \
        check_case("%s(%s)", #function, #__VA_ARGS__);                                             \
        assert_int_equal(function(__VA_ARGS__, &err), TERN_ERR_NULL);                              \
        assert_int_equal(err.status, TERN_ERR_NULL);                                               \
        assert_non_null(strstr(err.message, "NULL argument"));                                     \
    } while (0)

static const char *const extra[] = {"<s>", NULL};
static const int32_t types[] = {3};
static const char *const merges[] = {"a b", NULL};
static const tokenizer_case bytes = {
    .model = "gpt2", .byte_level = true, .tokens = extra, .types = types, .merges = merges};

static void test_texts(void **state) {
    (void)state;
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &bytes, NULL), TERN_OK);
    const tern_tokenizer *t = f.t;
    const int32_t id = 'a';
    int32_t ids[4], *made = NULL;
    char text[8];
    size_t n = 0;
    tern_text_stream *stream = NULL;
    tern_answer_text *answer = NULL;
    const tern_answer_text_params params = {.n_stops = 0}, no_stops = {.n_stops = 1};
    REFUSES(tern_tokenize, NULL, "a", 1, 0, ids, 4, &n);
    REFUSES(tern_tokenize, t, NULL, 1, 0, ids, 4, &n);
    REFUSES(tern_tokenize, t, "a", 1, 0, NULL, 4, &n);
    REFUSES(tern_tokenize, t, "a", 1, 0, ids, 4, NULL);
    REFUSES(tern_tokenize_within, NULL, "a", 1, 0, NULL, &made, &n);
    REFUSES(tern_tokenize_within, t, NULL, 1, 0, NULL, &made, &n);
    REFUSES(tern_tokenize_within, t, "a", 1, 0, NULL, NULL, &n);
    REFUSES(tern_tokenize_within, t, "a", 1, 0, NULL, &made, NULL);
    REFUSES(tern_detokenize, NULL, &id, 1, true, text, 8, &n);
    REFUSES(tern_detokenize, t, NULL, 1, true, text, 8, &n);
    REFUSES(tern_detokenize, t, &id, 1, true, NULL, 8, &n);
    REFUSES(tern_detokenize, t, &id, 1, true, text, 8, NULL);
    REFUSES(tern_text_stream_new, NULL, true, &stream);
    REFUSES(tern_text_stream_new, t, true, NULL);
    REFUSES(tern_answer_text_new, NULL, &params, &answer);
    REFUSES(tern_answer_text_new, t, NULL, &answer);
    REFUSES(tern_answer_text_new, t, &params, NULL);
    REFUSES(tern_answer_text_new, t, &no_stops, &answer);
    assert_int_equal(tern_tokenize(t, NULL, 0, 0, NULL, 0, &n, NULL), TERN_OK);
    assert_int_equal(tern_detokenize(t, NULL, 0, true, NULL, 0, &n, NULL), TERN_OK);
    tokenizer_close(&f);
}

static void test_conversations(void **state) {
    (void)state;
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &bytes, NULL), TERN_OK);
    tern_tokenizer *t = f.t;
    const tern_conversation talk = {.n = 0};
    int32_t ids[4];
    char text[8];
    uint8_t marks[8];
    size_t n = 0;
    tern_rendering whole;
    REFUSES(tern_tokenizer_set_chat_format, NULL, "qa");
    REFUSES(tern_conversation_tokenize, NULL, &talk, ids, 4, &n);
    REFUSES(tern_conversation_tokenize, t, NULL, ids, 4, &n);
    REFUSES(tern_conversation_tokenize, t, &talk, NULL, 4, &n);
    REFUSES(tern_conversation_tokenize, t, &talk, ids, 4, NULL);
    REFUSES(tern_conversation_text, NULL, &talk, text, marks, 8, &n);
    REFUSES(tern_conversation_text, t, NULL, text, marks, 8, &n);
    REFUSES(tern_conversation_text, t, &talk, NULL, marks, 8, &n);
    REFUSES(tern_conversation_text, t, &talk, text, marks, 8, NULL);
    REFUSES(tern_conversation_drops, NULL, &talk, &n);
    REFUSES(tern_conversation_drops, t, NULL, &n);
    REFUSES(tern_conversation_drops, t, &talk, NULL);
    REFUSES(tern_conversation_render_within, NULL, &talk, NULL, &whole);
    REFUSES(tern_conversation_render_within, t, NULL, NULL, &whole);
    REFUSES(tern_conversation_render_within, t, &talk, NULL, NULL);
    tokenizer_close(&f);
}

static void test_grammars(void **state) {
    (void)state;
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &bytes, NULL), TERN_OK);
    tern_grammar_tokens *tokens = NULL;
    tern_grammar *g = NULL;
    tern_grammar_state *s = NULL;
    bool begins, whole;
    REFUSES(tern_grammar_tokens_new, NULL, 257, &tokens);
    REFUSES(tern_grammar_tokens_new, f.t, 257, NULL);
    assert_int_equal(tern_grammar_tokens_new(f.t, 257, &tokens, NULL), TERN_OK);
    REFUSES(tern_grammar_from_gbnf, NULL, "root ::= \"a\"", 12, "g", &g);
    REFUSES(tern_grammar_from_gbnf, tokens, NULL, 12, "g", &g);
    REFUSES(tern_grammar_from_gbnf, tokens, "root ::= \"a\"", 12, NULL, &g);
    REFUSES(tern_grammar_from_gbnf, tokens, "root ::= \"a\"", 12, "g", NULL);
    assert_int_equal(tern_grammar_from_gbnf(tokens, "root ::= \"a\"", 12, "g", &g, NULL), TERN_OK);
    REFUSES(tern_grammar_check, NULL, "a", 1, &begins, &whole);
    REFUSES(tern_grammar_check, g, NULL, 1, &begins, &whole);
    REFUSES(tern_grammar_check, g, "a", 1, NULL, &whole);
    REFUSES(tern_grammar_check, g, "a", 1, &begins, NULL);
    assert_int_equal(tern_grammar_check(g, NULL, 0, &begins, &whole, NULL), TERN_OK);
    REFUSES(tern_grammar_state_new, NULL, 1, &s);
    REFUSES(tern_grammar_state_new, g, 1, NULL);
    REFUSES(tern_schema_validate, NULL, 2, "1", 1, &whole);
    REFUSES(tern_schema_validate, "{}", 2, NULL, 1, &whole);
    REFUSES(tern_schema_validate, "{}", 2, "1", 1, NULL);
    tern_grammar_free(&g);
    tern_grammar_tokens_free(&tokens);
    tokenizer_close(&f);
}

static void test_sessions(void **state) {
    (void)state;
    tern_model *m = tiny_open("bitnet-tiny", NULL);
    const tern_session_params params = {.n_ctx = 4, .n_batch = 4, .threads = 1};
    tern_session *s = tiny_session(m, params);
    const tern_sampler_params sampling = tern_sampler_params_default();
    tern_sampler *sampler = NULL;
    tern_session_cache_size size;
    const float *logits;
    const int32_t token = 1;
    int32_t picked;
    uint64_t n;
    size_t reused;
    assert_int_equal(tern_sampler_new(&sampling, 515, &sampler, NULL), TERN_OK);
    REFUSES(tern_sampler_new, &sampling, 515, NULL);
    REFUSES(tern_session_cache_bytes, NULL, &params, &size);
    REFUSES(tern_session_cache_bytes, m, NULL, &size);
    REFUSES(tern_session_cache_bytes, m, &params, NULL);
    REFUSES(tern_session_bytes, NULL, &params, &n);
    REFUSES(tern_session_bytes, m, NULL, &n);
    REFUSES(tern_session_bytes, m, &params, NULL);
    REFUSES(tern_session_last_logits, NULL, &logits);
    REFUSES(tern_session_last_logits, s, NULL);
    REFUSES(tern_session_pick, NULL, sampler, &picked);
    REFUSES(tern_session_pick, s, NULL, &picked);
    REFUSES(tern_session_pick, s, sampler, NULL);
    REFUSES(tern_session_reuse, NULL, &token, 1, &reused);
    REFUSES(tern_session_reuse, s, NULL, 1, &reused);
    REFUSES(tern_session_reuse, s, &token, 1, NULL);
    tern_sampler_free(&sampler);
    tern_session_free(&s);
    tern_model_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts), cmocka_unit_test(test_conversations),
        cmocka_unit_test(test_grammars), cmocka_unit_test(test_sessions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
