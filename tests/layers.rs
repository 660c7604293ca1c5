//! The layer rule of ARCHITECTURE.md: a module of the host imports only modules before it, and engines, probes,
//! plugins and reports do not know one another.

use std::fs;
use std::path::{Path, PathBuf};

/// A file of this repository.
fn text_of(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::read_to_string(root.join(path)).expect("a file of the repository")
}

/// The modules from the bottom up: the order in which `lib.rs` names them, and the program last.
fn layers() -> Vec<String> {
    let library = text_of("host/src/lib.rs");
    let named = library
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    named.chain(["main"]).map(ToOwned::to_owned).collect()
}

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

/// Modules of the crate that a source text names, each with the byte at which it does: by a path from `crate`, or by
/// one of `super`s that leads out of all `depth` modules that the file lies in.
fn imported(text: &str, depth: usize) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, word) in text.match_indices("crate::") {
        found.extend(first_names(&text[at + word.len()..]).map(|name| (at, name)));
    }
    let step = "super::";
    for (at, _) in text.match_indices(step) {
        let rest = text[at..].trim_start_matches(step);
        let steps = (text.len() - at - rest.len()) / step.len();
        if steps >= depth && !text[..at].ends_with(step) {
            found.extend(first_names(rest).map(|name| (at, name)));
        }
    }
    found
}

/// The name that a path goes on with, or those of its group in braces.
fn first_names(rest: &str) -> impl Iterator<Item = String> {
    let mut depth = 0;
    let group = rest.trim_start().strip_prefix('{');
    let end = |c: char| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        depth < 0
    };
    let names = match group {
        Some(names) => names.split(end).next().unwrap_or(names),
        None => rest,
    };
    let mut nested = 0;
    let parts = names.split(move |c: char| {
        match c {
            '{' => nested += 1,
            '}' => nested -= 1,
            _ => {}
        }
        c == ',' && nested == 0
    });
    let word = |text: &str| {
        let letters = text.trim_start().chars();
        letters.take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let all = if group.is_some() { usize::MAX } else { 1 };
    parts.take(all).map(word)
}

/// How many modules a file of the host lies in: `a.rs` and `a/mod.rs` in one, `a/b.rs` in two.
fn depth_of(relative: &Path) -> usize {
    let parts = relative.components().count();
    parts - usize::from(relative.ends_with("mod.rs"))
}

fn broken_rule(layers: &[String], module: &str, imported: &str) -> Option<String> {
    let level = |name: &str| layers.iter().position(|layer| layer == name);
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
    let layers = layers();
    let mut broken = Vec::new();
    for file in files {
        let relative = file.strip_prefix(&source).expect("below the source folder");
        let module = module_of(relative);
        assert!(
            layers.contains(&module) || module == "lib",
            "{module} has no place in the order of lib.rs"
        );
        let text = fs::read_to_string(&file).expect("UTF-8");
        for (at, other) in imported(&text, depth_of(relative)) {
            if let Some(reason) = broken_rule(&layers, &module, &other) {
                let line = 1 + text[..at].matches('\n').count();
                broken.push(format!("host/src/{}:{line}: {reason}", relative.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_architecture_page_has_the_order_of_the_library() {
    let page = text_of("ARCHITECTURE.md");
    let (_, after) = page
        .split_once("## The modules of the host")
        .expect("the section");
    let section = after.split("\n## ").next().expect("its text");
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let names = rows.map(|row| row.split('`').next().expect("a name").trim_end_matches(".rs"));
    assert_eq!(names.collect::<Vec<_>>(), layers());
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
    let names = |text| {
        let found = imported(text, 1).into_iter();
        found.map(|(_, name)| name).collect::<Vec<_>>()
    };
    assert_eq!(names("use crate::events::Recorder;"), ["events"]);
    assert_eq!(names("use crate::{events::{A, B}, cli};"), ["events", "cli"]);
    assert_eq!(
        names("use crate::{\n    events::A,\n    cli,\n};\nuse std::fs;")[..2],
        ["events", "cli"]
    );
    assert_eq!(names("use super::engine::Engine;"), ["engine"]);
    assert!(imported("use super::engine::Engine;", 2).is_empty());
    assert_eq!(imported("use super::super::cli::Exit;", 2).len(), 1);
    let layers = layers();
    assert!(
        layers.len() > 10
            && STRANGERS
                .iter()
                .all(|name| layers.iter().any(|layer| layer == name))
    );
    assert!(broken_rule(&layers, "engine", "plugin").is_some());
    assert!(broken_rule(&layers, "events", "run").is_some());
    assert!(broken_rule(&layers, "run", "events").is_none());
}
