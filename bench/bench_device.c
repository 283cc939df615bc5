/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Benchmark of a device's operations, through the table of tern/device.h:
 *   bench_device [--device NAME] [--check] [--filter TEXT] [--json FILE]
 * Each answer is compared with the reference, bit for bit, before its call is timed. Calls are
 * queued one after another. The operands of products and attention have so many copies that no
 * cache holds them. --check: only checks the answers, at small shapes. --filter: runs only the
 * cases whose name contains TEXT.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/out_file.h"
#include "bench/commit.h"
#include "bench/device_cases.h"
#include "bench/device_operands.h"
#include "bench/device_timing.h"

/* Bytes of weights, keys and values of a case, all copies together; small: for a check. */
enum { COPIES_BYTES = 256 << 20, SMALL_COPIES_BYTES = 1 << 16 };

typedef struct options {
    const char *device, *filter, *json;
    bool check;
} options;

typedef enum answer { RIGHT, WRONG, MISSING, ANSWERS } answer;

static const char *const answer_names[ANSWERS] = {"right", "wrong", "missing"};

typedef struct result {
    const tern_device_case *c;
    answer answer;
    double bytes, macs;
    tern_device_time time; /* zeros: not timed */
} result;

typedef struct bench {
    options options;
    tern_device *d;
    tern_device_stream *stream;
    double roof; /* bytes a second; 0: not measured */
    result results[TERN_DEVICE_CASES];
    size_t count;
} bench;

/* ---- one case ------------------------------------------------------------------------------ */

static tern_status queue_case(void *operands, tern_error *err) {
    return tern_device_call(operands, err);
}

/* Makes the first call and says whether its answer is right. */
static tern_status try_case(tern_device_operands *u, answer *a, tern_error *err) {
    bool right = false;
    tern_status status = tern_device_call(u, err);

    *a = MISSING;
    if (status == TERN_ERR_KERNEL || status == TERN_ERR_UNIMPLEMENTED)
        return TERN_OK;
    if (status == TERN_OK)
        status = tern_device_right(u, &right, err);
    *a = right ? RIGHT : WRONG;
    return status;
}

static tern_status run_case(bench *b, const tern_device_case *c, result *r, tern_error *err) {
    const bool check = b->options.check;
    tern_device_operands *u = NULL;
    tern_status status = tern_device_operands_new(
        b->d, b->stream, c, check ? SMALL_COPIES_BYTES : COPIES_BYTES, &u, err);

    *r = (result){.c = c, .answer = MISSING};
    if (status == TERN_OK)
        status = try_case(u, &r->answer, err);
    if (status == TERN_OK) {
        r->bytes = tern_device_bytes(u);
        r->macs = tern_device_macs(u);
    }
    if (status == TERN_OK && r->answer == RIGHT && !check)
        status = tern_device_measure(b->d, b->stream, queue_case, u, &r->time, err);
    tern_device_operands_free(u);
    return status;
}

/* ---- output -------------------------------------------------------------------------------- */

static double a_second(double amount, const result *r) {
    return r->time.seconds > 0.0 ? amount / r->time.seconds : 0.0;
}

static double roof_percent(const bench *b, const result *r) {
    return b->roof > 0.0 ? 100.0 * a_second(r->bytes, r) / b->roof : 0.0;
}

static void print_head(const bench *b) {
    printf("%s: %s\n", tern_device_name(b->d->kind), b->d->name);
    if (b->options.check)
        return;
    printf("its copy reads and writes %.1f GB/s\n", b->roof * 1e-9);
    printf("%-32s %12s %6s %10s %7s %10s\n", "operation", "us", "+-%", "GB/s", "% copy", "GMAC/s");
}

static void print_result(const bench *b, const result *r) {
    if (r->answer != RIGHT)
        printf("%-32s %s\n", r->c->name,
               r->answer == WRONG ? "differs from the reference" : "not on this device");
    else if (!b->options.check)
        printf("%-32s %12.2f %6.1f %10.1f %7.1f %10.1f\n", r->c->name, r->time.seconds * 1e6,
               r->time.spread * 100.0, a_second(r->bytes, r) * 1e-9, roof_percent(b, r),
               a_second(r->macs, r) * 1e-9);
    (void)fflush(stdout);
}

static void write_result(const bench *b, const result *r, FILE *to) {
    const tern_bench_shape *s = &r->c->shape;
    const tern_format_info *format = tern_format_describe(r->c->kernel.format);

    fprintf(to,
            "{\"name\": \"%s\", \"op\": \"%s\", \"format\": \"%s\", \"layout\": \"%s\", "
            "\"rows\": %zu, \"cols\": %zu, \"n\": %zu, \"tokens\": %zu, \"answer\": \"%s\", "
            "\"calls\": %zu, \"rounds\": %zu, \"us\": %.3f, \"spread_percent\": %.2f, "
            "\"bytes\": %.0f, \"gbs\": %.3f, \"roof_percent\": %.2f, \"macs\": %.0f, "
            "\"gmacs\": %.3f}",
            r->c->name, tern_op_name(r->c->kernel.op), format != NULL ? format->name : "none",
            tern_layout_name(r->c->kernel.layout), s->rows, s->cols, s->n, s->tokens,
            answer_names[r->answer], r->time.calls, r->time.rounds, r->time.seconds * 1e6,
            r->time.spread * 100.0, r->bytes, a_second(r->bytes, r) * 1e-9, roof_percent(b, r),
            r->macs, a_second(r->macs, r) * 1e-9);
}

