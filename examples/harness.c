/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes an engine, answers a prompt, prints what was measured as one line of JSON, and frees the
 * engine. The prompt is answered twice, so that the second answer finds pages of the first one when
 * it is longer than 64 tokens. Valid as C11 and as C++17.
 *
 *     cc harness.c $(pkg-config --cflags --libs tern) -o harness
 *     ./harness model.gguf 'Once upon a time' 32
 */
#include <stdio.h>
#include <stdlib.h>

#include <tern/ie_engine.h>

static tern_error err;

static void check(tern_status status) {
    if (status == TERN_OK)
        return;
    fprintf(stderr, "harness: %s\n", err.message);
    exit(1);
}

/* UTF-8 as a JSON string. */
static void print_string(const char *text, size_t size) {
    putchar('"');
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 0x20)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void print_line(const ie_answer_t *a, const ie_metrics_t *m) {
    printf("{\"text\":");
    print_string(a->text, a->size);
    printf(",\"end\":\"%s\",\"digest\":\"%s\"", tern_end_name(a->end), a->digest);
    printf(",\"answers\":%llu", (unsigned long long)m->answers);
    printf(",\"prompt_tokens\":%llu", (unsigned long long)m->prompt_tokens);
    printf(",\"generated_tokens\":%llu", (unsigned long long)m->generated_tokens);
    printf(",\"prefix_hits\":%llu", (unsigned long long)m->prefix_hits);
    printf(",\"prefix_misses\":%llu", (unsigned long long)m->prefix_misses);
    printf(",\"first_token_ms\":%.3f,\"p50_ms\":%.3f", m->first_token_ms, m->p50_ms);
    printf(",\"p95_ms\":%.3f,\"tokens_per_second\":%.3f", m->p95_ms, m->tokens_per_second);
    printf(",\"peak_rss_mib\":%.1f}\n", m->peak_rss_mib);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: harness MODEL PROMPT TOKENS\n");
        return 2;
    }
    static ie_engine_config_t config; /* static: members that are not set are zero */
    ie_engine_t *engine = NULL;
    ie_answer_t answer;
    ie_metrics_t metrics;
    config.model = argv[1];
    check(ie_engine_create(&config, &engine, &err));
    for (int i = 0; i < 2; i++)
        check(ie_engine_generate(engine, argv[2], strtoul(argv[3], NULL, 10), NULL, &answer, &err));
    check(ie_engine_metrics(engine, &metrics, &err));
    print_line(&answer, &metrics);
    ie_engine_destroy(&engine);
    return 0;
}
