use super::*;

fn table(text: &str) -> toml::Table {
    text.parse().expect("the test's own TOML")
}

#[test]
fn flags_replace_the_file_and_the_file_replaces_defaults() {
    let file =
        table("batch_size = 4\nseq_len = 64\n[plugin_config.fp8-error]\ndetail = \"layer\"\nwindow = 8");
    let flags = table("batch_size = 2\n[plugin_config.fp8-error]\nwindow = 16");
    let plan = resolve(file, flags).expect("a valid plan");
    assert_eq!(
        (plan.batch_size, plan.seq_len, plan.num_iters),
        (2, 64, RunPlan::default().num_iters)
    );
    let config = &plan.plugin_config["fp8-error"];
    assert_eq!(config["detail"], "layer");
    assert_eq!(config["window"], 16);
}

#[test]
fn unknown_keys_and_impossible_values_name_the_key() {
    let message = |file: &str| resolve(table(file), table("")).expect_err("refused").to_string();
    assert!(message("batchsize = 4").contains("batchsize"));
    assert!(message("batch_size = \"four\"").contains("batch_size"));
    assert_eq!(message("seq_len = 0"), "seq_len is 0, but must be at least 1");
    assert!(message("metric_percentiles = [50, 100]").contains("percentile"));
    assert!(message("instrument = \"all\"").contains("instrument"));
}

#[test]
fn a_limit_on_the_observer_effect_needs_the_observer_effect() {
    let message = |file: &str| resolve(table(file), table("")).expect_err("refused").to_string();
    assert_eq!(
        message("max_overhead = \"1%\""),
        "max_overhead is 1%, but must be left out, or used together with observer_effect (--observer-effect)"
    );
    let unsigned = message("observer_effect = true\nmax_overhead = \"1\"");
    assert!(unsigned.contains("per cent sign"), "{unsigned}");
    let plan = resolve(
        table("observer_effect = true\nmax_overhead = \"1.5%\""),
        table(""),
    );
    let limit = plan.expect("a valid plan").max_overhead.expect("a limit");
    assert_eq!(limit.percent(), 1.5);
}

#[test]
fn only_the_demo_is_quantised_unasked() {
    let quantization = |file: &str| {
        resolve(table(file), table(""))
            .expect("a valid plan")
            .quantization()
            .to_owned()
    };
    assert_eq!(quantization(""), "fp8");
    assert_eq!(quantization("model = \"tiny-llama\""), "none");
    assert_eq!(quantization("quantize = \"none\""), "none");
}
