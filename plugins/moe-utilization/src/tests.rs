use super::*;
use lm_bench_plugin::ModelInfo;
use lm_bench_plugin::kinds::phase::{DECODE, PREFILL};
use lm_bench_plugin::testing::{CollectorTest, Failure, Metrics};

type Test = CollectorTest<MoeUtilization>;

const DECODED: &[(&str, &str)] = &[("phase", "decode")];
const LAYER_0: &[(&str, &str)] = &[("phase", "decode"), ("layer", "0")];
const LAYER_1: &[(&str, &str)] = &[("phase", "decode"), ("layer", "1")];

/// A decode row of 4 experts, top-2, with router probabilities that give each expert what it was assigned.
fn row<'a>(step: u64, layer: u16, counts: &'a [u32], prob_sum: &'a [f32]) -> moe_route::Row<'a> {
    let tokens = counts.iter().sum::<u32>() / 2;
    moe_route::Row {
        step,
        phase: DECODE,
        layer,
        tokens,
        top_k: 2,
        experts: counts.len() as u32,
        counts,
        prob_sum,
        ..Default::default()
    }
}

fn with(labels: &[(&'static str, &'static str)], stat: &'static str) -> Vec<(&'static str, &'static str)> {
    [labels, &[("stat", stat)]].concat()
}

/// Two steps and two layers of 4 experts, top-2:
/// layer 0: step 7 has counts 4 2 2 0 (4 tokens), step 8 has 2 2 0 0 (2 tokens); n = 6 4 2 0, N = 12, mu = 3.
/// layer 1: step 7 has counts 2 2 2 2, step 8 has 1 1 1 1;                       n = 3 3 3 3, N = 12, mu = 3.
fn two_layers() -> Test {
    let mut test = Test::new();
    test.row(&row(7, 0, &[4, 2, 2, 0], &[2.0, 1.0, 1.0, 0.0]))
        .row(&row(7, 1, &[2, 2, 2, 2], &[1.0, 1.0, 1.0, 1.0]))
        .row(&row(8, 0, &[2, 2, 0, 0], &[1.0, 0.5, 0.5, 0.0]))
        .row(&row(8, 1, &[1, 1, 1, 1], &[0.5, 0.5, 0.5, 0.5]));
    test
}

#[test]
fn figures_of_a_layer() {
    let metrics = two_layers().metrics();
    metrics.assert("expert_utilization_ratio", LAYER_0, 3.0 / 4.0);
    metrics.assert("expert_load_balancedness", LAYER_0, 3.0 / 6.0);
    metrics.assert("active_experts_per_token", LAYER_0, 12.0 / 6.0);
    metrics.assert("expert_load_share_max", LAYER_0, 6.0 / 12.0);
    metrics.assert("max_vio_global", LAYER_0, 6.0 / 3.0 - 1.0);
    // Step 7: 4 / 2 - 1 = 1; step 8: 2 / 1 - 1 = 1.
    metrics.assert("max_vio_batch", &with(LAYER_0, "mean"), 1.0);
    metrics.assert("max_vio_batch", &with(LAYER_0, "max"), 1.0);
    // Deviations 3 1 -1 -3: variance 20/4 = 5.
    metrics.assert("load_cv", LAYER_0, 5.0_f64.sqrt() / 3.0);
    // T = 6, k = 2, E = 4: sqrt((1 - 2/4) * 4 / 12).
    metrics.assert("load_cv_noise_floor", LAYER_0, (1.0_f64 / 6.0).sqrt());
    // Shares 1/2 1/3 1/6: (0.5 ln 2 + ln 3 / 3 + ln 6 / 6) / ln 4 = 1.0114043 / 1.3862944.
    metrics.assert_near("load_entropy_normalized", LAYER_0, (0.729_574, 1e-6));
    // f = 1/2 1/3 1/6 0, P = 3/6 1.5/6 1.5/6 0: 4 * (1/4 + 1/12 + 1/24).
    metrics.assert("balance_loss", LAYER_0, 1.5);
    metrics.assert("unique_active_experts_per_step", LAYER_0, (3.0 + 2.0) / 2.0);
    // 4 * (1 - 1/2^4) = 3.75 and 4 * (1 - 1/2^2) = 3.
    metrics.assert("unique_active_experts_uniform", LAYER_0, (3.75 + 3.0) / 2.0);
    metrics.assert("dead_experts", LAYER_0, 1.0);
    metrics.assert("dead_experts_uniform", LAYER_0, 4.0 / 64.0);
    metrics.assert("dropped_ratio", LAYER_0, 0.0);
    assert_eq!(metrics.get("load_cv", LAYER_0).samples, 2);
}

