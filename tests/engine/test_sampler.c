/* SPDX-License-Identifier: Apache-2.0 */
/* ChaCha8 against published keystreams; the sampler against a plain sort and against statistics. */

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/chacha.h"
#include "tern/tern.h"

/* ---- ChaCha8 --------------------------------------------------------------------------------- */

typedef struct chacha_vector {
    const char *key, *nonce, *stream; /* hexadecimal; the keystream has two blocks */
} chacha_vector;

/* draft-strombergson-chacha-test-vectors-01, 256-bit keys, 8 rounds: TC1 to TC4, TC7, TC8. */
static const chacha_vector chacha_vectors[] = {
    {"0000000000000000000000000000000000000000000000000000000000000000", "0000000000000000",
     "3e00ef2f895f40d67f5bb8e81f09a5a12c840ec3ce9a7f3b181be188ef711a1e"
     "984ce172b9216f419f445367456d5619314a42a3da86b001387bfdb80e0cfe42"
     "d2aefa0deaa5c151bf0adb6c01f2a5adc0fd581259f9a2aadcf20f8fd566a26b"
     "5032ec38bbc5da98ee0c6f568b872a65a08abf251deb21bb4b56e5d8821e68aa"},
    {"0100000000000000000000000000000000000000000000000000000000000000", "0000000000000000",
     "cf5ee9a0494aa9613e05d5ed725b804b12f4a465ee635acc3a311de8740489ea"
     "289d04f43c7518db56eb4433e498a1238cd8464d3763ddbb9222ee3bd8fae3c8"
     "b4355a7d93dd8867089ee643558b95754efa2bd1a8a1e2d75bcdb32015542638"
     "291941feb49965587c4fdfe219cf0ec132a6cd4dc067392e67982fe53278c0b4"},
    {"0000000000000000000000000000000000000000000000000000000000000000", "0100000000000000",
     "2b8f4bb3798306ca5130d47c4f8d4ed13aa0edccc1be6942090faeeca0d7599b"
     "7ff0fe616bb25aa0153ad6fdc88b954903c22426d478b97b22b8f9b1db00cf06"
     "470bdffbc488a8b7c701ebf4061d75c5969186497c95367809afa80bd843b040"
     "a79abc6e73a91757f1db73c8eacfa543b38f289d065ab2f3032d377b8c37fe46"},
    {"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", "ffffffffffffffff",
     "e163bbf8c9a739d18925ee8362dad2cdc973df05225afb2aa26396f2a9849a4a"
     "445e0547d31c1623c537df4ba85c70a9884a35bcbf3dfab077e98b0f68135f54"
     "81d4933f8b322ac0cd762c27235ce2b31534e0244a9a2f1fd5e94498d47ff108"
     "790c009cf9e1a348032a7694cb28024cd96d3498361edb1785af752d187ab54b"},
    {"00112233445566778899aabbccddeeffffeeddccbbaa99887766554433221100", "0f1e2d3c4b5a6978",
     "db43ad9d1e842d1272e4530e276b3f568f8859b3f7cf6d9d2c74fa53808cb515"
     "7a8ebf46ad3dcc4b6c7dadde131784b0120e0e22f6d5f9ffa7407d4a21b695d9"
     "c5dd30bf55612fab9bdd118920c19816470c7f5dcd42325dbbed8c57a56281c1"
     "44cb0f03e81b3004624e0650a1ce5afaf9a7cd8163f6dbd72602257dd96e471e"},
    {"c46ec1b18ce8a878725a37e780dfb7351f68ed2e194c79fbc6aebee1a667975d", "1ada31d5cf688221",
     "838751b42d8ddd8a3d77f48825a2ba752cf4047cb308a5978ef274973be374c9"
     "6ad848065871417b08f034e681fe46a93f7d5c61d1306614d4aaf257a7cff08b"
     "16f2fda170cc18a4b58a2667ed962774af792a6e7f3c77992540711a7a136d7e"
     "8a2f8d3f93816709d45a3fa5f8ce72fde15be7b841acba3a2abd557228d9fe4f"},
};

