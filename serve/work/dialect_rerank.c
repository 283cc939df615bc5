/* SPDX-License-Identifier: Apache-2.0 */
/* Documents in the order in which they fit a query: as Jina and Cohere write it, or, for requests
 * with `texts`, as text-embeddings-inference does. */

#include <stdlib.h>
#include <string.h>

#include "serve/work/dialect.h"

typedef struct scored {
    size_t index;
    double score; /* the cosine of both vectors, or what the model's head says of the pair */
} scored;

static int by_score(const void *a, const void *b) {
    const scored *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* The vector of a choice, normalized to length 1. */
static const float *vector_of(job *j, size_t i) {
    float *v = (float *)(void *)j->choices[i].vector.bytes;
    tern_embedding_normalize(v, j->ask.dimensions, v);
    return v;
}

static double cosine(job *j, const float *query, size_t i) {
    const float *v = vector_of(j, i);
    double sum = 0.0;
    for (size_t k = 0; k < j->ask.dimensions; k++)
        sum += (double)query[k] * (double)v[k];
    return sum;
}

/* The head's score of a pair; text-embeddings-inference sends its logistic function. */
static double score_of_pair(const job *j, size_t i) {
    float x;
    memcpy(&x, j->choices[i].vector.bytes, sizeof x);
    return (double)(j->ask.rerank.raw ? x : tern_rank_probability(x));
}

/* Scores all documents, the best first. NULL: there is no memory. */
static scored *score_all(job *j, size_t n) {
    const bool pairs = j->ask.rerank.pairs;
    scored *list = malloc((n + 1) * sizeof *list);
    for (size_t i = 0; i < j->n_choices; i++)
        j->out.failed = j->out.failed || list == NULL || j->choices[i].vector.failed;
    if (j->out.failed) {
        free(list);
        return NULL;
    }
    const float *query = pairs ? NULL : vector_of(j, 0);
    for (size_t i = 0; i < n; i++)
        list[i] =
            (scored){.index = i, .score = pairs ? score_of_pair(j, i) : cosine(j, query, i + 1)};
    qsort(list, n, sizeof *list, by_score);
    return list;
}

static void write_result(job *j, const scored *one) {
    const bool plain = j->ask.rerank.plain;
    text *out = &j->out;
    text_print(out, "{\"index\":%zu", one->index);
    text_real(out, plain ? "score" : "relevance_score", (float)one->score);
    if (j->ask.rerank.texts) {
        const ask_prompt *said = &j->ask.prompts[one->index + !j->ask.rerank.pairs];
        dialect_add(out, plain ? ",\"text\":" : ",\"document\":{\"text\":");
        text_quote(out, said->given, said->given_size);
        dialect_add(out, plain ? "" : "}");
    }
    dialect_add(out, "}");
}

static void write_whole(job *j) {
    const size_t n = j->n_choices - !j->ask.rerank.pairs;
    const size_t top = j->ask.rerank.top < n ? j->ask.rerank.top : n;
    const size_t tokens = dialect_count(j).n_prompt;
    scored *list = score_all(j, n);
    dialect_add(&j->out, j->ask.rerank.plain ? "[" : "{\"object\":\"list\",\"results\":[");
    for (size_t i = 0; i < top && list != NULL; i++) {
        dialect_add(&j->out, i > 0 ? "," : "");
        write_result(j, &list[i]);
    }
    free(list);
    dialect_add(&j->out, "]");
    if (j->ask.rerank.plain)
        return;
    text_string(&j->out, "model", j->place.model);
    text_print(&j->out, ",\"usage\":{\"prompt_tokens\":%zu,\"total_tokens\":%zu}", tokens, tokens);
    dialect_write_vector_tern(j);
    dialect_add(&j->out, "}");
}

const dialect dialect_rerank = {.id = "rerank-", .whole = write_whole};