#[test]
fn a_balanced_layer() {
    let metrics = two_layers().metrics();
    for (name, value) in [
        ("expert_utilization_ratio", 1.0),
        ("expert_load_balancedness", 1.0),
        ("max_vio_global", 0.0),
        ("load_cv", 0.0),
        ("load_entropy_normalized", 1.0),
        ("balance_loss", 1.0),
        ("dead_experts", 0.0),
    ] {
        metrics.assert(name, LAYER_1, value);
    }
}

#[test]
fn figures_over_layers_keep_the_worst_layer() {
    let metrics = two_layers().metrics();
    metrics.assert("expert_utilization_ratio", DECODED, 7.0 / 8.0);
    // (3 + 3) / (6 + 3)
    metrics.assert("expert_load_balancedness", DECODED, 6.0 / 9.0);
    metrics.assert("max_vio_global", DECODED, 1.0);
    metrics.assert("max_vio_batch", &with(DECODED, "mean"), 1.0);
    metrics.assert("expert_load_share_max", DECODED, 0.5);
    // Root of the mean of 5/9 and 0.
    metrics.assert("load_cv", DECODED, (5.0_f64 / 18.0).sqrt());
    metrics.assert("balance_loss", DECODED, 1.25);
    metrics.assert(
        "unique_active_experts_per_step",
        DECODED,
        (3.0 + 2.0 + 4.0 + 4.0) / 4.0,
    );
    metrics.assert("dead_experts", DECODED, 1.0);
    metrics.assert("dead_experts_uniform", DECODED, 2.0 * 4.0 / 64.0);
    // Summed over layers the loads are 9 7 5 3 of 24.
    for (expert, load) in [("0", 9.0), ("1", 7.0), ("2", 5.0), ("3", 3.0)] {
        metrics.assert(
            "expert_load_share",
            &[DECODED[0], ("expert", expert)],
            load / 24.0,
        );
    }
}

#[test]
fn the_mean_of_max_vio_takes_the_worst_layer_of_each_step() {
    // Step 1: layers 1 and 0; step 2: layers 0 and 1. Each step's worst layer has 1, each layer's mean is 1/2.
    let (hot, flat) = ([2, 2, 0, 0], [1, 1, 1, 1]);
    let mut test = Test::new();
    for (step, layer, counts) in [(1, 0, &hot), (1, 1, &flat), (2, 0, &flat), (2, 1, &hot)] {
        test.row(&row(step, layer, counts, &[1.0; 4]));
    }
    let metrics = test.metrics();
    metrics.assert("max_vio_batch", &with(DECODED, "mean"), 1.0);
    metrics.assert("max_vio_batch", &with(LAYER_0, "mean"), 0.5);
    // Over the window each layer's loads are 3 3 1 1.
    metrics.assert("max_vio_global", DECODED, 0.5);
}

#[test]
fn prefill_and_decode_do_not_mix() {
    let mut test = two_layers();
    test.row(&moe_route::Row {
        phase: PREFILL,
        ..row(6, 0, &[0, 0, 3, 3], &[0.25; 4])
    });
    let metrics = test.metrics();
    let prefill = &[("phase", "prefill")];
    metrics.assert("expert_utilization_ratio", prefill, 0.5);
    metrics.assert("max_vio_batch", &with(prefill, "max"), 1.0);
    metrics.assert("expert_utilization_ratio", DECODED, 7.0 / 8.0);
}