static void unhex(const char *hex, uint8_t *bytes, size_t n) {
    assert_int_equal(strlen(hex), 2 * n);
    for (size_t i = 0; i < n; i++) {
        unsigned value;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &value), 1);
        bytes[i] = (uint8_t)value;
    }
}

static void assert_stream(tern_chacha *c, const char *hex) {
    uint8_t expected[128];
    unhex(hex, expected, sizeof expected);
    for (size_t i = 0; i < sizeof expected; i += 4) {
        const uint32_t word = tern_chacha_next(c);
        for (size_t j = 0; j < 4; j++)
            assert_int_equal((uint8_t)(word >> (8 * j)), expected[i + j]);
    }
}

static void test_chacha_published_vectors(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof chacha_vectors / sizeof *chacha_vectors; i++) {
        uint8_t key[32];
        uint8_t nonce[8];
        unhex(chacha_vectors[i].key, key, sizeof key);
        unhex(chacha_vectors[i].nonce, nonce, sizeof nonce);
        tern_chacha c;
        tern_chacha_start(&c, key, nonce);
        assert_stream(&c, chacha_vectors[i].stream);
    }
}

static void test_chacha_seed_fills_the_key(void **state) {
    (void)state;
    static const uint8_t nonce[8];
    uint8_t key[32];
    for (int i = 0; i < 32; i += 8)
        memcpy(key + i, "\x88\x77\x66\x55\x44\x33\x22\x11", 8);
    tern_chacha a;
    tern_chacha b;
    tern_chacha_start(&a, key, nonce);
    tern_chacha_seed(&b, UINT64_C(0x1122334455667788));
    for (int i = 0; i < 100; i++)
        assert_int_equal(tern_chacha_next(&a), tern_chacha_next(&b));
    tern_chacha_seed(&b, 0);
    assert_stream(&b, chacha_vectors[0].stream);
}

static void test_chacha_counter_carries(void **state) {
    (void)state;
    tern_chacha a;
    tern_chacha_seed(&a, 1);
    a.input[12] = UINT32_MAX;
    (void)tern_chacha_next(&a);
    assert_int_equal(a.input[12], 0);
    assert_int_equal(a.input[13], 1);
}

static void test_chacha_uniform(void **state) {
    (void)state;
    tern_chacha c;
    tern_chacha_seed(&c, 0);
    /* words 2fef003e, d6405f89: (0xd6405f892fef003e >> 11) / 2^53 */
    assert_true(tern_chacha_uniform(&c) == (double)(UINT64_C(0xd6405f892fef003e) >> 11) * 0x1p-53);
    double sum = 0.0;
    for (int i = 0; i < 10000; i++) {
        const double u = tern_chacha_uniform(&c);
        assert_true(u >= 0.0 && u < 1.0);
        sum += u;
    }
    assert_true(fabs(sum / 10000.0 - 0.5) < 0.02); /* 7 standard deviations */
}

/* ---- helpers --------------------------------------------------------------------------------- */

static tern_sampler *make(float temperature, uint32_t top_k, float top_p, uint64_t seed,
                          uint32_t n) {
    const tern_sampler_params params = {
        .temperature = temperature, .top_k = top_k, .top_p = top_p, .seed = seed};
    tern_sampler *s = NULL;
    tern_error err = {0};
    assert_int_equal(tern_sampler_new(&params, n, &s, &err), TERN_OK);
    assert_non_null(s);
    return s;
}

static int32_t pick(tern_sampler *s, const float *logits) {
    int32_t token = -1;
    tern_error err = {0};
    assert_int_equal(tern_sampler_pick(s, logits, &token, &err), TERN_OK);
    return token;
}

/* Logits around 0 with many equal values, so that there are ties. */
static float *make_logits(size_t n, uint64_t seed) {
    float *logits = malloc(n * sizeof *logits);
    assert_non_null(logits);
    tern_chacha c;
    tern_chacha_seed(&c, seed);
    for (size_t i = 0; i < n; i++) {
        const double u = tern_chacha_uniform(&c) + tern_chacha_uniform(&c) - 1.0;
        logits[i] = (float)(floor(u * 64.0) / 8.0);
    }
    return logits;
}

