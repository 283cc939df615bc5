/* SPDX-License-Identifier: Apache-2.0 */
/* tern run: a prompt in, text out while it is made, figures at the end. */

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/metrics.h"
#include "tools/commands.h"
#include "tools/json.h"
#include "tools/loader.h"
#include "tools/out.h"

typedef struct run {
    const options *o;
    loaded l;
    prompt prompt;
    tern_sampler *sampler;
    tern_text_stream *stream; /* NULL: the model has no tokenizer, ids are printed */
    bool json;
    bool drop_space; /* at the start of a chat's answer: no part of it */
    int32_t *tokens; /* [capacity] generated */
    size_t n_tokens;
    char *text; /* with --json: what was generated */
    size_t text_size, text_capacity;
    bool out_of_memory;
    tern_generation result;
    uint64_t dequantized; /* weights expanded to floats while generating: must be 0 */
} run;

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal) {
    (void)signal;
    interrupted = 1;
}

/* The first SIGINT ends generation behind the current token, a second one the process. */
static void catch_interrupt(void) {
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
}

static bool keep_text(run *r, const char *bytes, size_t size) {
    if (r->text_capacity - r->text_size < size) {
        const size_t capacity = 2 * r->text_capacity + size + 256;
        char *grown = realloc(r->text, capacity);
        if (grown == NULL) {
            r->out_of_memory = true;
            return false;
        }
        r->text = grown;
        r->text_capacity = capacity;
    }
    if (size > 0) {
        memcpy(r->text + r->text_size, bytes, size);
    }
    r->text_size += size;
    return true;
}

static bool emit(run *r, const char *bytes, size_t size) {
    if (r->drop_space && size > 0) {
        const size_t dropped = *bytes == ' ';
        bytes += dropped;
        size -= dropped;
        r->drop_space = false;
    }
    return r->json ? keep_text(r, bytes, size) : out_write(bytes, size) && out_flush();
}

static bool on_token(int32_t token, double seconds, void *user) {
    (void)seconds;
    run *r = user;
    r->tokens[r->n_tokens++] = token;
    if (r->stream == NULL) {
        return (r->json || (out_print("%d ", token) && out_flush())) && !interrupted;
    }
    size_t size;
    const char *bytes = tern_text_stream_push(r->stream, token, &size);
    return emit(r, bytes, size) && !interrupted;
}

/* ---- figures --------------------------------------------------------------------------------- */

static double rate(size_t n, double seconds) {
    return seconds > 0.0 ? (double)n / seconds : 0.0;
}

static double bandwidth_gbs(const run *r) {
    return rate(r->result.n_generated, r->result.decode_seconds) * (double)r->l.info.weight_bytes *
           1e-9;
}

static const char *stop_name(tern_stop_reason stop) {
    switch (stop) {
    case TERN_STOP_END:
        return "end";
    case TERN_STOP_LENGTH:
        return "length";
    case TERN_STOP_CONTEXT:
        return "context";
    case TERN_STOP_CALLER:
        break;
    }
    return "interrupted";
}

static void print_remarks(const run *r) {
    const tern_generation *g = &r->result;
    (void)fprintf(stderr,
                  "prompt %zu tokens, %.1f/s | generated %zu, %.2f/s, p50 %.2f ms, p95 %.2f ms | "
                  "first after %.1f ms | %.1f GB/s | %.0f MiB | %s, %u threads | stop: %s\n",
                  g->n_prompt, rate(g->n_prompt, g->prefill_seconds), g->n_generated,
                  rate(g->n_generated, g->decode_seconds), g->p50_ms, g->p95_ms,
                  1e3 * g->first_token_seconds, bandwidth_gbs(r), tern_peak_rss_mib(),
                  tern_model_isa(r->l.model), tern_session_threads(r->l.session),
                  stop_name(g->stop));
}

#ifdef TERN_HAVE_JANSSON
static json_t *token_list(const run *r) {
    json_t *list = json_array();
    for (size_t i = 0; i < r->n_tokens; i++) {
        json_array_append_new(list, json_integer(r->tokens[i]));
    }
    return list;
}

