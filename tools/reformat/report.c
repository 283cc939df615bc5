/* SPDX-License-Identifier: Apache-2.0 */
/* Reports the results of convert_write as text and as JSON. */

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/json_line.h"
#include "tools/cli/output.h"
#include "tools/cli/targets.h"
#include "tools/reformat/command.h"

static const char *const outcomes[] = {
    [CONVERT_COPIED] = "copied", [CONVERT_LOSSLESS] = "lossless", [CONVERT_LOSSY] = "lossy"};

static const char *target_name(const convert_tensor *t) {
    if (t->tiled != 0)
        return t->tiled == TERN_TL1 ? "tl1" : "tl2";
    if (t->bn != 0)
        return t->bn == TERN_IQ1_BN ? "iq1_bn" : "iq2_bn";
    return tern_format_describe(t->target)->name;
}

static uint64_t all_bytes(const convert_job *job) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < job->n; i++)
        bytes += job->tensors[i].bytes;
    return bytes;
}

static bool same_line(const convert_job *job, size_t i, size_t k) {
    return job->results[i].outcome == job->results[k].outcome &&
           job->tensors[i].target == job->tensors[k].target &&
           job->tensors[i].tiled == job->tensors[k].tiled &&
           job->tensors[i].bn == job->tensors[k].bn &&
           (job->tensors[i].sparse != NULL) == (job->tensors[k].sparse != NULL) &&
           strcmp(job->tensors[i].origin, job->tensors[k].origin) == 0;
}

/* Prints tensors of one kind, from the first one on. */
static void print_kind(const convert_job *job, size_t first) {
    const convert_tensor *t = &job->tensors[first];
    const convert_outcome outcome = job->results[first].outcome;
    size_t count = 0, worst = first;
    double sum = 0.0;
    for (size_t i = first; i < job->n; i++) {
        if (same_line(job, i, first)) {
            count++;
            sum += job->results[i].error;
            worst = job->results[i].error > job->results[worst].error ? i : worst;
        }
    }
    char way[64];
    (void)snprintf(way, sizeof way, outcome == CONVERT_COPIED ? "%s" : "%s to %s%s", t->origin,
                   t->sparse != NULL ? "sparse " : "", target_name(t));
    out_print("  %-9s %5zu tensor%s %s", outcomes[outcome], count, count == 1 ? " " : "s", way);
    if (outcome == CONVERT_LOSSY) {
        out_print(": relative error %.2g on average, at most %.2g (%s)", sum / (double)count,
                  job->results[worst].error, job->tensors[worst].name);
    }
    out_print("\n");
}

static int report_text(const convert_job *job, const options *o) {
    char path[PATH_MAX];
    size_t lossy = 0;
    for (size_t i = 0; i < job->n; i++)
        lossy += job->results[i].outcome == CONVERT_LOSSY;
    out_print("%s: %zu tensors, %.1f MiB of weights, %zu without loss, %zu lossy\n",
              targets_out(o, path), job->n, (double)all_bytes(job) / 1048576.0, job->n - lossy,
              lossy);
    for (size_t i = 0; i < job->n; i++) {
        size_t k = 0;
        while (!same_line(job, k, i))
            k++;
        if (k == i)
            print_kind(job, i);
    }
    for (size_t i = 0; i < job->n; i++)
        if (job->tensors[i].sparse != NULL)
            convert_print_blocks(job->tensors[i].name, job->tensors[i].sparse);
    return EXIT_DONE;
}

static int report_json(const convert_job *job, const options *o) {
    char path[PATH_MAX];
    const char *out = targets_out(o, path);
    json_t *list = json_array();
    for (size_t i = 0; i < job->n; i++) {
        const convert_tensor *t = &job->tensors[i];
        json_t *item = json_pack("{s:o, s:s, s:s, s:s, s:o}", "name",
                                 json_text(t->name, strlen(t->name)), "from", t->origin, "to",
                                 target_name(t), "outcome", outcomes[job->results[i].outcome],
                                 "error", json_number(job->results[i].error));
        if (t->sparse != NULL)
            json_object_set_new(item, "blocks", convert_json_blocks(t->sparse));
        json_array_append_new(list, item);
    }
    return json_print(json_pack("{s:o, s:o, s:I, s:o}", "input",
                                json_text(o->operands[0], strlen(o->operands[0])), "output",
                                json_text(out, strlen(out)), "weight_bytes",
                                (json_int_t)all_bytes(job), "tensors", list));
}

/* ---- a plan ---------------------------------------------------------------------------------- */

static double saved(uint64_t before, uint64_t after) {
    return before > 0 ? 100.0 - 100.0 * (double)after / (double)before : 0.0;
}

static uint64_t bytes_before(const convert_job *job) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < job->n; i++)
        bytes += job->tensors[i].before;
    return bytes;
}

/* Writes "int4, groups of 64 with zero points". */
static void describe_target(const convert_tensor *t, char *out, size_t size) {
    const char *points = t->int4.zero_points ? " with zero points" : "";
    if (t->sparse != NULL)
        (void)snprintf(out, size, "sparse %s, %u of %zu blocks", target_name(t),
                       t->sparse->form.blocks, t->sparse->places);
    else if (t->target != TERN_FORMAT_INT4)
        (void)snprintf(out, size, "%s", target_name(t));
    else if (t->int4.group == t->cols)
        (void)snprintf(out, size, "int4, whole rows%s", points);
    else
        (void)snprintf(out, size, "int4, groups of %" PRIu64 "%s", t->int4.group, points);
}

static int plan_text(const convert_job *job) {
    const uint64_t before = bytes_before(job), after = all_bytes(job);
    for (size_t i = 0; i < job->n; i++) {
        const convert_tensor *t = &job->tensors[i];
        char target[64];
        describe_target(t, target, sizeof target);
        out_print("%-32s %-16s %-36s %12" PRIu64 " %12" PRIu64 " bytes %6.1f %% saved\n", t->name,
                  t->origin, target, t->before, t->bytes, saved(t->before, t->bytes));
    }
    out_print("%zu tensors: %.1f MiB become %.1f MiB, %.1f %% saved\n", job->n,
              (double)before / 1048576.0, (double)after / 1048576.0, saved(before, after));
    return EXIT_DONE;
}

static int plan_json(const convert_job *job, const options *o) {
    json_t *list = json_array();
    for (size_t i = 0; i < job->n; i++) {
        const convert_tensor *t = &job->tensors[i];
        char target[64];
        describe_target(t, target, sizeof target);
        json_array_append_new(
            list, json_pack("{s:o, s:s, s:s, s:I, s:I}", "name",
                            json_text(t->name, strlen(t->name)), "from", t->origin, "to", target,
                            "bytes_before", (json_int_t)t->before, "bytes", (json_int_t)t->bytes));
    }
    return json_print(json_pack("{s:o, s:I, s:I, s:o}", "input",
                                json_text(o->operands[0], strlen(o->operands[0])), "bytes_before",
                                (json_int_t)bytes_before(job), "weight_bytes",
                                (json_int_t)all_bytes(job), "tensors", list));
}

int convert_plan_report(const convert_job *job, const options *o) {
    return options_switch(o, OPT_JSON) ? plan_json(job, o) : plan_text(job);
}

int convert_report(const convert_job *job, const options *o) {
    return options_switch(o, OPT_JSON) ? report_json(job, o) : report_text(job, o);
}
