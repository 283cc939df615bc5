/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a comparison document, schema 1.0.0; docs/receipts.md says what each means. */

#include "receipts/document.h"
#include "receipts/fields.h"
#include "receipts/fields_shared.h"

/* clang-format off: one row a line */
#define SIDE_ROWS(p)                                                                               \
    MUST(p, OBJECT), MUST(p ".name", ANY_TEXT), MUST(p ".command", ANY_TEXT),                      \
        MUST(p ".version", ANY_TEXT), MUST(p ".program_sha256", HASH),                             \
        CHOICE(p ".compute_path", "real mock other"), MUST(p ".isa", ANY_TEXT),                    \
        MUST(p ".threads", COUNT), MUST(p ".kernels", LIST), MUST(p ".kernels[]", TEXT),           \
        MUST(p ".patterns", OBJECT), MUST(p ".patterns.*", ANY_TEXT), MUST(p ".answer", ANY_TEXT), \
        MUST(p ".runs", OBJECT), MUST(p ".runs.*", LIST), MUST(p ".runs.*[]", NUMBER),             \
        MUST(p ".medians", OBJECT), MUST(p ".medians.*", NUMBER),                                  \
        MUST(p ".spread_percent", OBJECT), MUST(p ".spread_percent.*", NUMBER)
/* clang-format on */

static const receipt_field fields[] = {
    ORIGIN_ROWS,
    CHOICE("comparison", "b/a"),
    CHOICE("method", "pairs independent"),
    MUST("level", NUMBER),
    MUST("models", LIST),
    MUST("models[]", OBJECT),
    MUST("models[].path", ANY_TEXT),
    MUST("models[].bytes", COUNT),
    MUST("models[].sha256", HASH),
    MUST("machine", OBJECT),
    MUST("machine.cpu", ANY_TEXT),
    MUST("machine.cores", COUNT),
    MUST("machine.architecture", TEXT),
    MUST("machine.os", TEXT),
    MUST("machine.load_average", NUMBER),
    SIDE_ROWS("a"),
    SIDE_ROWS("b"),
    MUST("ratios", OBJECT),
    MUST("ratios.*", OBJECT),
    MUST("ratios.*.ratio", NUMBER),
    MUST("ratios.*.low", NUMBER),
    MUST("ratios.*.high", NUMBER),
    MUST("ratios.*.median", NUMBER),
    SEAL_ROWS,
};

const document_type document_comparison = {"comparison",
                                           COMPARISON_SCHEMA,
                                           "Two programs or builds, measured beside each other",
                                           fields,
                                           sizeof fields / sizeof *fields,
                                           true};
