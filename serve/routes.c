/* SPDX-License-Identifier: Apache-2.0 */
/* The table of routes. Each can be asked with and without /v1 before it. */

#include <stdio.h>
#include <string.h>

#include "serve/interfaces/ollama.h"
#include "serve/server_internal.h"

#define SAYS(reply_, what_) .reply = reply_, .what = what_
#define POSTS(path_, handle_) .method = "POST", .path = path_, .handle = handle_, .reads_body = true
#define PAGE(path_, handle_, open_, reply_, what_)                                                 \
    { .method = "GET", .path = path_, .handle = handle_, .open = open_, SAYS(reply_, what_) }
#define OF_MODEL(path_, handle_, reply_, what_)                                                    \
    { .method = "GET", .path = path_, .handle = handle_, .of_model = true, SAYS(reply_, what_) }
#define FILE_OF_PAGE(path_, handle_) PAGE(path_, handle_, true, NULL, NULL)
#define ASKS(path_, handle_, kind_, reply_, what_)                                                 \
    { POSTS(path_, handle_), .kind = kind_, .streams = true, SAYS(reply_, what_) }
#define VECTORS(path_, handle_, kind_, reply_, what_)                                              \
    { POSTS(path_, handle_), .kind = kind_, SAYS(reply_, what_) }
#define COUNT(path_, handle_, kind_, reply_)                                                       \
    VECTORS(path_, handle_, kind_, reply_, "tokens of a prompt")
#define TAKES(path_, handle_, body_, reply_, what_)                                                \
    { POSTS(path_, handle_), .body = body_, SAYS(reply_, what_) }

/* Routes of Ollama's interface. Those that read the model's file are left to the readers. */
#define LISTS(path_, handle_, reply_, what_)                                                       \
    {                                                                                              \
        .method = "GET", .path = path_, .handle = handle_, .reads_body = true, .any_type = true,   \
        .no_model = true, SAYS(reply_, what_)                                                      \
    }
#define OLLAMA(path_, handle_, ollama_, streams_, reply_, what_)                                   \
    {                                                                                              \
        POSTS(path_, handle_), .any_type = true, .ollama = ollama_, .streams = streams_,           \
                               SAYS(reply_, what_)                                                 \
    }
#define OLLAMA_NAMED(path_, handle_, body_, reply_, what_)                                         \
    { POSTS(path_, handle_), .any_type = true, .body = body_, SAYS(reply_, what_) }
#define OLLAMA_NOT(path_)                                                                          \
    { POSTS(path_, ollama_refuse), .any_type = true, .no_model = true }

#define MESSAGES "messages:[{role:s,content:s|[{type:s,text:s}]}]"
#define PROPS                                                                                      \
    "{model:s,model_alias:s,model_path:s,system_fingerprint:s,build_info:s,chat_format:s,"         \
    "bos_token:s,eos_token:s,modalities:{vision:b,audio:b},total_slots:i,endpoint_slots:b,"        \
    "endpoint_metrics:b,endpoint_props:b,default_generation_settings:{n_ctx:i,params:@settings}}"

#define TO_RERANK                                                                                  \
    "{model?:s,query:s,documents?:[s|{text:s}],texts?:[s],top_n?:i,return_documents?:b,"           \
    "return_text?:b,raw_scores?:b}"
#define ADAPTERS "[{id:i,path:s,sha256:s,rank:i,scale:n}]"
#define TOKENIZER "{model_max_length:i,vocab_size:i,bos_token:s|~,eos_token:s|~}"
#define NATIVE_VECTORS "[{index:i,embedding:[[n]|s]}]"
#define TO_TOKENIZE                                                                                \
    "{content?:s|[s|i],add_special?:b,parse_special?:b,with_pieces?:b,prompt?:s|[s|i],add_"        \
    "special_tokens?:b}"

