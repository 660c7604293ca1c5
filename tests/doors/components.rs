//! Components written as text: wrong worlds, foreign imports, and damage at each section.

use lm_bench::events::SymbolTable;
use lm_bench::plugin::build_plugin::BuildDoor;
use lm_bench::plugin::{CollectorOutcome, ComponentError, ManifestError, PluginError};
use lm_bench_plugin::Value;
use proptest::prelude::*;
use serde_json::json;

use crate::support::{built, policy, request, run, tokens};
use crate::written::{BODY, CALLS, MANIFEST, SUBSCRIBE, component, core, custom_section};

fn load(bytes: &[u8]) -> Result<CollectorOutcome, PluginError> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("written.wasm");
    std::fs::write(&path, bytes).expect("a written file");
    let requests = request(&path.to_string_lossy(), "written", &json!({}));
    // A changed byte may make a loop.
    let policy = crate::support::limited(|limits| limits.call_ms = 500);
    let outcomes = run(&requests, &policy, &tokens(2, 3), &SymbolTable::new())?;
    Ok(outcomes.into_iter().next().expect("one collector"))
}

fn refused(bytes: &[u8]) -> ComponentError {
    match load(bytes).map(|outcome| outcome.faults) {
        Err(PluginError::Component { error, .. }) => {
            assert_eq!(error.to_string().lines().count(), 1, "{error}");
            error
        }
        other => panic!("not refused as a component: {other:?}"),
    }
}

#[test]
fn a_component_written_by_hand_runs() {
    let bytes = component(
        core(&[BODY, SUBSCRIBE, CALLS]),
        "metric-collector",
        Some(MANIFEST),
    );
    let outcome = load(&bytes).expect("loaded");
    assert_eq!(outcome.faults, Vec::<String>::new());
    let reason = "the collector reported nothing for this metric".to_owned();
    assert_eq!(outcome.metrics[0].value, Value::Unavailable(reason));
    assert_eq!(outcome.peak_memory, Some(16 * 65_536));
}

#[test]
fn a_trap_while_starting_is_quarantined() {
    let start = "(func $start (loop $l (br $l))) (start $start)";
    let bytes = component(
        core(&[BODY, SUBSCRIBE, CALLS, start]),
        "metric-collector",
        Some(MANIFEST),
    );
    let requests = |path: &str| request(path, "written", &json!({}));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("written.wasm");
    std::fs::write(&path, &bytes).expect("a written file");
    let policy = crate::support::limited(|limits| limits.call_ms = 100);
    let outcomes = run(
        &requests(&path.to_string_lossy()),
        &policy,
        &[],
        &SymbolTable::new(),
    )
    .expect("loaded");
    assert_eq!(
        outcomes[0].faults,
        ["took longer than the time limit of 100 ms and was interrupted"]
    );
}

#[test]
fn text_that_is_not_utf8_is_quarantined() {
    // subscribe answers with a fault of code data whose message is the byte 0xff.
    let subscribe = r#"
      (data (i32.const 700) "\ff")
      (func (export "C#subscribe") (param i32 i32 i32 i32) (result i32)
        (i32.store8 (i32.const 1100) (i32.const 1))
        (i32.store8 (i32.const 1104) (i32.const 1))
        (i32.store (i32.const 1108) (i32.const 700)) (i32.store (i32.const 1112) (i32.const 1))
        (i32.const 1100))
    "#;
    let bytes = component(
        core(&[BODY, subscribe, CALLS]),
        "metric-collector",
        Some(MANIFEST),
    );
    let outcome = load(&bytes).expect("loaded");
    assert_eq!(outcome.faults.len(), 1);
    assert!(outcome.faults[0].contains("utf-8"), "{:?}", outcome.faults);
}

#[test]
fn a_component_of_another_world_is_refused() {
    let other = "package other:thing@1.0.0; world thing { export run: func(); }";
    let bytes = component(core(&["(func (export \"run\"))"]), other, Some(MANIFEST));
    assert!(matches!(refused(&bytes), ComponentError::World));
    // Eight bytes are a valid, empty component.
    assert!(matches!(refused(b"\0asm\x0d\0\x01\0"), ComponentError::World));
}

