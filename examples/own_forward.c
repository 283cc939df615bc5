/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decode loop of libtern (sampler, stops, streaming) over a forward pass of one's own: here a
 * table that counts which byte follows which in a text. Valid as C11 and as C++17.
 *
 *     cc own_forward.c $(pkg-config --cflags --libs tern) -o own_forward
 *     ./own_forward 'she sells sea shells by the sea shore' s
 */
#include <stdio.h>
#include <string.h>

#include <tern/tern.h>

enum { BYTES = 256, MAX_TOKENS = 40 };

typedef struct pairs {
    unsigned follows[BYTES][BYTES]; /* how often the second byte follows the first */
} pairs;

/* The logits after the last of the new tokens: this model ignores all earlier ones. */
static tern_status forward(const int32_t *tokens, size_t n, float *logits, void *user,
                           tern_error *err) {
    const pairs *p = (const pairs *)user;
    const int32_t last = tokens[n - 1];
    if (last < 0 || last >= BYTES)
        return tern_fail(err, TERN_ERR_TOKEN_RANGE, "token %d is not a byte", last);
    for (int i = 0; i < BYTES; i++)
        logits[i] = p->follows[last][i] > 0 ? (float)p->follows[last][i] : -1e4f;
    return TERN_OK;
}

static bool print_byte(int32_t token, double seconds, void *user) {
    (void)seconds;
    (void)user;
    return putchar(token) != EOF; /* false would stop generating */
}

int main(int argc, char **argv) {
    static pairs learnt;
    if (argc != 3 || argv[1][0] == '\0' || argv[2][0] == '\0') {
        fprintf(stderr, "usage: own_forward TEXT FIRST_LETTER\n");
        return 2;
    }
    const size_t size = strlen(argv[1]);
    for (size_t i = 0; i < size; i++) /* after its end the text begins again */
        learnt.follows[(unsigned char)argv[1][i]][(unsigned char)argv[1][(i + 1) % size]]++;

    tern_error err = {TERN_OK, ""};
    tern_sampler *sampler = NULL;
    tern_sampler_params sampling = tern_sampler_params_default();
    sampling.temperature = 1.0f;
    tern_forward_model model = {forward, &learnt, NULL, 0};
    tern_generate_params limits;
    memset(&limits, 0, sizeof limits);
    limits.max_tokens = MAX_TOKENS;
    const int32_t prompt = (unsigned char)argv[2][0];
    tern_status status = tern_sampler_new(&sampling, BYTES, &sampler, &err);
    if (status == TERN_OK)
        status =
            tern_generate_with(&model, sampler, &prompt, 1, &limits, print_byte, NULL, NULL, &err);
    tern_sampler_free(&sampler);
    printf("\n");
    if (status != TERN_OK)
        fprintf(stderr, "own_forward: %s\n", err.message);
    return status == TERN_OK ? 0 : 1;
}
