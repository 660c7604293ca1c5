//! Finding, listing and inspecting plugins.

use std::path::Path;

use lm_bench::events::SymbolTable;
use lm_bench::plugin::build_plugin::BuildDoor;
use lm_bench::plugin::{Door, PluginError, Policy, Registry, Requests};
use serde_json::json;

use crate::support::{built, policy, request, run};

fn registry(folders: &[&Path]) -> Registry {
    let plugin_dirs = folders.iter().map(|folder| (*folder).to_owned()).collect();
    Registry::new(&Policy {
        plugin_dirs,
        ..Policy::default()
    })
    .expect("built-in collectors are valid")
}

#[test]
fn all_built_in_collectors_are_registered() {
    let listed = registry(&[]).list();
    let ids: Vec<&str> = listed
        .iter()
        .filter(|entry| entry.door == Some(Door::Builtin))
        .filter_map(|entry| entry.id.as_deref())
        .filter(|id| !["hostile", "probe-collector", crate::slow_steps::BUILTIN].contains(id))
        .collect();
    let expected = [
        "attention-efficiency",
        "fp8-error",
        "kv-cache",
        "latency",
        "memory",
        "moe-utilization",
        "throughput",
    ];
    assert_eq!(ids, expected);
}

#[test]
fn inspect_tells_what_a_file_is_without_running_it() {
    for (door, expected) in [(BuildDoor::Dylib, Door::Dylib), (BuildDoor::Wasm, Door::Wasm)] {
        let path = built("hostile", door);
        let inspection = registry(&[]).inspect(&path.to_string_lossy()).expect("a plugin");
        assert_eq!((inspection.door, inspection.problem), (expected, None));
        assert_eq!(inspection.manifest.id, "hostile");
        assert_eq!(inspection.manifest.metrics.len(), 3);
        assert_eq!(
            inspection.size,
            Some(std::fs::metadata(&path).expect("a file").len())
        );
        assert_eq!(inspection.sha256.map(|digest| digest.len()), Some(64));
        let description = inspection.description.expect("its build recorded it");
        // `mode`, `at` and `after` are the keys of its configuration.
        let keys = description.config["properties"].as_object().expect("keys");
        assert_eq!(keys.keys().collect::<Vec<_>>(), ["after", "at", "mode"]);
        let wants = description.subscription.expect("it wants the same always").wants;
        assert_eq!((wants.len(), wants[0].kind.as_str()), (1, "token"));
        assert_eq!(wants[0].columns, ["index"]);
        let own = |name: &str| format!("lm-bench:collector/{name}@1.0.0");
        match inspection.imports {
            Some(mut imports) => {
                imports.sort();
                assert_eq!(imports, [own("host"), own("types")]);
            }
            None => assert_eq!(door, BuildDoor::Dylib),
        }
    }
}

#[test]
fn a_built_in_collector_is_described_too_and_a_file_without_a_description_has_none() {
    let hostile = registry(&[]).inspect("hostile").expect("built in");
    let path = built("hostile", BuildDoor::Wasm).to_string_lossy().into_owned();
    let component = registry(&[]).inspect(&path).expect("a plugin");
    assert_eq!(hostile.description, component.description);
    // The description is the last section: the component is whole without it.
    let bytes = std::fs::read(&path).expect("a component");
    let name = b"lmb:describe";
    let at = (0..bytes.len()).rev().find(|&at| bytes[at..].starts_with(name));
    // Before the name stand its length, the length of the section in two bytes, and the section's number.
    let bare = &bytes[..at.expect("a section") - 4];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("hostile.wasm");
    std::fs::write(&path, bare).expect("a written file");
    let bare = registry(&[]).inspect(&path.to_string_lossy()).expect("a plugin");
    assert_eq!((bare.problem, bare.description), (None, None));
}

#[test]
fn an_id_is_looked_for_in_the_folders_and_built_in_collectors_come_first() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [library, component] = [BuildDoor::Dylib, BuildDoor::Wasm].map(|door| built("hostile", door));
    for path in [&library, &component] {
        std::fs::copy(path, folder.path().join(path.file_name().expect("a name"))).expect("a copy");
    }
    std::fs::copy(&component, folder.path().join("other_name.wasm")).expect("a copy");
    let registry = registry(&[folder.path()]);
    let found = registry.inspect("hostile").expect("found");
    assert_eq!((found.door, found.shadows.len()), (Door::Builtin, 2));
    let wrong = registry
        .inspect("other-name")
        .expect_err("it holds another plugin");
    assert!(
        matches!(&wrong, PluginError::OtherId { found, .. } if found == "hostile"),
        "{wrong}"
    );
    let shadowed = registry.list().into_iter().filter(|entry| entry.path.is_some());
    let by: Vec<_> = shadowed.map(|entry| entry.shadowed_by).collect();
    assert_eq!(by, vec![Some("built in".to_owned()); 3]);
}

#[test]
fn an_unknown_id_is_told_with_the_ids_and_folders_that_there_are() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let error = registry(&[folder.path()])
        .inspect("no-such-plugin")
        .expect_err("unknown")
        .to_string();
    assert!(
        error.contains("no plugin no-such-plugin") && error.contains("moe-utilization"),
        "{error}"
    );
    assert!(
        error.contains(&format!("{}, ", folder.path().display())) && error.contains(".lm-bench/plugins"),
        "{error}"
    );
    let error = registry(&[]).inspect("No Plugin").expect_err("no id").to_string();
    assert!(error.contains("\"No Plugin\" is no plugin"), "{error}");
}

#[test]
fn one_id_twice_in_a_run_is_an_error_naming_both() {
    let path = built("moe-utilization", BuildDoor::Wasm)
        .to_string_lossy()
        .into_owned();
    let mut requests = request("moe-utilization", "moe-utilization", &json!({}));
    requests.plugins.push(path.clone());
    let error = run(&requests, &policy(), &[], &SymbolTable::new())
        .expect_err("twice")
        .to_string();
    assert!(
        error.contains("as built in and as ") && error.contains(&path),
        "{error}"
    );
}

#[test]
fn a_requested_file_takes_the_place_of_the_default_collector() {
    let path = built("moe-utilization", BuildDoor::Wasm)
        .to_string_lossy()
        .into_owned();
    let requests = Requests {
        plugins: vec![path],
        defaults: true,
        ..Requests::default()
    };
    let outcomes = run(&requests, &policy(), &[], &SymbolTable::new()).expect("loaded");
    let moe: Vec<Door> = outcomes
        .iter()
        .filter(|outcome| outcome.manifest.id == "moe-utilization")
        .map(|outcome| outcome.door)
        .collect();
    assert_eq!(moe, [Door::Wasm]);
    assert!(outcomes.len() >= 7, "{}", outcomes.len());
}

#[test]
fn native_code_needs_permission() {
    let path = built("hostile", BuildDoor::Dylib);
    let requests = request(&path.to_string_lossy(), "hostile", &json!({}));
    let error = run(&requests, &Policy::default(), &[], &SymbolTable::new()).expect_err("not allowed");
    assert!(error.to_string().contains("--allow-native"), "{error}");
}

#[test]
fn configuration_for_a_plugin_that_does_not_run_is_refused() {
    let requests = request("hostile", "hostil", &json!({"mode": "none"}));
    let error = run(&requests, &policy(), &[], &SymbolTable::new())
        .expect_err("stray")
        .to_string();
    assert!(
        error.contains("plugin hostil,") && error.contains("(its plugins: hostile)"),
        "{error}"
    );
}