static const float *sort_logits;

static int compare_candidates(const void *a, const void *b) {
    const int32_t i = *(const int32_t *)a;
    const int32_t j = *(const int32_t *)b;
    if (sort_logits[i] != sort_logits[j])
        return sort_logits[i] > sort_logits[j] ? -1 : 1;
    return (i > j) - (i < j);
}

static int32_t *ranked(const float *logits, size_t n) {
    int32_t *ids = malloc(n * sizeof *ids);
    assert_non_null(ids);
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)i;
    sort_logits = logits;
    qsort(ids, n, sizeof *ids, compare_candidates);
    return ids;
}

static size_t rank_of(const int32_t *order, size_t n, int32_t id) {
    for (size_t i = 0; i < n; i++)
        if (order[i] == id)
            return i;
    fail_msg("token %d is not a candidate", id);
    return n;
}

/* ---- greedy ---------------------------------------------------------------------------------- */

static void test_argmax_takes_the_lowest_of_equals(void **state) {
    (void)state;
    const float a[] = {1.0F, 3.0F, 3.0F, 2.0F};
    const float b[] = {-0.0F, 0.0F, -1.0F};
    const float c[] = {-5.0F};
    assert_int_equal(tern_argmax(a, 4), 1);
    assert_int_equal(tern_argmax(b, 3), 0);
    assert_int_equal(tern_argmax(c, 1), 0);
}

static void test_greedy_ignores_the_seed(void **state) {
    (void)state;
    float *logits = make_logits(1000, 7);
    const int32_t *order = ranked(logits, 1000);
    for (uint64_t seed = 0; seed < 5; seed++) {
        tern_sampler *s = make(0.0F, 5, 0.5F, seed, 1000);
        assert_int_equal(pick(s, logits), order[0]);
        tern_sampler_free(&s);
        assert_null(s);
    }
    free((void *)order);
    free(logits);
}

/* ---- sampling -------------------------------------------------------------------------------- */

static void test_top_k_stays_inside_the_k_best(void **state) {
    (void)state;
    enum { N = 777 };
    float *logits = make_logits(N, 3);
    int32_t *order = ranked(logits, N);
    const uint32_t ks[] = {1, 2, 7, 40, N - 1};
    for (size_t i = 0; i < sizeof ks / sizeof *ks; i++) {
        tern_sampler *s = make(2.0F, ks[i], 1.0F, 42, N);
        size_t worst = 0;
        for (int draw = 0; draw < 3000; draw++) {
            const size_t rank = rank_of(order, N, pick(s, logits));
            worst = rank > worst ? rank : worst;
        }
        assert_true(worst < ks[i]);
        assert_true(ks[i] > 40 || worst == ks[i] - 1); /* and each of a few occurs */
        tern_sampler_free(&s);
    }
    free(order);
    free(logits);
}

static void test_top_p_keeps_the_shortest_run(void **state) {
    (void)state;
    /* probabilities 0.5, 0.25, 0.125, 0.0625, 0.0625, in reverse order */
    float logits[5];
    const double p[] = {0.0625, 0.0625, 0.125, 0.25, 0.5};
    for (int i = 0; i < 5; i++)
        logits[i] = (float)log(p[i]);
    const struct {
        float top_p;
        int32_t lowest; /* smallest id that may appear */
    } cases[] = {{0.3F, 4}, {0.6F, 3}, {0.85F, 2}, {0.935F, 0}, {0.99F, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uint32_t k = 0; k < 5; k += 4) { /* without top-k, and with a top-k of 4 */
            tern_sampler *s = make(1.0F, k, cases[i].top_p, 42, 5);
            bool seen[5] = {false};
            for (int draw = 0; draw < 3000; draw++)
                seen[pick(s, logits)] = true;
            for (int32_t id = 0; id < 5; id++) {
                const bool tie_lost = id == 1 && (k == 4 || cases[i].top_p < 0.937F);
                assert_int_equal(seen[id], id >= cases[i].lowest && !tie_lost);
            }
            tern_sampler_free(&s);
        }
    }
}

