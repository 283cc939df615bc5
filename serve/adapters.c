/* SPDX-License-Identifier: Apache-2.0 */
/* GET and POST /lora-adapters, in llama.cpp's form: the model's adapters, and the scales that count
 * for requests that do not say any. */

#include "serve/server_internal.h"

void page_adapters(server *s, http_exchange *x) {
    text t = {0};
    (void)s;
    adapter_scales_write(server_model(x)->scales, &t);
    reply_with(x, 200, "application/json", &t);
}

/* The body is an array, which is read as a member of an object. */
static json_t *parse(http_exchange *x, refusal *r) {
    text t = {0};
    size_t size;
    const char *bytes = http_body(x, &size);
    text_print(&t, "{\"lora\":");
    text_add(&t, bytes, size);
    text_print(&t, "}");
    json_t *body = t.failed ? NULL : ask_parse(t.bytes, t.size, "the body", r);
    if (t.failed)
        (void)refuse(r, 503, NULL, "no memory for the body");
    text_free(&t);
    return body;
}

void answer_adapters(server *s, http_exchange *x) {
    refusal r = {0};
    adapter_uses uses;
    adapter_scales *scales = server_model(x)->scales;
    json_t *body = parse(x, &r);
    if (body == NULL || !adapter_uses_read(scales, json_object_get(body, "lora"), &uses, &r)) {
        refusal_reply(&r, x);
    } else {
        adapter_scales_set(scales, &uses);
        page_adapters(s, x);
    }
    json_decref(body);
}
