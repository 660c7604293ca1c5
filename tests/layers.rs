//! The layer rule of ARCHITECTURE.md: a module of the host imports only modules before it, and engines, probes,
//! plugins and reports do not know one another.

use std::fs;
use std::path::{Path, PathBuf};

/// The modules from the bottom up.
const LAYERS: &[&str] = &[
    "clock", "stop", "model", "workload", "events", "engine", "probe", "plugin", "stats", "report",
    "compare", "plan", "run", "cli", "main",
];

/// Joined by `run` alone.
const STRANGERS: &[&str] = &["engine", "probe", "plugin", "report"];

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a readable source folder") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The module of the host that a file below `host/src` belongs to.
fn module_of(relative: &Path) -> String {
    let first = relative.components().next().expect("a file has a name");
    first
        .as_os_str()
        .to_string_lossy()
        .trim_end_matches(".rs")
        .to_owned()
}

/// Modules named by `crate::` paths in a line.
fn imported(line: &str) -> impl Iterator<Item = String> + '_ {
    line.match_indices("crate::").flat_map(move |(at, found)| {
        let rest = &line[at + found.len()..];
        let names = match rest.strip_prefix('{') {
            Some(group) => group.split('}').next().unwrap_or(group),
            None => rest,
        };
        let word = |text: &str| {
            text.trim()
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect::<String>()
        };
        if rest.starts_with('{') {
            names.split(',').map(word).collect()
        } else {
            vec![word(names)]
        }
    })
}

fn broken_rule(module: &str, imported: &str) -> Option<String> {
    let level = |name: &str| LAYERS.iter().position(|layer| *layer == name);
    let (Some(own), Some(other)) = (level(module), level(imported)) else {
        return None;
    };
    if other > own {
        return Some(format!("{module} stands below {imported}"));
    }
    let strangers = STRANGERS.contains(&module) && STRANGERS.contains(&imported) && module != imported;
    strangers.then(|| format!("{module} and {imported} are joined by run, not by each other"))
}

#[test]
fn modules_import_only_what_stands_below_them() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    assert!(
        files.len() > 20,
        "the test looks at the wrong folder: {}",
        source.display()
    );
    let mut broken = Vec::new();
    for file in files {
        let relative = file.strip_prefix(&source).expect("below the source folder");
        let module = module_of(relative);
        assert!(
            LAYERS.contains(&module.as_str()) || module == "lib",
            "{module} has no place in the table of layers"
        );
        for (number, line) in fs::read_to_string(&file).expect("UTF-8").lines().enumerate() {
            for reason in imported(line).filter_map(|other| broken_rule(&module, &other)) {
                broken.push(format!(
                    "host/src/{}:{}: {reason}",
                    relative.display(),
                    number + 1
                ));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn plugins_import_the_sdk_and_nothing_else_of_ours() {
    let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins");
    for entry in fs::read_dir(plugins).expect("the plugins") {
        let manifest = entry.expect("a readable entry").path().join("Cargo.toml");
        let Ok(text) = fs::read_to_string(&manifest) else {
            continue;
        };
        let parsed: toml::Table = text.parse().expect("valid TOML");
        let dependencies = parsed["dependencies"].as_table().expect("a table");
        for name in dependencies.keys().filter(|name| name.starts_with("lm-bench")) {
            assert_eq!(name, "lm-bench-plugin", "{}", manifest.display());
        }
    }
}

#[test]
fn the_rule_itself_is_checked() {
    let names = |line| imported(line).collect::<Vec<_>>();
    assert_eq!(names("use crate::events::Recorder;"), ["events"]);
    assert_eq!(names("use crate::{events::Recorder, cli};"), ["events", "cli"]);
    assert!(broken_rule("engine", "plugin").is_some());
    assert!(broken_rule("events", "run").is_some());
    assert!(broken_rule("run", "events").is_none());
}