static int print_json(const run *r) {
    const tern_generation *g = &r->result;
    const double wall = g->prefill_seconds + g->decode_seconds;
    json_t *root = json_object();
    json_object_set_new(root, "text", json_text(r->text, r->text_size));
    json_object_set_new(root, "tokens", token_list(r));
    json_object_set_new(root, "prompt_tokens", json_integer((json_int_t)g->n_prompt));
    json_object_set_new(root, "generated_tokens", json_integer((json_int_t)g->n_generated));
    json_object_set_new(root, "prefill_tps", json_number(rate(g->n_prompt, g->prefill_seconds)));
    json_object_set_new(root, "decode_tps", json_number(rate(g->n_generated, g->decode_seconds)));
    json_object_set_new(root, "true_tps", json_number(rate(g->n_generated, wall)));
    json_object_set_new(root, "first_token_ms", json_number(1e3 * g->first_token_seconds));
    json_object_set_new(root, "p50_ms", json_number(g->p50_ms));
    json_object_set_new(root, "p95_ms", json_number(g->p95_ms));
    json_object_set_new(root, "rss_mib", json_number(tern_peak_rss_mib()));
    json_object_set_new(root, "bytes_per_token", json_integer((json_int_t)r->l.info.weight_bytes));
    json_object_set_new(root, "bandwidth_gbs", json_number(bandwidth_gbs(r)));
    json_object_set_new(root, "threads", json_integer(tern_session_threads(r->l.session)));
    json_set_kernels(root, &r->l);
    json_object_set_new(root, "seed", json_unsigned(options_integer(r->o, OPT_SEED)));
    json_object_set_new(root, "deterministic",
                        json_boolean(options_switch(r->o, OPT_DETERMINISTIC)));
    json_object_set_new(root, "model", json_text(r->l.info.path, strlen(r->l.info.path)));
    json_object_set_new(root, "stop", json_string(stop_name(g->stop)));
    return json_print(root);
}
#endif

/* ---- the command ----------------------------------------------------------------------------- */

/* What is needed beside the model: sampler, text stream, room for the tokens. */
static int prepare(run *r) {
    const options *o = r->o;
    const tern_sampler_params params = {.temperature = (float)options_real(o, OPT_TEMPERATURE),
                                        .top_k = (uint32_t)options_integer(o, OPT_TOP_K),
                                        .top_p = (float)options_real(o, OPT_TOP_P),
                                        .seed = options_integer(o, OPT_SEED)};
    tern_error err = {0};
    if (tern_sampler_new(&params, r->l.info.n_vocab, &r->sampler, &err) != TERN_OK) {
        return complain_error(&err);
    }
    /* An echoed prompt needs the space behind it. */
    r->drop_space = options_switch(o, OPT_CHAT) && (r->json || !options_switch(o, OPT_ECHO));
    if (r->l.tokenizer != NULL &&
        tern_text_stream_new(r->l.tokenizer, false, &r->stream, &err) != TERN_OK) {
        return complain_error(&err);
    }
    /* The context bounds what can be generated. */
    r->tokens = calloc(tern_session_context(r->l.session), sizeof *r->tokens);
    if (r->tokens == NULL || !keep_text(r, "", 0)) {
        complain("no memory for the generated text");
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

static int generate(run *r) {
    const options *o = r->o;
    tern_error err = {0};
    catch_interrupt();
    const uint64_t before = tern_dequantize_calls();
    const tern_status status = tern_generate(
        r->l.session, r->sampler, r->prompt.ids, r->prompt.n, options_integer(o, OPT_MAX_TOKENS),
        options_switch(o, OPT_IGNORE_EOS), on_token, r, &r->result, &err);
    r->dequantized = tern_dequantize_calls() - before;
    if (status != TERN_OK) {
        return complain_error(&err);
    }
    if (r->stream != NULL) {
        size_t size;
        const char *rest = tern_text_stream_flush(r->stream, &size);
        (void)emit(r, rest, size);
    }
    if (r->out_of_memory) {
        complain("no memory for the generated text");
        return EXIT_FAILED;
    }
    if (options_switch(o, OPT_STRICT) && r->dequantized > 0) {
        complain("strict: %" PRIu64 " rows of weights were expanded to floats", r->dequantized);
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

static int finish(const run *r) {
    if (r->json) {
        const int status = JSON_OR_NOTHING(print_json(r));
        return interrupted && status == EXIT_DONE ? EXIT_INTERRUPTED : status;
    }
    out_print("\n");
    out_flush();
    if (wants_remarks(options_switch(r->o, OPT_VERBOSE))) {
        print_remarks(r);
    }
    return interrupted ? EXIT_INTERRUPTED : EXIT_DONE;
}

int cmd_run(const options *o) {
    run r = {.o = o, .json = options_switch(o, OPT_JSON)};
    int status = loader_open(o, !options_switch(o, OPT_REQUIRE_MODEL), &r.l);
    if (status == EXIT_DONE) {
        status = prompt_read(o, &r.l, &r.prompt);
    }
    if (status == EXIT_DONE) {
        status = prepare(&r);
    }
    if (status == EXIT_DONE) {
        if (options_switch(o, OPT_ECHO) && !r.json && r.prompt.text != NULL) {
            out_write(r.prompt.text, r.prompt.size);
        }
        status = generate(&r);
    }
    if (status == EXIT_DONE) {
        status = finish(&r);
    }
    tern_text_stream_free(&r.stream);
    tern_sampler_free(&r.sampler);
    free(r.tokens);
    free(r.text);
    prompt_free(&r.prompt);
    loader_close(&r.l);
    return status;
}
