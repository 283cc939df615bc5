/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/template/template.h"

#include "runtime/text/template/input.h"

static bool run(tern_tpl *x, tern_span source, const tern_template_input *input, tern_tpl_way way,
                tern_tpl_calls *calls, tern_tpl_buffer *out) {
    const tern_tpl_node *whole = tern_tpl_parse(x, source);
    tern_tpl_frame *names = whole != NULL ? tern_tpl_frame_new(x, NULL) : NULL;
    tern_tpl_frame *own = names != NULL ? tern_tpl_frame_new(x, names) : NULL;
    return own != NULL && tern_tpl_add_functions(x, names) &&
           tern_tpl_add_input(x, names, input, way, calls) &&
           tern_tpl_exec(x, own, whole->body, out);
}

static tern_status failure(const tern_tpl *x, tern_error *err) {
    return tern_fail(err, x->error.status, "%s", x->error.message);
}

/* One attempt. A template that cannot be run in this way may be run in another one. */
static tern_status attempt(tern_span source, const tern_template_input *input, tern_tpl_way way,
                           tern_tpl_calls *calls, tern_marked_text *out, tern_error *err) {
    tern_tpl x = {.limits = input->limits != NULL ? *input->limits : tern_tpl_usual,
                  .now = input->now};
    tern_tpl_buffer text = {.x = &x};
    const bool done = run(&x, source, input, way, calls, &text);
    const tern_span bytes = {text.bytes, text.size};
    const tern_status status =
        done ? tern_marked_add_marks(out, bytes, text.marks, x.limits.output) : failure(&x, err);
    if (done && status != TERN_OK)
        (void)tern_fail(err, status, "no memory for a text of %zu bytes", text.size);
    tern_tpl_free(&x);
    return status;
}

tern_status tern_template_run(tern_span source, const tern_template_input *input,
                              tern_marked_text *out, tern_error *err) {
    static const tern_tpl_way ways[] = {{.objects = true},
                                        {.contents = false},
                                        {.objects = true, .contents = true},
                                        {.contents = true}};
    tern_tpl_calls calls = {0};
    tern_status status = attempt(source, input, ways[0], &calls, out, err);
    for (size_t i = 1; i < sizeof ways / sizeof *ways && status == TERN_ERR_TEMPLATE; i++)
        if ((ways[i].objects || calls.objects) && (!ways[i].contents || calls.silent))
            status = attempt(source, input, ways[i], &calls, out, err);
    return status;
}

tern_status tern_template_check(tern_span source, tern_error *err) {
    tern_tpl x = {.limits = tern_tpl_usual};
    const tern_status status = tern_tpl_parse(&x, source) != NULL ? TERN_OK : failure(&x, err);
    tern_tpl_free(&x);
    return status;
}