/* Pearson's statistic of 20,000 draws against softmax(logits / T), with 7 degrees of freedom. */
static void test_frequencies_follow_softmax(void **state) {
    (void)state;
    enum { N = 8, DRAWS = 20000 };
    const float logits[N] = {0.5F, -1.0F, 2.0F, 0.0F, 1.5F, -0.5F, 0.25F, 1.0F};
    const float temperatures[] = {0.7F, 1.0F, 2.0F};
    for (int t = 0; t < 3; t++) {
        for (uint32_t mode = 0; mode < 3; mode++) {
            const uint32_t k = mode == 1 ? N - 1 : 0;       /* drops id 1 */
            const float top_p = mode == 2 ? 0.9999F : 1.0F; /* drops nothing */
            tern_sampler *s = make(temperatures[t], k, top_p, 42, N);
            double expected[N];
            double sum = 0.0;
            for (int i = 0; i < N; i++) {
                expected[i] =
                    mode == 1 && i == 1 ? 0.0 : exp((double)logits[i] / (double)temperatures[t]);
                sum += expected[i];
            }
            int count[N] = {0};
            for (int d = 0; d < DRAWS; d++)
                count[pick(s, logits)]++;
            double chi2 = 0.0;
            for (int i = 0; i < N; i++) {
                const double e = expected[i] / sum * DRAWS;
                chi2 += e > 0.0 ? (count[i] - e) * (count[i] - e) / e : count[i];
            }
            assert_true(chi2 < 24.3); /* p = 0.001 */
            tern_sampler_free(&s);
        }
    }
}

/* The whole definition again, with a sort and plain loops. Every draw must be equal. */
static int32_t reference_pick(tern_chacha *random, const float *logits, size_t n, float temperature,
                              size_t k, float top_p) {
    const tern_kernel_row *kernel = tern_kernel_select(0, TERN_OP_SOFTMAX, TERN_FORMAT_NONE);
    int32_t *order = ranked(logits, n);
    float *p = aligned_alloc(64, (n + 15) / 16 * 64);
    double *candidate_p = malloc(n * sizeof *candidate_p);
    assert_true(kernel != NULL && p != NULL && candidate_p != NULL);
    const float max = logits[order[0]];
    const bool cut = k > 0 && k < n;
    const size_t m = cut ? k : n;
    for (size_t j = 0; j < m; j++)
        p[j] = (logits[cut ? (size_t)order[j] : j] - max) / temperature;
    kernel->fn.softmax(p, m);
    const bool by_id = !cut && top_p >= 1.0F;
    for (size_t j = 0; j < m; j++) {
        order[j] = by_id ? (int32_t)j : order[j];
        candidate_p[j] = (double)p[cut ? j : (size_t)order[j]];
    }
    double total = 0.0;
    size_t kept = 0;
    while (kept < m && (kept == 0 || top_p >= 1.0F || total < (double)top_p))
        total += candidate_p[kept++];
    const double r = tern_chacha_uniform(random) * total;
    double sum = candidate_p[0];
    size_t j = 0;
    while (j + 1 < kept && !(sum > r))
        sum += candidate_p[++j];
    const int32_t id = order[j];
    free(order);
    free(p);
    free(candidate_p);
    return id;
}

static void test_draws_equal_the_definition(void **state) {
    (void)state;
    const struct {
        float temperature;
        uint32_t k;
        float top_p;
    } cases[] = {{1.0F, 0, 1.0F},   {0.8F, 40, 1.0F},   {0.8F, 0, 0.9F},
                 {1.2F, 40, 0.95F}, {1.0F, 1, 1.0F},    {5.0F, 300, 0.2F},
                 {1e-3F, 0, 0.5F},  {1.0F, 9999, 1.0F}, {1e-40F, 3, 1.0F}};
    const uint32_t sizes[] = {1, 2, 17, 300, 1009};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        for (size_t z = 0; z < sizeof sizes / sizeof *sizes; z++) {
            tern_sampler *s = make(cases[c].temperature, cases[c].k, cases[c].top_p, 99, sizes[z]);
            tern_chacha random;
            tern_chacha_seed(&random, 99);
            for (uint64_t step = 0; step < 20; step++) {
                float *logits = make_logits(sizes[z], step);
                assert_int_equal(pick(s, logits),
                                 reference_pick(&random, logits, sizes[z], cases[c].temperature,
                                                cases[c].k, cases[c].top_p));
                free(logits);
            }
            tern_sampler_free(&s);
        }
    }
}

