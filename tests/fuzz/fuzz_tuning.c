/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is a file of the tuner's choices, and also the list of choices of an otherwise valid
 * file. Accepted choices must be possible, and survive being written.
 */
#include <stdlib.h>
#include <string.h>

#include "dispatch/cpu.h"
#include "tests/model/tune_forge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition)
        abort();
}

/* Parses the bytes from a block of malloc. */
static tern_tuning parse(char *bytes, size_t size, const tern_tune_machine *machine,
                         const tern_guard *guard) {
    tern_tuning out = {.n = 0};
    tern_error err = {0};
    const tern_status status = tern_tune_parse(bytes, size, "fuzz", machine, guard, &out, &err);
    require(status == TERN_OK || (status == TERN_ERR_JSON && err.message[0] != '\0'));
    return out;
}

static void check(tern_tuning *in, const tern_tune_machine *machine, const tern_guard *guard) {
    size_t size;
    require(in->n <= TERN_TUNE_FILE_CHOICES);
    char *text = tern_tune_text(machine, in, &size);
    require(text != NULL);
    tern_tuning out = parse(text, size, machine, guard);
    require(out.n == in->n);
    for (size_t i = 0; i < in->n; i++) {
        const tern_tune_choice *choice = tern_tuning_find(&out, &in->choices[i].key);
        require(tern_tune_is_possible(guard, &in->choices[i]));
        require(choice != NULL && choice->gemv == in->choices[i].gemv &&
                choice->gemm == in->choices[i].gemm && choice->layout == in->choices[i].layout);
    }
    tern_tuning_free(&out);
    tern_tuning_free(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const tern_guard guard = tern_guard_new(tern_cpu_features());
    const tern_tune_machine machine = tern_tune_this_machine(&guard);
    size_t forged_size;
    char *forged = forge_tuning(&machine, (const char *)data, size, &forged_size);
    char *copy = malloc(size > 0 ? size : 1);
    require(forged != NULL && copy != NULL);
    memcpy(copy, data, size);
    tern_tuning raw = parse(copy, size, &machine, &guard);
    tern_tuning_free(&raw);
    tern_tuning choices = parse(forged, forged_size, &machine, &guard);
    check(&choices, &machine, &guard);
    return 0;
}
