/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of all kinds, made from a seed. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/write.h"
#include "tests/load/load.h"

static const char *const phrases[] = {
    "Once upon a time",    "What is 2+2?",     "Luna the panda", "The capital of France is",
    "A small robot said:", "One, two, three,", "In a red house", "Grüße aus Köln 👋",
    "def add(a, b):",      "Tell me a story.", "3 + 4 = ",       "She looked at the sea and",
};
enum { N_PHRASES = sizeof phrases / sizeof *phrases };

static json_t *random_text(uint64_t *random) {
    bytes text = {0};
    const uint32_t n = 1 + random_below(random, 1 + random_below(random, 24));
    for (uint32_t i = 0; i < n; i++)
        bytes_print(&text, "%s%s", i > 0 ? " " : "", phrases[random_below(random, N_PHRASES)]);
    json_t *made = json_text(text.data, text.size);
    bytes_free(&text);
    return made;
}

static json_t *random_ids(uint64_t *random) {
    json_t *ids = json_array();
    const uint32_t n = 1 + random_below(random, 150);
    for (uint32_t i = 0; i < n; i++)
        (void)json_array_append_new(ids, json_integer(10 + random_below(random, 500)));
    return ids;
}

static json_t *random_prompt(uint64_t *random) {
    switch (random_below(random, 4)) {
    case 0:
        return random_ids(random);
    case 1:
        return json_pack("[o, o]", random_text(random), random_text(random));
    default:
        return random_text(random);
    }
}

static json_t *random_messages(uint64_t *random) {
    json_t *messages = json_array();
    if (random_below(random, 2) == 0) {
        (void)json_array_append_new(
            messages, json_pack("{s:s, s:s}", "role", "system", "content", "Be brief."));
    }
    for (uint32_t n = random_below(random, 3); n > 0; n--) {
        (void)json_array_append_new(
            messages, json_pack("{s:s, s:o}", "role", "user", "content", random_text(random)));
        (void)json_array_append_new(
            messages, json_pack("{s:s, s:s}", "role", "assistant", "content", "Yes."));
    }
    (void)json_array_append_new(
        messages, json_pack("{s:s, s:o}", "role", "user", "content", random_text(random)));
    return messages;
}

/* Adds the fields for sampling and for the end of the answer. */
static void add_fields(recipe *r, uint64_t *random, uint32_t most) {
    static const double temperatures[] = {0.0, 0.0, 0.7, 1.0, 1.3};
    const uint32_t kind = random_below(random, 8);
    json_t *b = r->body;
    (void)json_object_set_new(b, "temperature", json_real(temperatures[random_below(random, 5)]));
    (void)json_object_set_new(b, "seed", json_integer(random_below(random, 1000)));
    (void)json_object_set_new(b, "max_tokens", json_integer(1 + random_below(random, most)));
    (void)json_object_set_new(b, "ignore_eos", json_boolean(random_below(random, 2) == 0));
    if (kind == 0) {
        (void)json_object_set_new(b, "n", json_integer(2 + random_below(random, 3)));
    } else if (kind == 1) {
        (void)json_object_set_new(b, "stop", json_pack("[s, s]", " the", "."));
    } else if (kind == 2) {
        (void)json_object_set_new(b, "frequency_penalty", json_real(0.5));
        (void)json_object_set_new(b, "repetition_penalty", json_real(1.1));
    } else if (kind == 3) {
        const bool chat = json_object_get(b, "messages") != NULL;
        (void)json_object_set_new(b, "logprobs", chat ? json_boolean(true) : json_integer(20));
        if (chat)
            (void)json_object_set_new(b, "top_logprobs", json_integer(20));
        (void)json_object_set_new(b, "n", json_integer(4)); /* more than fits into a socket */
    } else if (kind == 4) {
        (void)json_object_set_new(b, "top_p", json_real(0.9));
        (void)json_object_set_new(b, "top_k", json_integer(40));
    } else if (kind == 5) {
        (void)json_object_set_new(b, "max_tokens", json_integer(-1)); /* it ends by itself */
        (void)json_object_set_new(b, "ignore_eos", json_boolean(false));
    }
}

recipe *recipes_new(size_t n, uint64_t seed, uint32_t most) {
    recipe *recipes = calloc(n, sizeof *recipes);
    for (size_t i = 0; recipes != NULL && i < n; i++) {
        const bool chat = random_below(&seed, 2) == 0;
        recipes[i].path = chat ? "/v1/chat/completions" : "/v1/completions";
        recipes[i].body = json_pack("{s:o}", chat ? "messages" : "prompt",
                                    chat ? random_messages(&seed) : random_prompt(&seed));
        add_fields(&recipes[i], &seed, most);
    }
    return recipes;
}

recipe *recipes_even(size_t n, uint32_t prompt, uint32_t tokens) {
    recipe *recipes = calloc(n, sizeof *recipes);
    for (size_t i = 0; recipes != NULL && i < n; i++) {
        json_t *ids = json_array();
        for (uint32_t k = 0; k < prompt; k++)
            (void)json_array_append_new(ids, json_integer((json_int_t)(10 + i + k)));
        recipes[i].path = "/v1/completions";
        recipes[i].body = json_pack("{s:o, s:i, s:b, s:i}", "prompt", ids, "max_tokens",
                                    (int)tokens, "ignore_eos", 1, "temperature", 0);
    }
    return recipes;
}

void recipes_free(recipe *recipes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        json_decref(recipes[i].body);
        answer_clear(&recipes[i].expected);
    }
    free(recipes);
}

void recipe_write(const recipe *r, bool stream, bytes *out) {
    json_t *asked = json_deep_copy(r->body);
    if (stream) {
        (void)json_object_set_new(asked, "stream", json_boolean(true));
        (void)json_object_set_new(asked, "stream_options", json_pack("{s:b}", "include_usage", 1));
    }
    char *body = json_dump(asked, (json_style){0});
    json_decref(asked);
    if (body == NULL) {
        (void)fprintf(stderr, "load: no memory for a request\n");
        exit(1);
    }
    bytes_print(out,
                "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                "Content-Length: %zu\r\n\r\n",
                r->path, strlen(body));
    bytes_add(out, body, strlen(body));
    free(body);
}

void page_write(const char *path, bytes *out) {
    bytes_print(out, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
}
