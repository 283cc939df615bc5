/* SPDX-License-Identifier: Apache-2.0 */
/* The table of routes, each with and without /v1 before it. */

#include <stdio.h>
#include <string.h>

#include "serve/server_internal.h"

static const route routes[] = {
    {"GET", "/", page_home, false, true},
    {"GET", "/health", page_health, false, true},
    {"GET", "/ready", page_ready, false, true},
    {"GET", "/models", page_models, false, true},
    {"GET", "/models/*", page_model, false, true},
    {"GET", "/props", page_props, false, false},
    {"GET", "/slots", page_slots, false, false},
    {"GET", "/metrics", page_metrics, false, false},
    {"POST", "/chat/completions", answer_chat, true, false},
    {"POST", "/chat/completions/input_tokens", answer_count_chat, true, false},
    {"POST", "/completions", answer_completion, true, false},
    {"POST", "/completion", answer_native, true, false},
    {"POST", "/responses", answer_response, true, false},
    {"POST", "/responses/input_tokens", answer_count_response, true, false},
    {"POST", "/messages", answer_message, true, false},
    {"POST", "/messages/count_tokens", answer_count_message, true, false},
    {"POST", "/embeddings", answer_embeddings, true, false},
    {"POST", "/tokenize", answer_tokenize, true, false},
    {"POST", "/detokenize", answer_detokenize, true, false},
    {"POST", "/apply-template", answer_template, true, false},
};

/* Whether a path is a route's; a star at its end stands for one more name. */
static bool fits(const route *r, const char *path) {
    const size_t n = strcspn(r->path, "*");
    if (r->path[n] == '\0') {
        return strcmp(path, r->path) == 0;
    }
    return strncmp(path, r->path, n) == 0 && path[n] != '\0';
}

const route *route_find(const char *method, const char *path, char *methods, size_t size) {
    const route *found = NULL;
    size_t used = 0;
    if (strncmp(path, "/v1/", 4) == 0) {
        path += 3;
    }
    if (strcmp(method, "HEAD") == 0) {
        method = "GET";
    }
    methods[0] = '\0';
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (!fits(&routes[i], path)) {
            continue;
        }
        used += (size_t)snprintf(methods + used, size - used, "%s%s", used > 0 ? ", " : "",
                                 routes[i].method);
        if (strcmp(method, routes[i].method) == 0) {
            found = &routes[i];
        }
    }
    return found;
}

void route_list(text *out) {
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        text_print(out, "  %-4s %s\n", routes[i].method, routes[i].path);
    }
}
