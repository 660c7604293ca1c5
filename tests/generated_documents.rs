//! `docs/metrics.md` says what the built-in collectors declare.

use std::path::Path;

use lm_bench_plugin::builtin;
use lm_bench_plugin::manifest::{Manifest, markdown};

// A collector registers itself only in a program that names its crate.
use attention_efficiency as _;
use core_metrics as _;
use fp8_error as _;
use moe_utilization as _;

#[test]
fn the_page_of_metrics_is_current() {
    let manifest = |bytes| serde_json::from_slice(bytes).expect("a manifest is valid JSON");
    let mut manifests: Vec<Manifest> = builtin::registered()
        .map(|found| manifest(found.manifest))
        .collect();
    manifests.sort_by(|a, b| a.id.cmp(&b.id));
    assert_eq!(manifests.len(), 7);
    let page = markdown(&manifests);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md");
    if std::env::var_os("LM_BENCH_UPDATE_DOCS").is_some_and(|value| value == "1") {
        std::fs::write(&path, &page).expect("a writable page");
    }
    let found = std::fs::read_to_string(&path).expect("the page");
    assert!(
        found == page,
        "docs/metrics.md is stale: LM_BENCH_UPDATE_DOCS=1 cargo test -p lm-bench rewrites it"
    );
}