static void test_same_seed_same_tokens_and_reset(void **state) /* AC:3 */
{
    (void)state;
    enum { N = 500, STEPS = 50 };
    float *logits = make_logits(N, 11);
    const struct {
        uint32_t k;
        float top_p;
    } cases[] = {{0, 1.0F}, {40, 1.0F}, {0, 0.9F}, {40, 0.9F}};
    for (size_t c = 0; c < 4; c++) {
        tern_sampler *a = make(1.0F, cases[c].k, cases[c].top_p, 42, N);
        tern_sampler *b = make(1.0F, cases[c].k, cases[c].top_p, 7, N);
        int32_t first[STEPS];
        int differences = 0;
        for (int i = 0; i < STEPS; i++) {
            first[i] = pick(a, logits);
            differences += first[i] != pick(b, logits);
        }
        assert_true(differences > STEPS / 4);
        tern_sampler_reset(a, 42);
        tern_sampler_reset(b, 42);
        for (int i = 0; i < STEPS; i++) {
            assert_int_equal(pick(a, logits), first[i]);
            assert_int_equal(pick(b, logits), first[i]);
        }
        tern_sampler_free(&a);
        tern_sampler_free(&b);
    }
    free(logits);
}

static void test_known_tokens(void **state) {
    (void)state;
    /* seed 42, eight equal logits: token = floor(8 * uniform); pins how the seed is expanded */
    const float logits[8] = {0};
    tern_sampler *s = make(1.0F, 0, 1.0F, 42, 8);
    tern_chacha c;
    tern_chacha_seed(&c, 42);
    for (int i = 0; i < 64; i++)
        assert_int_equal(pick(s, logits), (int32_t)(8.0 * tern_chacha_uniform(&c)));
    tern_sampler_free(&s);
}

/* ---- errors and limits ----------------------------------------------------------------------- */

static void test_defaults(void **state) {
    (void)state;
    const tern_sampler_params p = tern_sampler_params_default();
    assert_true(p.temperature == 0.0F && p.top_k == 0 && p.top_p == 1.0F && p.seed == 42);
    assert_true(p.min_p == 0.0F && p.repetition_penalty == 1.0F && p.presence_penalty == 0.0F &&
                p.frequency_penalty == 0.0F && p.repeat_last_n == 64 && p.n_bias == 0);
}