static const route routes[] = {
    PAGE("/", page_home, true, "s", "a page to chat on for browsers, a short text for others"),
    FILE_OF_PAGE("/page/*", page_part),
    PAGE("/health", page_health, true, "{status:\"ok\"}", "the program lives"),
    PAGE("/ready", page_ready, true, "{status:\"ready\"}", "requests are taken"),
    PAGE("/openapi.json", page_openapi, true, "{*:*}", "this description"),
    PAGE("/models", page_models, true, "{object:\"list\",data:[@model]}", "the models, as a list"),
    PAGE("/models/*", page_model, true, "@model", "one of them"),
    OF_MODEL("/props", page_props, PROPS, "what counts where a request says nothing"),
    OF_MODEL("/tokenizer_info", page_tokenizer, TOKENIZER, "control tokens, in the form of vLLM"),
    PAGE("/slots", page_slots, false, "[@slot]", "places for answers"),
    {POSTS("/slots/*", answer_slot), .any_type = true, .body = "{filename?:s,model?:s}",
     SAYS("{id_slot:i,filename?:s,n_saved?:i,n_written?:i,n_restored?:i,n_read?:i,n_erased?:i,"
          "timings?:{save_ms?:n,restore_ms?:n}}",
          "saves, restores or erases what a place held, in the form of llama.cpp")},
    OF_MODEL("/lora-adapters", page_adapters, ADAPTERS, "the adapters, in the form of llama.cpp"),
    {POSTS("/lora-adapters", answer_adapters), .any_type = true, .body = "[{id:i,scale:n}]",
     SAYS(ADAPTERS, "sets the scales for requests that say none")},
    PAGE("/metrics", page_metrics, false, "s", "figures for Prometheus"),
    ASKS("/chat/completions", answer_chat, ASK_CHAT, "@chat_completion",
         "continues a conversation"),
    ASKS("/completions", answer_completion, ASK_COMPLETION, "@text_completion",
         "continues texts, or token ids"),
    ASKS("/responses", answer_response, ASK_RESPONSE, "@response",
         "continues a conversation, in the form of responses"),
    PAGE("/responses/*", kept_response, false, "@response", "a response that is kept"),
    {.method = "DELETE",
     .path = "/responses/*",
     .handle = kept_response_delete,
     SAYS("{id:s,object:\"response\",deleted:b}", "gives a response up that is kept")},
    {.method = "POST",
     .path = "/responses/*/cancel",
     .handle = kept_response_cancel,
     SAYS("@response", "refused: a response ends when its connection is closed")},
    ASKS("/messages", answer_message, ASK_MESSAGE, "@message",
         "continues a conversation, in the form of Anthropic"),
    ASKS("/completion", answer_native, ASK_NATIVE, "@completion|[@completion]",
         "continues texts, in the form of llama.cpp"),
    {POSTS("/infill", answer_infill), .kind = ASK_NATIVE, .gap = true, .streams = true,
     SAYS("@completion", "fills in what is missing between two texts, in the form of llama.cpp")},
    COUNT("/chat/completions/input_tokens", answer_count_chat, ASK_CHAT, "{input_tokens:i}"),
    COUNT("/responses/input_tokens", answer_count_response, ASK_RESPONSE,
          "{object:\"response.input_tokens\",input_tokens:i}"),
    COUNT("/messages/count_tokens", answer_count_message, ASK_MESSAGE, "{input_tokens:i}"),
    VECTORS("/embeddings", answer_embeddings, ASK_EMBEDDING, "@embeddings|" NATIVE_VECTORS,
            "vectors of texts, where the model makes them"),
    VECTORS("/embedding", answer_native_embedding, ASK_NATIVE_EMBEDDING, NATIVE_VECTORS,
            "the same, in the form of llama.cpp"),
    TAKES("/rerank", answer_rerank, TO_RERANK, "@ranked|[@ranked_text]",
          "documents in the order in which they fit a query"),
    TAKES("/reranking", answer_rerank, TO_RERANK, "@ranked|[@ranked_text]",
          "the same, by llama.cpp's name"),
    TAKES("/tokenize", answer_tokenize, TO_TOKENIZE,
          "{tokens:[i|{id:i,piece:s}],count:i,max_model_len:i}", "tokens of a text"),
    TAKES("/detokenize", answer_detokenize, "{tokens:[i]}", "{content:s,prompt:s}",
          "the text of tokens"),
    TAKES("/apply-template", answer_template, "{" MESSAGES ",tools?:[*]}", "{prompt:s,tokens:[i]}",
          "what the model reads of a conversation"),
    OLLAMA("/api/chat", ollama_chat, OLLAMA_CHAT, true, "@ollama_chat|@ollama_loaded",
           "continues a conversation, in the form of Ollama"),
    OLLAMA("/api/generate", ollama_generate, OLLAMA_GENERATE, true, "@ollama_text|@ollama_loaded",
           "answers a text, in the form of Ollama"),
    OLLAMA("/api/embed", ollama_embed, OLLAMA_EMBED, false, "@ollama_vectors",
           "vectors of texts, in the form of Ollama"),
    OLLAMA("/api/embeddings", ollama_embeddings, OLLAMA_EMBEDDING, false, "@ollama_vector",
           "the vector of a text, in the older form of Ollama"),
    LISTS("/api/tags", ollama_tags, "{models:[@ollama_model]}", "the models, as Ollama's list"),
    LISTS("/api/ps", ollama_ps, "{models:[@ollama_model]}", "the models that are loaded"),
    OLLAMA_NAMED("/api/show", ollama_show, "{model?:s,name?:s,verbose?:b}", "@ollama_shown",
                 "describes a model, in the form of Ollama"),
    PAGE("/api/version", ollama_version, true, "{version:s,tern:s}",
         "the version of Ollama's interface"),
    {POSTS("/api/pull", ollama_pull), .any_type = true, .no_model = true, .streams = true,
     .body = "{model?:s,name?:s,stream?:b}",
     SAYS("{status:s}", "fetches a model, or says that it is here")},
    OLLAMA_NOT("/api/create"),
    OLLAMA_NOT("/api/copy"),
    OLLAMA_NOT("/api/push"),
    {.method = "DELETE",
     .path = "/api/delete",
     .handle = ollama_delete,
     .reads_body = true,
     .no_model = true,
     .any_type = true},
};

const route *route_at(size_t i) {
    return i < sizeof routes / sizeof *routes ? &routes[i] : NULL;
}

/* True if a route has this path. A star in the route's path matches a name. */
static bool fits(const route *r, const char *path) {
    const size_t n = strcspn(r->path, "*");
    if (r->path[n] == '\0')
        return strcmp(path, r->path) == 0;
    const size_t rest = strlen(r->path + n + 1);
    const size_t all = strlen(path);
    return all > n + rest && strncmp(path, r->path, n) == 0 &&
           strcmp(path + all - rest, r->path + n + 1) == 0;
}

const route *route_find(const char *method, const char *path, char *methods, size_t size) {
    const route *found = NULL;
    size_t used = 0;
    if (strncmp(path, "/v1/", 4) == 0 || strcmp(path, "/v2/rerank") == 0) /* Cohere's newer path */
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
