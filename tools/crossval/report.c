/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/crossval/report.h"
#include "tools/cli/json_line.h"

#include <math.h>

#include "tools/cli/output.h"
#include "tools/load/loaded_json.h"

crossval_total crossval_add_up(const crossval *x) {
    crossval_total t = {0};
    for (size_t i = 0; i < x->n; i++) {
        const case_result *r = &x->results[i];
        sum_merge(&t.logits, &r->logits);
        t.whole += r->whole;
        t.top1 += r->top1;
        t.kl_sum += r->kl_sum;
        t.kl_max = fmax(t.kl_max, r->kl_max);
        t.steps += r->steps;
        t.equal += r->steps - r->n_differences;
        t.differences += r->n_differences;
        for (size_t k = 0; k < r->n_differences; k++)
            t.near_ties += r->differences[k].near_tie;
        for (size_t k = 0; k < r->n_layer; k++) {
            sum_merge(&t.cache, &r->keys[k]);
            sum_merge(&t.cache, &r->values[k]);
        }
        t.passed += crossval_passed(r, x->tolerance);
    }
    return t;
}

/* ---- for people ------------------------------------------------------------------------------ */

static void print_case(const reference_case *c, const case_result *r) {
    out_print("%-20.20s %9zu ", c->name, r->logits.pairs);
    if (r->logits.pairs > 0) {
        out_print("%10.7f %10.7f %9.3g %9.2g ", r->logits.cosine_min, sum_cosine_mean(&r->logits),
                  r->logits.max_abs, sum_scaled_mse(&r->logits));
    } else {
        out_print("%10s %10s %9s %9s ", "-", "-", "-", "-");
    }
    if (r->whole > 0)
        out_print("%4zu/%-4zu %9.2g ", r->top1, r->whole, r->kl_sum / (double)r->whole);
    else
        out_print("%9s %9s ", "-", "-");
    out_print("%4zu/%-4zu %s\n", r->steps - r->n_differences, r->steps,
              !r->text_told   ? ""
              : r->text_equal ? "text"
                              : "TEXT DIFFERS");
}

static void print_differences(const reference_case *c, const case_result *r) {
    for (size_t i = 0; i < r->n_differences; i++) {
        const greedy_difference *d = &r->differences[i];
        out_print("%s: step %zu, reference %d, tern %d; margin %.3g there, %.3g here: %s "
                  "(at most %.3g)\n",
                  c->name, d->step + 1, d->reference, d->ours, d->reference_margin, d->our_margin,
                  d->near_tie ? "a near-tie" : "NO near-tie", r->tie_margin);
    }
}

static void print_cache(const reference_case *c, const case_result *r,
                        const tern_model_info *info) {
    if (r->n_layer == 0)
        return;
    out_print("\nkeys and values of %s: %zu layers x %u heads x %zu positions x %u\n", c->name,
              r->n_layer, info->n_head_kv, c->n_tokens, info->head_dim);
    out_print("%-6s %10s %10s %9s   %10s %10s %9s\n", "LAYER", "K COS MIN", "MEAN", "MAX DIFF",
              "V COS MIN", "MEAN", "MAX DIFF");
    for (size_t i = 0; i < r->n_layer; i++) {
        out_print("%-6zu %10.7f %10.7f %9.3g   %10.7f %10.7f %9.3g\n", i, r->keys[i].cosine_min,
                  sum_cosine_mean(&r->keys[i]), r->keys[i].max_abs, r->values[i].cosine_min,
                  sum_cosine_mean(&r->values[i]), r->values[i].max_abs);
    }
}

static void print_head(const reference *r) {
    out_print("reference  %s %s%s%s%s%s\n", r->engine, r->engine_version,
              r->settings[0] != '\0' ? ": " : "", r->settings, r->date[0] != '\0' ? ", " : "",
              r->date);
    out_print("model      %s\n\n",
              r->sha256[0] != '\0' ? "the same file, by its SHA-256" : "not told by the reference");
    out_print("%-20s %9s %10s %10s %9s %9s %-9s %9s %-9s\n", "CASE", "POSITIONS", "COSINE MIN",
              "MEAN", "MAX DIFF", "MSE", "TOP-1", "KL", "GREEDY");
}

void crossval_print(const crossval *x, const tern_model_info *info) {
    print_head(x->reference);
    for (size_t i = 0; i < x->n; i++)
        print_case(x->cases[i], &x->results[i]);
    for (size_t i = 0; i < x->n; i++)
        print_differences(x->cases[i], &x->results[i]);
    for (size_t i = 0; i < x->n; i++)
        print_cache(x->cases[i], &x->results[i], info);
    const crossval_total t = crossval_add_up(x);
    out_print("\n%s: %zu of %zu cases; ", t.passed == x->n ? "passed" : "FAILED", t.passed, x->n);
    if (t.logits.pairs > 0) {
        out_print("mean cosine %.7f (%g asked, %g expected), none below %.7f, ",
                  sum_cosine_mean(&t.logits), x->tolerance, CROSSVAL_EXPECTED, t.logits.cosine_min);
    }
    out_print("%zu of %zu greedy tokens equal, %zu of %zu differences are near-ties\n", t.equal,
              t.steps, t.near_ties, t.differences);
}