#[test]
fn weights_count_in_sums_and_leave_chance_alone() {
    let one = two_layers().metrics();
    let mut test = Test::new();
    test.weight(8.0)
        .row(&row(7, 0, &[4, 2, 2, 0], &[2.0, 1.0, 1.0, 0.0]))
        .row(&row(7, 1, &[2, 2, 2, 2], &[1.0; 4]))
        .row(&row(8, 0, &[2, 2, 0, 0], &[1.0, 0.5, 0.5, 0.0]))
        .row(&row(8, 1, &[1, 1, 1, 1], &[0.5; 4]));
    let eight = test.metrics();
    for metric in one.all() {
        let labels: Vec<_> = metric
            .labels
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        eight.assert(&metric.name, &labels, one.value(&metric.name, &labels));
    }
    // A row of weight 3 beside one of weight 1: n = 3*2+1 3*2+1 1 1, so 7 of 16.
    let mut test = Test::new();
    test.weight(3.0).row(&row(1, 0, &[2, 2, 0, 0], &[1.0; 4]));
    test.weight(1.0).row(&row(2, 0, &[1, 1, 1, 1], &[1.0; 4]));
    let mixed = test.metrics();
    mixed.assert("expert_load_share_max", LAYER_0, 7.0 / 16.0);
    mixed.assert("max_vio_batch", &with(LAYER_0, "mean"), 3.0 / 4.0);
}

#[test]
fn steps_beside_lost_rows_do_not_count_as_whole_steps() {
    let mut test = Test::new();
    test.row(&row(1, 0, &[1, 1, 1, 1], &[1.0; 4]));
    test.row(&row(2, 0, &[2, 2, 0, 0], &[1.0; 4]));
    test.lose(3).row(&row(4, 1, &[2, 2, 0, 0], &[1.0; 4]));
    test.row(&row(5, 0, &[1, 1, 1, 1], &[1.0; 4]));
    let metrics = test.metrics();
    // Steps 2 and 4 may lack layers; 1 and 5 are balanced.
    metrics.assert("max_vio_batch", &with(DECODED, "max"), 0.0);
    assert_eq!(metrics.get("max_vio_batch", &with(DECODED, "max")).samples, 2);
    metrics.assert("max_vio_batch", &with(LAYER_1, "max"), 1.0);
    // After the last row, too: step 5 may lack a layer.
    test.lose_after(moe_route::KIND, 1);
    let metrics = test.metrics();
    assert_eq!(metrics.get("max_vio_batch", &with(DECODED, "max")).samples, 1);

    let mut test = Test::new();
    test.lose(1).row(&row(4, 1, &[2, 2, 0, 0], &[1.0; 4]));
    let metrics = test.metrics();
    assert_eq!(
        metrics.unavailable("max_vio_batch", &with(DECODED, "max")),
        "each step lies next to lost rows"
    );
}

#[test]
fn dropped_assignments_were_not_computed() {
    let mut test = Test::new();
    test.row(&moe_route::Row {
        dropped: 2,
        ..row(1, 0, &[3, 3, 2, 0], &[1.0; 4])
    });
    let metrics = test.metrics();
    metrics.assert("dropped_ratio", LAYER_0, 2.0 / 8.0);
    metrics.assert("active_experts_per_token", LAYER_0, 6.0 / 4.0);
}

#[test]
fn a_single_expert() {
    let mut test = Test::new();
    test.row(&moe_route::Row {
        tokens: 3,
        top_k: 1,
        ..row(1, 0, &[3], &[3.0])
    });
    let metrics = test.metrics();
    assert_eq!(
        metrics.unavailable("load_entropy_normalized", LAYER_0),
        "a single expert has no distribution"
    );
    for (name, value) in [
        ("max_vio_global", 0.0),
        ("load_cv", 0.0),
        ("load_cv_noise_floor", 0.0),
        ("balance_loss", 1.0),
        ("unique_active_experts_uniform", 1.0),
        ("dead_experts_uniform", 0.0),
    ] {
        metrics.assert(name, LAYER_0, value);
    }
}

#[test]
fn rows_without_tokens_change_nothing() {
    let mut test = two_layers();
    test.row(&row(9, 0, &[0; 4], &[0.0; 4]));
    assert_eq!(test.metrics().all(), two_layers().metrics().all());
    let mut test = Test::new();
    test.row(&row(9, 0, &[0; 4], &[0.0; 4]));
    assert_eq!(
        test.metrics().unavailable("load_cv", &[]),
        nothing(&Test::new().metrics())
    );
}