#[test]
fn a_foreign_import_is_named_before_anything_runs() {
    let world = "package other:thing@1.0.0; interface clock { now: func() -> u64; } \
        world thing { import clock; export lm-bench:collector/collector@1.0.0; }";
    let import = "(import \"other:thing/clock@1.0.0\" \"now\" (func (result i64)))";
    let bytes = component(core(&[import, BODY, SUBSCRIBE, CALLS]), world, Some(MANIFEST));
    let error = refused(&bytes);
    assert!(
        matches!(&error, ComponentError::Import { import } if import == "other:thing/clock@1.0.0"),
        "{error}"
    );
    assert!(error.to_string().contains("without WASI"), "{error}");
}

#[test]
fn a_component_without_manifest_or_with_a_later_one_is_refused() {
    let with = |manifest: Option<&str>| {
        refused(&component(
            core(&[BODY, SUBSCRIBE, CALLS]),
            "metric-collector",
            manifest,
        ))
    };
    assert!(matches!(
        with(None),
        ComponentError::Manifest(ManifestError::Missing)
    ));
    let later = MANIFEST.replace("\"schema\":1", "\"schema\":7");
    assert!(matches!(
        with(Some(&later)),
        ComponentError::Manifest(ManifestError::Schema { found: 7 })
    ));
    let interface = MANIFEST.replace("collector/1", "collector/2");
    assert!(matches!(
        with(Some(&interface)),
        ComponentError::Manifest(ManifestError::Interface { .. })
    ));
    assert!(matches!(
        with(Some("{}")),
        ComponentError::Manifest(ManifestError::Unreadable(_))
    ));
    let mut twice = core(&[BODY, SUBSCRIBE, CALLS]);
    custom_section(&mut twice, "lmb:manifest", MANIFEST.as_bytes());
    let twice = component(twice, "metric-collector", Some(MANIFEST));
    assert!(matches!(
        refused(&twice),
        ComponentError::Manifest(ManifestError::Several(2))
    ));
}

#[test]
fn a_component_cut_at_any_section_is_refused() {
    let bytes = std::fs::read(built("hostile", BuildDoor::Wasm)).expect("a component");
    let mut cuts: Vec<usize> = (9..64).collect();
    for payload in wasmparser::Parser::new(0).parse_all(&bytes) {
        if let Some((_, range)) = payload.expect("valid").as_section() {
            cuts.extend([range.start, range.start + 1, range.end.saturating_sub(1)]);
        }
    }
    cuts.retain(|&cut| cut > 8 && cut < bytes.len());
    cuts.sort_unstable();
    cuts.dedup();
    assert!(cuts.len() > 60, "{}", cuts.len());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("hostile.wasm");
    for cut in cuts {
        std::fs::write(&path, &bytes[..cut]).expect("a written file");
        let requests = request(&path.to_string_lossy(), "hostile", &json!({}));
        let error = run(&requests, &policy(), &[], &SymbolTable::new()).expect_err("cut");
        assert!(
            matches!(error, PluginError::Component { .. }),
            "cut at {cut}: {error}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_are_refused(tail in proptest::collection::vec(any::<u8>(), 1..200)) {
        let mut bytes = b"\0asm\x0d\0\x01\0".to_vec();
        bytes.extend(tail);
        prop_assert!(load(&bytes).is_err());
    }

    #[test]
    fn a_changed_byte_never_harms_the_host(at in 8_usize..100_000, value: u8) {
        let mut bytes = component(core(&[BODY, SUBSCRIBE, CALLS]), "metric-collector", Some(MANIFEST));
        let at = at % bytes.len();
        bytes[at] = value;
        // Refused, quarantined or harmless: it comes back in any case.
        let _ = load(&bytes);
    }
}
