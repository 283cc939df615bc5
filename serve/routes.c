/* SPDX-License-Identifier: Apache-2.0 */
/* The table of routes. Each can be asked with and without /v1 before it. */

#include <stdio.h>
#include <string.h>

#include "serve/server_internal.h"

#define PAGE(path, handle, open, reply, what)                                                      \
    { "GET", path, handle, false, open, 0, NULL, false, reply, what }
#define FILE_OF_PAGE(path, handle) PAGE(path, handle, true, NULL, NULL)
#define ASKS(path, handle, kind, reply, what)                                                      \
    { "POST", path, handle, true, false, kind, NULL, true, reply, what }
#define VECTORS(path, handle, kind, reply, what)                                                   \
    { "POST", path, handle, true, false, kind, NULL, false, reply, what }
#define COUNT(path, handle, kind, reply)                                                           \
    { "POST", path, handle, true, false, kind, NULL, false, reply, "tokens of a prompt" }
#define TAKES(path, handle, body, reply, what)                                                     \
    { "POST", path, handle, true, false, 0, body, false, reply, what }

#define MESSAGES "messages:[{role:s,content:s|[{type:s,text:s}]}]"
#define PROPS                                                                                      \
    "{model:s,model_alias:s,model_path:s,system_fingerprint:s,build_info:s,chat_format:s,"         \
    "bos_token:s,eos_token:s,modalities:{vision:b,audio:b},total_slots:i,endpoint_slots:b,"        \
    "endpoint_metrics:b,endpoint_props:b,default_generation_settings:{n_ctx:i,params:@settings}}"

#define TOKENIZER "{model_max_length:i,vocab_size:i,bos_token:s|~,eos_token:s|~}"
#define TO_TOKENIZE                                                                                \
    "{content?:s,add_special?:b,parse_special?:b,with_pieces?:b,prompt?:s,add_special_tokens?:b}"

static const route routes[] = {
    PAGE("/", page_home, true, "s", "a page to chat on for browsers, a short text for others"),
    FILE_OF_PAGE("/page/*", page_part),
    PAGE("/health", page_health, true, "{status:\"ok\"}", "the program lives"),
    PAGE("/ready", page_ready, true, "{status:\"ready\"}", "requests are taken"),
    PAGE("/openapi.json", page_openapi, true, "{*:*}", "this description"),
    PAGE("/models", page_models, true, "{object:\"list\",data:[@model]}", "the model, as a list"),
    PAGE("/models/*", page_model, true, "@model", "the model"),
    PAGE("/props", page_props, false, PROPS, "what counts where a request says nothing"),
    PAGE("/tokenizer_info", page_tokenizer, false, TOKENIZER,
         "control tokens, in the form of vLLM"),
    PAGE("/slots", page_slots, false, "[@slot]", "places for answers"),
    PAGE("/metrics", page_metrics, false, "s", "figures for Prometheus"),
    ASKS("/chat/completions", answer_chat, ASK_CHAT, "@chat_completion",
         "continues a conversation"),
    ASKS("/completions", answer_completion, ASK_COMPLETION, "@text_completion",
         "continues texts, or token ids"),
    ASKS("/responses", answer_response, ASK_RESPONSE, "@response",
         "continues a conversation; nothing is kept"),
    ASKS("/messages", answer_message, ASK_MESSAGE, "@message",
         "continues a conversation, in the form of Anthropic"),
    ASKS("/completion", answer_native, ASK_NATIVE, "@completion|[@completion]",
         "continues texts, in the form of llama.cpp"),
    COUNT("/chat/completions/input_tokens", answer_count_chat, ASK_CHAT, "{input_tokens:i}"),
    COUNT("/responses/input_tokens", answer_count_response, ASK_RESPONSE,
          "{object:\"response.input_tokens\",input_tokens:i}"),
    COUNT("/messages/count_tokens", answer_count_message, ASK_MESSAGE, "{input_tokens:i}"),
    VECTORS("/embeddings", answer_embeddings, ASK_EMBEDDING, "@embeddings",
            "vectors of texts, where the model makes them"),
    VECTORS("/embedding", answer_native_embedding, ASK_NATIVE_EMBEDDING,
            "[{index:i,embedding:[[n]|s]}]", "the same, in the form of llama.cpp"),
    TAKES("/tokenize", answer_tokenize, TO_TOKENIZE,
          "{tokens:[i|{id:i,piece:s}],count:i,max_model_len:i}", "tokens of a text"),
    TAKES("/detokenize", answer_detokenize, "{tokens:[i]}", "{content:s,prompt:s}",
          "the text of tokens"),
    TAKES("/apply-template", answer_template, "{" MESSAGES ",tools?:[*]}", "{prompt:s,tokens:[i]}",
          "what the model reads of a conversation"),
};

const route *route_at(size_t i) {
    return i < sizeof routes / sizeof *routes ? &routes[i] : NULL;
}

/* True if a route has this path. A star at the end of the route's path matches a name. */
static bool fits(const route *r, const char *path) {
    const size_t n = strcspn(r->path, "*");
    if (r->path[n] == '\0')
        return strcmp(path, r->path) == 0;
    return strncmp(path, r->path, n) == 0 && path[n] != '\0';
}

const route *route_find(const char *method, const char *path, char *methods, size_t size) {
    const route *found = NULL;
    size_t used = 0;
    if (strncmp(path, "/v1/", 4) == 0)
        path += 3;
    else if (strcmp(path, "/v1") == 0)
        path = "/"; /* the base URL of clients, opened in a browser */
    if (strcmp(method, "HEAD") == 0)
        method = "GET";
    methods[0] = '\0';
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (!fits(&routes[i], path))
            continue;
        const bool get = strcmp(routes[i].method, "GET") == 0;
        used += (size_t)snprintf(methods + used, size - used, "%s%s%s", used > 0 ? "" : "OPTIONS",
                                 get ? ", GET, HEAD" : ", ", get ? "" : routes[i].method);
        if (strcmp(method, routes[i].method) == 0)
            found = &routes[i];
    }
    return found;
}

void route_list(text *out) {
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (routes[i].what != NULL)
            text_print(out, "  %-4s %-31s %s\n", routes[i].method, routes[i].path, routes[i].what);
}