static void write_document(const bench *b, FILE *to) {
    fprintf(to,
            "{\"tool\": \"bench_device\", \"commit\": \"%s\", \"device\": \"%s\", "
            "\"name\": \"%s\", \"roof_gbs\": %.3f,\n \"cases\": [",
            TERN_COMMIT, tern_device_name(b->d->kind), b->d->name, b->roof * 1e-9);
    for (size_t i = 0; i < b->count; i++) {
        fprintf(to, "%s\n  ", i > 0 ? "," : "");
        write_result(b, &b->results[i], to);
    }
    fprintf(to, "]}\n");
}

static tern_status save_text(const char *path, const char *text, size_t size, tern_error *err) {
    tern_out_file *file = NULL;
    tern_status status = tern_out_file_create(path, TERN_OUT_REPLACE, &file, err);

    if (status == TERN_OK)
        status = tern_out_file_write(file, text, size, err);
    if (status == TERN_OK)
        return tern_out_file_commit(&file, err);
    tern_out_file_discard(&file);
    return status;
}

static tern_status save(const bench *b, tern_error *err) {
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    if (to == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the document");
    write_document(b, to);
    const bool whole = fclose(to) == 0;
    const tern_status status = whole ? save_text(b->options.json, text, size, err)
                                     : tern_fail(err, TERN_ERR_NOMEM, "no memory for the document");
    free(text);
    return status;
}

/* ---- all cases ----------------------------------------------------------------------------- */

static tern_status run_cases(bench *b, const tern_device_case *cases, size_t count,
                             tern_error *err) {
    const char *filter = b->options.filter;
    tern_status status = TERN_OK;

    for (size_t i = 0; status == TERN_OK && i < count; i++) {
        result *r = &b->results[b->count];
        if (filter != NULL && strstr(cases[i].name, filter) == NULL)
            continue;
        status = run_case(b, &cases[i], r, err);
        if (status != TERN_OK) {
            fprintf(stderr, "bench_device: %s:\n", cases[i].name);
            break;
        }
        b->count++;
        print_result(b, r);
    }
    return status;
}

/* When a case fails, the results of the cases before it are still saved. */
static tern_status run_all(bench *b, tern_error *err) {
    static tern_device_case cases[TERN_DEVICE_CASES];
    const size_t count = tern_device_cases(b->options.check, cases);
    tern_status status = tern_device_roof(b->d, b->stream, b->options.check, &b->roof, err);

    if (status != TERN_OK)
        return status;
    print_head(b);
    status = run_cases(b, cases, count, err);
    if (b->options.json == NULL)
        return status;
    const tern_status saved = save(b, status == TERN_OK ? err : NULL);
    return status == TERN_OK ? saved : status;
}

/* True if some answers were compared and none of them differs from the reference. */
static bool all_right(const bench *b) {
    size_t counts[ANSWERS] = {0};

    for (size_t i = 0; i < b->count; i++)
        counts[b->results[i].answer]++;
    printf("%zu answers right, %zu wrong, %zu operations not on this device\n", counts[RIGHT],
           counts[WRONG], counts[MISSING]);
    return counts[RIGHT] > 0 && counts[WRONG] == 0;
}

static bool understand(options *o, int argc, char **argv) {
    *o = (options){.device = "cuda"};
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (strcmp(argv[i], "--check") == 0)
            o->check = true;
        else if (more && strcmp(argv[i], "--device") == 0)
            o->device = argv[++i];
        else if (more && strcmp(argv[i], "--filter") == 0)
            o->filter = argv[++i];
        else if (more && strcmp(argv[i], "--json") == 0)
            o->json = argv[++i];
        else
            return false;
    }
    return true;
}

int main(int argc, char **argv) {
    static bench b;
    tern_error err = {0};
    tern_status status;

    if (!understand(&b.options, argc, argv)) {
        fprintf(stderr,
                "usage: bench_device [--device NAME] [--check] [--filter TEXT] [--json FILE]\n");
        return 2;
    }
    status = tern_device_open(b.options.device, &b.d, &err);
    if (status == TERN_OK)
        status = b.d->ops->stream_new(b.d, &b.stream, &err);
    if (status == TERN_OK)
        status = run_all(&b, &err);
    if (b.stream != NULL)
        (void)b.d->ops->stream_free(b.d, b.stream, NULL);
    tern_device_close(&b.d);
    if (status != TERN_OK) {
        fprintf(stderr, "bench_device: %s\n", err.message);
        return EXIT_FAILURE;
    }
    return all_right(&b) ? EXIT_SUCCESS : EXIT_FAILURE;
}
