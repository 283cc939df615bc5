/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse blocks on the command line: the rule that chooses them, and what it costs. */

#include <inttypes.h>
#include <stdlib.h>

#include "tools/cli/json_line.h"
#include "tools/cli/output.h"
#include "tools/cli/targets.h"
#include "tools/reformat/command.h"

/* Reads "16,64": two sizes of at least 1. */
static tern_status read_pair(const char *text, const char *option, uint32_t pair[2],
                             tern_error *err) {
    char *end;
    const unsigned long long rows = strtoull(text, &end, 10);
    const unsigned long long cols = *end == ',' ? strtoull(end + 1, &end, 10) : 0;
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || rows == 0 || cols == 0 ||
        rows > UINT32_MAX || cols > UINT32_MAX)
        return tern_fail(err, TERN_ERR_ARG, "%s: '%s' is not a pair of sizes such as 16,64", option,
                         text);
    pair[0] = (uint32_t)rows;
    pair[1] = (uint32_t)cols;
    return TERN_OK;
}

static tern_status read_choice(const options *o, convert_sparse_rule *rule, tern_error *err) {
    uint32_t sides[2] = {0};
    const tern_status status = read_pair(options_text(o, OPT_BLOCK), "--block", sides, err);
    rule->block_rows = sides[0];
    rule->block_cols = sides[1];
    rule->threshold = (float)options_real(o, OPT_THRESHOLD);
    rule->keep = options_real(o, OPT_KEEP);
    return status;
}

/* Options for other formats are refused, because all other tensors stay in the model's file. */
static tern_status check_sidecar(const options *o, tern_error *err) {
    static const option_id others[] = {OPT_TYPE, OPT_EMBEDDING_TYPE, OPT_OUTPUT_TYPE, OPT_Q4_MAP,
                                       OPT_IMATRIX};
    if (!options_given(o, OPT_SPARSE))
        return tern_fail(err, TERN_ERR_ARG, "--to sidecar needs --sparse LAYERS, such as ffn_down");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (options_given(o, others[i]))
            return tern_fail(err, TERN_ERR_ARG,
                             "--to sidecar writes sparse layers of the model as it is: no --%s",
                             option_describe(others[i])->name);
    return TERN_OK;
}

tern_status convert_read_rule(const options *o, convert_sparse_rule *rule, tern_error *err) {
    *rule = (convert_sparse_rule){.layers = options_text(o, OPT_SPARSE)};
    const tern_status status = convert_to_sidecar(o) ? check_sidecar(o, err) : TERN_OK;
    if (status != TERN_OK || rule->layers == NULL)
        return status;
    if (!convert_to_folder(o) && !options_switch(o, OPT_PLAN))
        return tern_fail(err, TERN_ERR_ARG,
                         "sparse blocks have no number in GGUF files: --to sidecar writes them "
                         "beside the file, --to iebin in a folder");
    return read_choice(o, rule, err);
}

void convert_print_blocks(const char *name, const convert_sparse *s) {
    out_print("  %s: %" PRIu32 " of %zu blocks of %" PRIu32 " x %" PRIu32 " stored, %zu are zero",
              name, s->form.blocks, s->places, s->form.block_rows, s->form.block_cols, s->zero);
    if (s->dropped > 0)
        out_print(", %zu dropped with %.3g %% of the energy and weights up to %.3g", s->dropped,
                  100.0 * s->lost, (double)s->largest);
    out_print("\n");
}

json_t *convert_json_blocks(const convert_sparse *s) {
    return json_pack("{s:i, s:i, s:I, s:I, s:I, s:I, s:o, s:o}", "rows", (int)s->form.block_rows,
                     "cols", (int)s->form.block_cols, "places", (json_int_t)s->places, "stored",
                     (json_int_t)s->form.blocks, "zero", (json_int_t)s->zero, "dropped",
                     (json_int_t)s->dropped, "energy_lost", json_number(s->lost), "largest_dropped",
                     json_number((double)s->largest));
}

int convert_dense(const options *o) {
    convert_sparse_rule rule = {.layers = NULL};
    convert_sparse s = {.stored = NULL};
    tern_error err = {0};
    uint32_t shape[2];
    if (o->n_operands < 2) {
        complain("convert --dense needs a second argument, OUT, to write to");
        return EXIT_USAGE;
    }
    if (read_pair(options_text(o, OPT_DENSE), "--dense", shape, &err) != TERN_OK ||
        read_choice(o, &rule, &err) != TERN_OK) {
        (void)complain_error(&err);
        return EXIT_USAGE;
    }
    const tern_status status = convert_sparse_file(o->operands[0], shape[0], shape[1], &rule,
                                                   o->operands[1], targets_mode(o), &s, &err);
    if (status != TERN_OK)
        return complain_error(&err);
    int done = EXIT_DONE;
    if (options_switch(o, OPT_JSON))
        done = json_print(convert_json_blocks(&s));
    else
        convert_print_blocks(o->operands[1], &s);
    convert_sparse_free(&s);
    return done;
}