fn nothing(metrics: &Metrics) -> &str {
    metrics.unavailable("load_cv", &[])
}

#[test]
fn a_model_without_experts_is_told() {
    assert!(nothing(&Test::new().metrics()).ends_with("the model has no experts"));
    let model = ModelInfo {
        experts: 8,
        ..Default::default()
    };
    let run = RunInfo {
        model,
        ..Default::default()
    };
    let metrics = Test::new().run_info(run).metrics();
    assert_eq!(nothing(&metrics), "no router decision was recorded");
    assert_eq!(metrics.all().len(), metrics::ALL.len());
}

#[test]
fn older_hosts_give_no_probabilities_and_drops() {
    let test = two_layers()
        .without(moe_route::COLUMNS.prob_sum)
        .without(moe_route::COLUMNS.dropped);
    let metrics = test.metrics();
    assert_eq!(
        metrics.unavailable("balance_loss", LAYER_0),
        "no router probabilities were recorded"
    );
    assert!(
        metrics
            .unavailable("dropped_ratio", LAYER_0)
            .starts_with("the engine does not tell")
    );
    metrics.assert("active_experts_per_token", LAYER_0, 2.0);
}

#[test]
fn contradictory_rows_are_refused_with_their_place() {
    let mut grown = two_layers();
    grown.row(&row(9, 1, &[1; 8], &[1.0; 8]));
    let text = "moe_route row of step 9, layer 1: the layer had 4 experts before and has 8 now";
    assert_eq!(grown.fault().message, text);
    let mut twice = Test::new();
    twice.row(&moe_route::Row {
        tokens: 2,
        ..row(1, 0, &[3, 1, 0, 0], &[1.0; 4])
    });
    assert!(
        twice
            .fault()
            .message
            .ends_with("an expert has 3 assignments of 2 tokens")
    );
    let mut many = Test::new();
    many.row(&moe_route::Row {
        top_k: 5,
        ..row(1, 0, &[1, 1, 0, 0], &[1.0; 4])
    });
    assert!(many.fault().message.ends_with("5 of 4 experts per token"));
}

#[test]
fn detail_and_size_limit_what_is_listed() {
    let overall = two_layers()
        .config(r#"{"detail":"overall","per_expert":false}"#)
        .metrics();
    assert_eq!(overall.all().len(), 16);
    // 300 experts are not listed one by one.
    let mut wide = Test::new();
    wide.row(&row(1, 0, &[1; 300], &[1.0; 300]));
    let wide = wide.metrics();
    assert!(
        wide.unavailable("expert_load_share", DECODED)
            .starts_with("300 experts")
    );
    assert_eq!(wide.value("expert_utilization_ratio", LAYER_0), 1.0);
    // 300 layers are not either; CollectorTest refuses more than 4,096 metrics.
    let mut deep = Test::new();
    for layer in 0..300 {
        deep.row(&row(1, layer, &[1; 4], &[1.0; 4]));
    }
    let deep = deep.metrics();
    let each = &[("layer", "each")];
    assert!(
        deep.unavailable("load_cv", each)
            .contains("set detail to overall")
    );
    assert_eq!(deep.find("load_cv", LAYER_0), None);
}

#[test]
fn an_unknown_key_is_refused() {
    let refused = Test::new().config(r#"{"details":"layer"}"#).run();
    assert!(matches!(refused, Err(Failure::Fault(fault)) if fault.message.contains("details")));
}

#[test]
fn layers_are_listed_as_long_as_all_metrics_have_room() {
    let (counts, prob_sum) = ([2; 256], [1.0; 256]);
    let layers = |count: u16| {
        let mut test = Test::new();
        for layer in 0..count {
            test.row(&row(7, layer, &counts, &prob_sum));
        }
        test.metrics()
    };
    // (238 layers + the whole) * 16 + 256 experts = 4,080 of 4,096.
    let fits = layers(238);
    assert_eq!(fits.all().len(), 4_080);
    fits.assert("load_cv", &[("phase", "decode"), ("layer", "237")], 0.0);
    let reason = layers(239);
    let reason = reason.unavailable("load_cv", &[("layer", "each")]);
    assert!(reason.contains("detail to overall"), "{reason}");
}