static void test_bad_parameters(void **state) {
    (void)state;
    const tern_logit_bias outside = {8, 1.0F};
    const tern_logit_bias below = {-1, 1.0F};
    const tern_logit_bias infinite = {1, INFINITY};
    const tern_sampler_params bad[] = {
        {.temperature = -1.0F, .top_p = 1.0F},
        {.temperature = NAN, .top_p = 1.0F},
        {.temperature = INFINITY, .top_p = 1.0F},
        {.temperature = 1.0F, .top_p = 0.0F},
        {.temperature = 1.0F, .top_p = 1.0001F},
        {.temperature = 1.0F, .top_p = NAN},
        {.temperature = 1.0F, .top_p = -0.5F},
        {.top_p = 1.0F, .min_p = -0.1F},
        {.top_p = 1.0F, .min_p = 1.1F},
        {.top_p = 1.0F, .min_p = NAN},
        {.top_p = 1.0F, .repetition_penalty = -1.0F},
        {.top_p = 1.0F, .repetition_penalty = INFINITY},
        {.top_p = 1.0F, .repetition_penalty = NAN},
        {.top_p = 1.0F, .presence_penalty = NAN},
        {.top_p = 1.0F, .frequency_penalty = INFINITY},
        {.top_p = 1.0F, .bias = &infinite, .n_bias = 1},
    };
    const tern_logit_bias *const out_of_range[] = {&outside, &below};
    tern_sampler *s = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tern_error err = {0};
        assert_int_equal(tern_sampler_new(&bad[i], 8, &s, &err), TERN_ERR_ARG);
        assert_true(err.message[0] != '\0');
        assert_null(s);
    }
    for (size_t i = 0; i < 2; i++) {
        const tern_sampler_params p = {.top_p = 1.0F, .bias = out_of_range[i], .n_bias = 1};
        assert_int_equal(tern_sampler_new(&p, 8, &s, NULL), TERN_ERR_TOKEN_RANGE);
    }
    const tern_sampler_params no_list = {.top_p = 1.0F, .n_bias = 1};
    assert_int_equal(tern_sampler_new(&no_list, 8, &s, NULL), TERN_ERR_NULL);
    const tern_sampler_params good = tern_sampler_params_default();
    assert_int_equal(tern_sampler_new(&good, 0, &s, NULL), TERN_ERR_ARG);
    assert_int_equal(tern_sampler_new(&good, UINT32_MAX, &s, NULL), TERN_ERR_ARG);
    assert_int_equal(tern_sampler_new(&good, 8, NULL, NULL), TERN_ERR_NULL);
    assert_null(s);
    assert_int_equal(tern_sampler_new(NULL, 8, &s, NULL), TERN_OK); /* the defaults */
    assert_non_null(s);
    tern_sampler_free(&s);
    tern_sampler_free(NULL);
}

static void test_nonfinite_logits_are_named(void **state) {
    (void)state;
    const float bad[] = {NAN, INFINITY, -INFINITY, -NAN};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        for (int mode = 0; mode < 2; mode++) {
            tern_sampler *s = make(mode == 0 ? 0.0F : 1.0F, 0, 1.0F, 42, 200);
            float *logits = make_logits(200, 5);
            logits[137] = bad[i];
            logits[150] = NAN;
            int32_t token = -7;
            tern_error err = {0};
            assert_int_equal(tern_sampler_pick(s, logits, &token, &err), TERN_ERR_NONFINITE);
            assert_int_equal(token, -7);
            assert_non_null(strstr(err.message, "137"));
            free(logits);
            tern_sampler_free(&s);
        }
    }
    tern_sampler *s = make(0.0F, 0, 1.0F, 42, 4);
    int32_t token;
    assert_int_equal(tern_sampler_pick(s, NULL, &token, NULL), TERN_ERR_NULL);
    assert_int_equal(tern_sampler_pick(NULL, (float[4]){0}, &token, NULL), TERN_ERR_NULL);
    assert_int_equal(tern_sampler_pick(s, (float[4]){0}, NULL, NULL), TERN_ERR_NULL);
    tern_sampler_free(&s);
}

static void test_extreme_logits(void **state) {
    (void)state;
    const float logits[4] = {-FLT_MAX, FLT_MAX, 0.0F, -FLT_MAX};
    for (uint32_t k = 0; k < 3; k += 2) {
        tern_sampler *s = make(FLT_MIN, k, 0.99F, 42, 4);
        for (int i = 0; i < 20; i++)
            assert_int_equal(pick(s, logits), 1);
        tern_sampler_free(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chacha_published_vectors),
        cmocka_unit_test(test_chacha_seed_fills_the_key),
        cmocka_unit_test(test_chacha_counter_carries),
        cmocka_unit_test(test_chacha_uniform),
        cmocka_unit_test(test_argmax_takes_the_lowest_of_equals),
        cmocka_unit_test(test_greedy_ignores_the_seed),
        cmocka_unit_test(test_top_k_stays_inside_the_k_best),
        cmocka_unit_test(test_top_p_keeps_the_shortest_run),
        cmocka_unit_test(test_frequencies_follow_softmax),
        cmocka_unit_test(test_draws_equal_the_definition),
        cmocka_unit_test(test_same_seed_same_tokens_and_reset),
        cmocka_unit_test(test_known_tokens),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_bad_parameters),
        cmocka_unit_test(test_nonfinite_logits_are_named),
        cmocka_unit_test(test_extreme_logits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
