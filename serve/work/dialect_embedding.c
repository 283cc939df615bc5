/* SPDX-License-Identifier: Apache-2.0 */
/* Embeddings, in the dialects of OpenAI and llama.cpp. */

#include "serve/work/dialect.h"

static void write_numbers(const float *x, size_t n, text *out) {
    for (size_t i = 0; i < n; i++) {
        text_add(out, i > 0 ? "," : "[", 1);
        text_float(out, x[i]);
    }
    text_add(out, "]", 1);
}

/* Writes floats as base64. Clients read the bytes as little-endian floats, which they are on every
 * machine that tern runs on. */
static void write_base64(const float *x, size_t n, text *out) {
    text_add(out, "\"", 1);
    text_base64(out, x, n * sizeof *x);
    text_add(out, "\"", 1);
}

void dialect_write_vector(job *j, size_t i, bool normalized) {
    text *held = &j->choices[i].vector;
    float *x = (float *)(void *)held->bytes;
    const size_t n = j->ask.dimensions;
    j->out.failed = j->out.failed || held->failed;
    if (j->out.failed)
        return;
    if (normalized)
        tern_embedding_normalize(x, n, x);
    if (j->ask.base64)
        write_base64(x, n, &j->out);
    else
        write_numbers(x, n, &j->out);
}

void dialect_write_vector_tern(job *j) {
    text *out = &j->out;
    dialect_add(out, ",\"tern\":{");
    text_string(out, "system_fingerprint", j->place.fingerprint);
    dialect_add(out, ",\"digest\":[");
    for (size_t i = 0; i < j->n_choices; i++)
        text_print(out, "%s\"%s\"", i > 0 ? "," : "", j->choices[i].digest);
    dialect_add(out, "],\"effective\":{");
    text_string(out, "pooling", tern_pooling_name(j->place.pooling));
    text_print(out, ",\"dimensions\":%u},\"ignored\":[", (unsigned)j->ask.dimensions);
    text_add(out, j->ask.ignored.bytes, j->ask.ignored.size);
    dialect_add(out, "]}");
}

static void write_whole(job *j) {
    text *out = &j->out;
    const dialect_usage usage = dialect_count(j);
    dialect_add(out, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < j->n_choices; i++) {
        text_print(out,
                   "%s{\"object\":\"embedding\",\"index\":%zu,\"embedding\":", i > 0 ? "," : "", i);
        dialect_write_vector(j, i, true);
        dialect_add(out, "}");
    }
    dialect_add(out, "]");
    text_string(out, "model", j->place.model);
    text_print(out, ",\"usage\":{\"prompt_tokens\":%zu,\"total_tokens\":%zu}", usage.n_prompt,
               usage.n_prompt);
    dialect_write_vector_tern(j);
    dialect_add(out, "}");
}

/* Writes a list of vectors for each text. The list has one vector. */
static void write_native(job *j) {
    for (size_t i = 0; i < j->n_choices; i++) {
        text_print(&j->out, "%s{\"index\":%zu,\"embedding\":[", i > 0 ? "," : "[", i);
        dialect_write_vector(j, i, true);
        dialect_add(&j->out, "]}");
    }
    dialect_add(&j->out, "]");
}

const dialect dialect_embedding = {.id = "embd-", .whole = write_whole};
const dialect dialect_native_embedding = {.id = "embd-", .whole = write_native};
