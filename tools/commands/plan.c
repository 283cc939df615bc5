/* SPDX-License-Identifier: Apache-2.0 */
/* tern plan: how fast a model would decode on some machines, and how to use these. */

#include <stdio.h>
#include <stdlib.h>

#include "base/metrics.h"
#include "tern/topology.h"
#include "tools/cli/json_line.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/load/loader.h"
#include "tools/load/model_hint.h"
#include "tools/load/params.h"
#include "tools/plan/report.h"
#include "tools/speed/bandwidth.h"

/* Assumed where nothing is said or measured. */
static const double usual_tops = 0.4e12; /* of a thread in products of int8 codes */
static const double usual_meeting = 2e-6;
static const double usual_near_seconds = 3e-6, usual_near_bytes = 5e9;

static int list_geometries(void) {
    const char *name, *description;
    for (size_t i = 0; plan_geometry_at(i, &name, &description); i++)
        out_print("%-20s %s\n", name, description);
    return EXIT_DONE;
}

/* ---- the machines ---------------------------------------------------------------------------- */

/* Reads "US,GB/s". */
static int read_network(const options *o, plan_machine *machine) {
    const char *text = options_text(o, OPT_NETWORK);
    double us, gbs;
    char after;
    if (sscanf(text, "%lf,%lf%c", &us, &gbs, &after) != 2 || !(us >= 0.0) || !(gbs > 0.0) ||
        us > 1e9 || gbs > 1e6) {
        complain("--network: '%.60s' is not microseconds and GB/s, as in 40,1.25", text);
        return EXIT_USAGE;
    }
    machine->network_seconds = us * 1e-6;
    machine->network_bytes = gbs * 1e9;
    return EXIT_DONE;
}

static uint32_t threads_here(void) {
    tern_topology *t = NULL;
    tern_error err = {0};
    const uint32_t n = tern_topology_new(&t, &err) == TERN_OK ? tern_topology_threads(t) : 1;
    tern_topology_free(&t);
    return n;
}

/* Measures the memory of this machine if no other one's speed is given. */
static int measure(const options *o, plan_report *r) {
    if (options_given(o, OPT_BUS)) {
        r->machine.bus = options_real(o, OPT_BUS) * 1e9;
        return EXIT_DONE;
    }
    bandwidth_meter meter = bandwidth_open();
    (void)bandwidth_measure(&meter, r->machine.threads); /* fills the buffer */
    r->machine.bus = bandwidth_measure(&meter, r->machine.threads) * 1e9;
    bandwidth_close(&meter);
    r->measured = true;
    if (r->machine.bus > 0.0)
        return EXIT_DONE;
    complain("the speed of the memory could not be measured: say it with --bus");
    return EXIT_FAILED;
}

static int read_machine(const options *o, plan_report *r) {
    plan_machine *c = &r->machine;
    const uint32_t threads = (uint32_t)options_integer(o, OPT_THREADS);
    *c = (plan_machine){.nodes = (uint32_t)options_integer(o, OPT_NODES),
                        .sockets = (uint32_t)options_integer(o, OPT_SOCKETS),
                        .threads = threads > 0 ? threads : threads_here(),
                        .reach = options_real(o, OPT_REACH),
                        .meet_seconds = usual_meeting,
                        .near_seconds = usual_near_seconds,
                        .near_bytes = usual_near_bytes,
                        .memory = options_integer(o, OPT_NODE_MEMORY) << 20};
    c->tops =
        options_given(o, OPT_TOPS) ? options_real(o, OPT_TOPS) * 1e12 : usual_tops * c->threads;
    int status = read_network(o, c);
    if (status == EXIT_DONE)
        status = measure(o, r);
    if (status == EXIT_DONE && r->measured && c->memory == 0)
        c->memory = tern_memory_available();
    return status;
}

/* ---- the model ------------------------------------------------------------------------------- */

static int open_model(const options *o, plan_model *out) {
    const char *path = loader_model_path(o, true);
    char cache[PATH_MAX];
    tern_model_params params;
    tern_model *model = NULL;
    tern_error err = {0};
    if (path == NULL)
        return EXIT_USAGE;
    if (params_read(o, cache, &params, &err) != TERN_OK) {
        (void)complain_error(&err);
        return EXIT_USAGE;
    }
    params.no_weights = true;
    if (tern_model_open(path, &params, &model, &err) != TERN_OK)
        return complain_of_model(path, o->model_may_be_prompt, &err);
    const tern_status status = plan_model_of(model, loader_kv_format(o), out, &err);
    tern_model_free(&model);
    return status == TERN_OK ? EXIT_DONE : complain_error(&err);
}

static int find_model(const options *o, plan_model *out) {
    const char *name = options_text(o, OPT_PRESET);
    tern_error err = {0};
    if (name == NULL)
        return open_model(o, out);
    if (plan_model_named(name, out, &err) == TERN_OK)
        return EXIT_DONE;
    complain("%s", err.message);
    return EXIT_USAGE;
}

int cmd_plan(const options *o) {
    if (options_switch(o, OPT_LIST))
        return list_geometries();
    plan_report r = {.position = options_integer(o, OPT_CONTEXT),
                     .users = options_integer(o, OPT_USERS)};
    int status = read_machine(o, &r);
    if (status == EXIT_DONE)
        status = find_model(o, &r.model);
    if (status != EXIT_DONE)
        return status;
    if (options_switch(o, OPT_JSON))
        return json_print(plan_json(&r));
    plan_print(&r);
    return EXIT_DONE;
}