/* ---- for programs ---------------------------------------------------------------------------- */

static json_t *number_or_null(double x) {
    return isfinite(x) ? json_real(x) : json_null();
}

/* Sets keys that cases and the total share. Without comparisons they are null, never a perfect
 * figure. */
static void set_logits(json_t *o, const sum_figures *f) {
    const bool any = f->pairs > 0;
    json_object_set_new(o, "positions", json_integer((json_int_t)f->pairs));
    json_object_set_new(o, "cosine_min", any ? json_real(f->cosine_min) : json_null());
    json_object_set_new(o, "cosine_mean", any ? json_real(sum_cosine_mean(f)) : json_null());
    json_object_set_new(o, "max_abs", any ? json_real(f->max_abs) : json_null());
    json_object_set_new(o, "rms", any ? json_real(sum_rms(f)) : json_null());
    json_object_set_new(o, "scaled_mse", any ? json_real(sum_scaled_mse(f)) : json_null());
}

static void set_whole(json_t *o, size_t whole, size_t top1, double kl_sum, double kl_max) {
    json_object_set_new(o, "whole_positions", json_integer((json_int_t)whole));
    json_object_set_new(o, "top1",
                        whole > 0 ? json_real((double)top1 / (double)whole) : json_null());
    json_object_set_new(o, "kl_mean", whole > 0 ? json_real(kl_sum / (double)whole) : json_null());
    json_object_set_new(o, "kl_max", whole > 0 ? json_real(kl_max) : json_null());
}

static json_t *json_differences(const case_result *r) {
    json_t *list = json_array();
    for (size_t i = 0; i < r->n_differences; i++) {
        const greedy_difference *d = &r->differences[i];
        json_array_append_new(list, json_pack("{s:I, s:i, s:i, s:o, s:f, s:b}", "step",
                                              (json_int_t)d->step, "reference", d->reference,
                                              "tern", d->ours, "reference_margin",
                                              number_or_null(d->reference_margin), "tern_margin",
                                              d->our_margin, "near_tie", d->near_tie));
    }
    return list;
}

static json_t *json_layers(const case_result *r) {
    json_t *list = json_array();
    for (size_t i = 0; i < r->n_layer; i++) {
        json_array_append_new(
            list, json_pack("{s:f, s:f, s:f, s:f}", "key_cosine_min", r->keys[i].cosine_min,
                            "key_max_abs", r->keys[i].max_abs, "value_cosine_min",
                            r->values[i].cosine_min, "value_max_abs", r->values[i].max_abs));
    }
    return list;
}

static json_t *json_case(const crossval *x, size_t i, const tern_model_info *info) {
    const reference_case *c = x->cases[i];
    const case_result *r = &x->results[i];
    json_t *o = json_pack("{s:s, s:b, s:I, s:I}", "name", c->name, "passed",
                          crossval_passed(r, x->tolerance), "greedy_steps", (json_int_t)r->steps,
                          "greedy_equal_until", (json_int_t)crossval_equal_steps(r));
    if (o == NULL)
        return NULL;
    set_logits(o, &r->logits);
    set_whole(o, r->whole, r->top1, r->kl_sum, r->kl_max);
    json_object_set_new(o, "tie_margin", number_or_null(r->tie_margin));
    json_object_set_new(o, "differences", json_differences(r));
    json_object_set_new(o, "text_equal", r->text_told ? json_boolean(r->text_equal) : json_null());
    if (r->n_layer > 0) {
        json_object_set_new(o, "kv_shape",
                            json_pack("[I, I, I, I]", (json_int_t)r->n_layer,
                                      (json_int_t)info->n_head_kv, (json_int_t)c->n_tokens,
                                      (json_int_t)info->head_dim));
        json_object_set_new(o, "kv_layers", json_layers(r));
    }
    return o;
}

int crossval_print_json(const crossval *x, const loaded *l) {
    const reference *r = x->reference;
    const crossval_total t = crossval_add_up(x);
    json_t *root = json_pack(
        "{s:b, s:f, s:f, s:{s:s, s:s, s:s, s:s}, s:I, s:I, s:I, s:I}", "passed", t.passed == x->n,
        "tolerance", x->tolerance, "expected", CROSSVAL_EXPECTED, "reference", "engine", r->engine,
        "version", r->engine_version, "settings", r->settings, "date", r->date, "greedy_steps",
        (json_int_t)t.steps, "greedy_equal", (json_int_t)t.equal, "differences",
        (json_int_t)t.differences, "near_ties", (json_int_t)t.near_ties);
    json_t *cases = json_array();
    for (size_t i = 0; i < x->n; i++)
        json_array_append_new(cases, json_case(x, i, &l->info));
    if (root != NULL) {
        set_logits(root, &t.logits);
        set_whole(root, t.whole, t.top1, t.kl_sum, t.kl_max);
        json_object_set_new(root, "kv_cosine_min",
                            t.cache.pairs > 0 ? json_real(t.cache.cosine_min) : json_null());
        json_set_kernels(root, l);
        json_object_set_new(root, "model", json_string(l->info.path));
    }
    json_object_set_new(root, "cases", cases);
    return json_print(root);
}
