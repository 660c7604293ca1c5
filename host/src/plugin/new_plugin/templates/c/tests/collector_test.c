/* Drives the collector as the host does. `make test` compiles and runs it. */
#undef NDEBUG
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lm_bench_plugin.h"

/* What the collector told the host in the last call. */
static char reply[1000], fault[1000];
static double numbers[3];
static uint32_t shapes[3];
static int reported;

static void on_log(void *context, uint32_t level, LmbBytes text) { (void)context, (void)level, (void)text; }
static LmbBytes on_symbol(void *context, uint32_t id) {
    (void)context, (void)id;
    return lmb_text(NULL);
}
static void on_metric(void *context, const LmbMetricV1 *metric) {
    (void)context;
    assert(reported < 3);
    shapes[reported] = metric->shape;
    numbers[reported++] = metric->shape == LMB_SHAPE_COUNTER ? (double)metric->count : metric->number;
}
static void keep(char *place, LmbBytes text) {
    assert(text.len < 1000);
    memcpy(place, text.ptr, text.len);
    place[text.len] = 0;
}
static void on_reply(void *context, LmbBytes json) {
    (void)context;
    keep(reply, json);
}
static void on_fault(void *context, uint32_t code, LmbBytes message) {
    (void)context, (void)code;
    keep(fault, message);
}

/* The host has its own functions; for a test those of the platform are near enough. */
static const LmbMathV1 platform_math = {sizeof(LmbMathV1), 0, exp, exp2, log, log1p, log2, log10, pow, cbrt, sin, cos, tanh};
static const LmbHostV1 host = {sizeof(LmbHostV1), 0, NULL, on_log, on_symbol, on_metric, on_reply, on_fault, &platform_math};

static void *opened(const char *config) {
    void *instance = NULL;
    int32_t status = lmb_collector.open(&host, lmb_text(config), lmb_text("{}"), lmb_text("[]"), &instance);
    assert(status == LMB_STATUS_OK && instance);
    return instance;
}

static void decode(void *instance, uint64_t lost_before) {
    const uint8_t phases[] = {1, 1, 1};
    const uint64_t host_ns[] = {2000000, 4000000, 27000000};
    const LmbColumnV1 columns[] = {{phases, 3, 1, LMB_ELEMENT_U8}, {host_ns, 3, 1, LMB_ELEMENT_U64}};
    const LmbBatchV1 batch = {sizeof batch, 3, 0, 2, 0, lost_before, 1.0, columns};
    assert(lmb_collector.on_batch(instance, &host, &batch) == LMB_STATUS_OK);
    reported = 0;
    assert(lmb_collector.checkpoint(instance, &host) == LMB_STATUS_OK);
    assert(reported == 3);
}

static void one_of_three_steps_is_slow(void) {
    void *instance = opened("{\"slow_ms\":20}");
    decode(instance, 0);
    assert(shapes[0] == LMB_SHAPE_COUNTER && numbers[0] == 1.0);
    assert(numbers[1] == 1.0 / 3.0);
    /* The cube root of 2 * 4 * 27 = 6^3. */
    assert(fabs(numbers[2] - 6.0) < 1e-12);
    lmb_collector.destroy(instance);
}

static void lost_steps_are_not_counted(void) {
    void *instance = opened("{}");
    decode(instance, 2);
    assert(shapes[0] == LMB_SHAPE_UNAVAILABLE && shapes[1] == LMB_SHAPE_GAUGE);
    lmb_collector.destroy(instance);
}

static void a_wrong_configuration_is_refused(void) {
    assert(lmb_collector.subscribe(&host, lmb_text("{\"slow\":1}"), lmb_text("{}")) == LMB_STATUS_FAULT);
    assert(strstr(fault, "unknown field `slow`"));
    assert(lmb_collector.subscribe(&host, lmb_text("{\"slow_ms\":\"20\"}"), lmb_text("{}")) == LMB_STATUS_FAULT);
    assert(strstr(fault, "`slow_ms` is not a number"));
    assert(lmb_collector.subscribe(&host, lmb_text("{\"slow_ms\":0}"), lmb_text("{}")) == LMB_STATUS_FAULT);
    assert(strstr(fault, "above 0"));
    assert(lmb_collector.subscribe(&host, lmb_text(" { \"slow_ms\" : 2.5e1 } "), lmb_text("{}")) == LMB_STATUS_OK);
    assert(strstr(reply, "host_ns"));
}

int main(void) {
    one_of_three_steps_is_slow();
    lost_steps_are_not_counted();
    a_wrong_configuration_is_refused();
    puts("3 tests passed");
    return 0;
}
