/* SPDX-License-Identifier: Apache-2.0 */
/* tern kernels: all kernels of the table: whether each runs here, and which are chosen and why. */

#include <stdio.h>
#include <string.h>

#include "tern/device.h"
#include "tern/tern.h"
#include "tools/cli/json_line.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/commands/model_kernels.h"
#include "tools/load/loader.h"

typedef struct listing {
    const tern_kernel_row *kernels;
    size_t n;
    uint64_t machine;                    /* features of this processor */
    uint64_t mask;                       /* the features that --isa allows */
    bool has_cuda;                       /* a device could be opened */
    char cuda[TERN_ERROR_MESSAGE_BYTES]; /* name of the device, or why there is none */
} listing;

static bool is_cuda(const tern_kernel_row *kernel) {
    return tern_device_of_row(kernel) == TERN_DEVICE_CUDA;
}

static bool is_runnable(const listing *l, const tern_kernel_row *kernel) {
    if (is_cuda(kernel))
        return l->has_cuda;
    return kernel->fn.any != NULL && (kernel->needs & ~l->machine) == 0;
}

/* The kernel that is chosen for the purpose of this one. */
static const tern_kernel_row *chosen_for(const listing *l, const tern_kernel_row *kernel) {
    return tern_kernel_select_layout(l->mask, kernel->op, kernel->format, kernel->layout);
}

static bool is_chosen(const listing *l, const tern_kernel_row *kernel) {
    return chosen_for(l, kernel) == kernel;
}

static const char *format_name(const tern_kernel_row *kernel) {
    const tern_format_info *info = tern_format_describe(kernel->format);
    return info != NULL ? info->name : "-";
}

/* Writes the names of the features in mask, e.g. "AVX512F AVX512BW". */
static void feature_names(uint64_t mask, char *text, size_t size) {
    const char *name;
    size_t used = 0;
    text[0] = '\0';
    for (; mask != 0 && used < size; mask &= mask - 1)
        if ((name = tern_cpu_feature_name(mask)) != NULL)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? " " : "", name);
}

/* Writes what the processor lacks. The first feature represents all, so that a line fits. */
static void missing_features(const listing *l, const tern_kernel_row *kernel, char *text,
                             size_t size) {
    const uint64_t missing = kernel->needs & ~l->machine;
    const uint64_t forbidden = missing & tern_cpu_forbidden();
    const bool more = (missing & (missing - 1)) != 0;
    (void)snprintf(text, size, "%s %s%s", forbidden != 0 ? "the system refuses" : "lacks",
                   tern_cpu_feature_name(forbidden != 0 ? forbidden : missing), more ? " ..." : "");
}

static void reason(const listing *l, const tern_kernel_row *kernel, char *text, size_t size) {
    const tern_kernel_row *chosen = chosen_for(l, kernel);
    if (is_cuda(kernel))
        (void)snprintf(text, size, "%s", l->has_cuda ? "for the CUDA device" : "no CUDA device");
    else if (kernel->fn.any == NULL)
        (void)snprintf(text, size, "not built for this architecture");
    else if (!is_runnable(l, kernel))
        missing_features(l, kernel, text, size);
    else if ((kernel->needs & ~l->mask) != 0)
        (void)snprintf(text, size, "left out by the instruction set asked for");
    else if (chosen == kernel)
        (void)snprintf(text, size, "first kernel of the table that runs here");
    else if (chosen != NULL && strcmp(chosen->isa, kernel->isa) == 0)
        (void)snprintf(text, size, "%s comes first", chosen->name);
    else
        (void)snprintf(text, size, "%s comes first", chosen != NULL ? chosen->isa : "another");
}

static void print_table(const listing *l) {
    out_print("%-36s %-5s %-7s %s\n", "KERNEL", "RUNS", "CHOSEN", "WHY");
    for (size_t i = 0; i < l->n; i++) {
        const tern_kernel_row *kernel = &l->kernels[i];
        char why[256];
        reason(l, kernel, why, sizeof why);
        out_print("%-36s %-5s %-7s %s\n", kernel->name, is_runnable(l, kernel) ? "yes" : "no",
                  is_chosen(l, kernel) ? "yes" : "no", why);
    }
    out_print("\n%zu kernels; this processor: %s\n%s\n", l->n, tern_cpu_name(), l->cuda);
}

static void print_markdown(const listing *l) {
    out_print("| kernel | operation | format | layout | instruction set | needs |\n"
              "|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < l->n; i++) {
        const tern_kernel_row *kernel = &l->kernels[i];
        char needs[256];
        feature_names(kernel->needs, needs, sizeof needs);
        out_print("| `%s` | %s | %s | %s | %s | %s |\n", kernel->name, tern_op_name(kernel->op),
                  format_name(kernel), tern_layout_name(kernel->layout), kernel->isa, needs);
    }
}

/* Formats of the matrices that the kernel multiplies, or the format that it reads. */
static json_t *formats_of(const tern_kernel_row *kernel) {
    json_t *list = json_array();
    const bool packed = kernel->layout != TERN_LAYOUT_ROWS && kernel->layout != TERN_LAYOUT_NONE &&
                        tern_layout_sparse_format(kernel->layout) == TERN_FORMAT_NONE;
    for (int format = 0; format < TERN_FORMAT_COUNT; format++) {
        if (packed ? tern_layout_holds(kernel->layout, (tern_format)format)
                   : kernel->format == (tern_format)format) {
            json_array_append_new(list,
                                  json_string(tern_format_describe((tern_format)format)->name));
        }
    }
    return list;
}

static int print_json(const listing *l) {
    json_t *list = json_array();
    for (size_t i = 0; i < l->n; i++) {
        const tern_kernel_row *kernel = &l->kernels[i];
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:s, s:b, s:b, s:s}", "name", kernel->name,
                      "device", tern_device_name(tern_device_of_row(kernel)), "op",
                      tern_op_name(kernel->op), "format", format_name(kernel), "layout",
                      tern_layout_name(kernel->layout), "formats", formats_of(kernel), "isa",
                      kernel->isa, "runnable", is_runnable(l, kernel), "chosen",
                      is_chosen(l, kernel), "test",
                      is_cuda(kernel) ? "device_cuda_emulated_forward" : tern_op_test(kernel->op)));
    }
    return json_print(list);
}

static void find_cuda(listing *l) {
    tern_device *device = NULL;
    tern_error err = {0};
    l->has_cuda = tern_device_open("cuda", &device, &err) == TERN_OK;
    if (l->has_cuda)
        (void)snprintf(l->cuda, sizeof l->cuda, "cuda: %s", device->name);
    else
        memcpy(l->cuda, err.message, sizeof l->cuda);
    tern_device_close(&device);
}

int cmd_kernels(const options *o) {
    if (o->values[OPT_MODEL].source == OPTION_FLAG) {
        loader_report_isas();
        return model_kernels(o);
    }
    listing l = {.machine = tern_cpu_features()};
    const int checked = loader_check_isa(o, &l.mask);
    if (checked != EXIT_DONE)
        return checked;
    find_cuda(&l);
    l.kernels = tern_kernel_rows(&l.n);
    if (options_switch(o, OPT_JSON))
        return print_json(&l);
    if (options_switch(o, OPT_MARKDOWN))
        print_markdown(&l);
    else
        print_table(&l);
    return EXIT_DONE;
}
