use proptest::prelude::*;

use super::super::name;
use super::super::testing::{component, manifest_text};
use super::*;
use crate::plugin::identity::is_id;

fn good() -> String {
    manifest_text("1.2.0", &component("acme-probe"))
}

fn error(text: &str) -> String {
    let error = PackManifest::parse(text.as_bytes()).expect_err(text).to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.len() < 600, "{error}");
    error
}

#[test]
fn a_description_is_the_same_after_it_was_written_and_read() {
    let manifest = PackManifest::parse(good().as_bytes()).expect("a description");
    assert_eq!(manifest.name, "acme-pack");
    assert_eq!(manifest.version, Version::new(1, 2, 0));
    assert_eq!(manifest.config_of("acme-probe")["window"], 64);
    assert!(manifest.config_of("other").is_empty());
    let text = manifest.to_toml().expect("TOML");
    let again = PackManifest::parse(text.as_bytes()).expect("a description");
    assert_eq!(again, manifest);
    assert_eq!(again.to_toml().expect("TOML"), text);
}

#[test]
fn a_draft_may_leave_out_what_building_fills_in() {
    let drafted: String = good()
        .lines()
        .filter(|line| {
            !["sha256", "size", "requires"]
                .iter()
                .any(|key| line.starts_with(key))
        })
        .map(|line| format!("{line}\n"))
        .collect();
    let draft = PackManifest::parse_draft(drafted.as_bytes()).expect("a draft");
    assert_eq!((draft.plugins[0].size, draft.plugins[0].sha256.as_str()), (0, ""));
    assert!(error(&drafted).contains("pack build"));
}

fn refuses(cases: &[(String, &str)]) {
    for (text, words) in cases {
        let error = error(text);
        assert!(error.contains(words), "{words:?} is not in: {error}");
    }
}

/// The good text with one part replaced.
fn with(part: &str, other: &str) -> String {
    let text = good().replace(part, other);
    assert_ne!(text, good(), "{part}");
    text
}

#[test]
fn each_mistake_about_the_pack_is_named() {
    let nested = format!("{}deep = {}1{}", good(), "[".repeat(50_000), "]".repeat(50_000));
    let long = format!("window = \"{}\"", "x".repeat(70_000));
    let no_plugins = good().split("[[plugins]]").next().expect("a head").to_owned();
    refuses(&[
        (with("schema = 1", "schema = 2"), "has layout 2"),
        (with("schema = 1\n", ""), "schema"),
        (with("acme-pack", "../acme"), "name \"../acme\""),
        (with("1.2.0", "1.2"), "cannot be read"),
        (with("1.2.0", "1.2.0+build"), "build metadata"),
        (with("1.2.0", "1.2.0-RC"), "upper-case"),
        (with("license = \"MIT\"", "license = \"\""), "license is empty"),
        (with("about = \"a\"", "about = \"a\\nb\""), "not one line"),
        (with("about", "abuot"), "abuot"),
        (with("[config.acme-probe]", "[config.other]"), "no plugin of it"),
        (with("window = 64", "window = nan"), "JSON does not have"),
        (with("window = 64", "window = [2026-12-01]"), "JSON does not have"),
        (with("window = 64", &long), "65536 bytes"),
        (
            with("[config", "[[documents]]\nfile = \"install.sh\"\n[config"),
            "no document",
        ),
        (no_plugins, "plugins"),
        ("\u{0}".to_owned(), "cannot be read"),
        (String::new(), "schema"),
        ("#".repeat(MANIFEST_BYTES + 1), "more than 1048576 bytes"),
        (nested, "cannot be read"),
    ]);
    assert!(PackManifest::parse(&[0xff]).is_err());
}

#[test]
fn each_mistake_about_a_plugin_is_named() {
    let library = "[[plugins]]\nid = \"acme-native\"\ndoor = \"dylib\"\nfile = \"acme_native.so\"\n";
    let targeted = "target = \"x86_64-unknown-linux-gnu\"\nfile =";
    let no_target = format!("{library}target = \"linux\"\n[config");
    refuses(&[
        (with("acme_probe.wasm", "../acme_probe.wasm"), "a part . or .."),
        (with("acme_probe.wasm", "/acme_probe.wasm"), "absolute"),
        (with("acme_probe.wasm", "acme_probe.cwasm"), "NAME.wasm"),
        (with("acme_probe.wasm", "pack.toml"), "NAME.wasm"),
        (with("size = ", "size = -"), "cannot be read"),
        (with("sha256 = \"", "sha256 = \"F"), "64 digits"),
        (with("\"wasm\"", "\"native\""), "cannot be read"),
        (with("file =", targeted), "no target"),
        (with("lmb.collector/1", "lmb collector"), "no interface"),
        (with("[config", &format!("{library}[config")), "needs a target"),
        (with("[config", &no_target), "is no target"),
    ]);
}

#[test]
fn one_plugin_may_have_a_file_for_each_target_and_no_two_for_one() {
    let entry = |target: &str, file: &str| {
        format!(
            "[[plugins]]\nid = \"acme-probe\"\ndoor = \"dylib\"\ntarget = \"{target}\"\nfile = \"{file}\"\n\
             sha256 = \"{}\"\nsize = 1\n",
            "0".repeat(64)
        )
    };
    let with = |entries: &str| with("[config", &format!("{entries}[config"));
    let (x86, arm) = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu");
    let both = with(&(entry(x86, "x86/p.so") + &entry(arm, "arm/p.so")));
    let manifest = PackManifest::parse(both.as_bytes()).expect("a description");
    let host = manifest
        .plugins
        .iter()
        .filter(|plugin| plugin.is_for_host())
        .count();
    assert_eq!(host, 2, "the component and one library");
    assert!(error(&with(&(entry(x86, "a.so") + &entry(x86, "b.so")))).contains("twice for one door"));
    assert!(error(&with(&(entry(x86, "a.so") + &entry(arm, "a.so")))).contains("a.so is named twice"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused_in_one_line(text in "\\PC*", bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
        if let Err(error) = PackManifest::parse(text.as_bytes()) {
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
        let _ = PackManifest::parse(&bytes);
    }

    #[test]
    fn a_changed_description_is_refused_or_allowed_in_all_its_names(
        at in any::<prop::sample::Index>(), text in "[ -~\\n]{0,4}", cut in 0..4_usize
    ) {
        let good = good();
        let at = at.index(good.len());
        let changed = format!("{}{text}{}", &good[..at], good.get(at + cut..).unwrap_or_default());
        match PackManifest::parse(changed.as_bytes()) {
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
            Ok(manifest) => {
                prop_assert!(is_id(&manifest.name));
                for file in manifest.files() {
                    prop_assert!(name::check(file.file.as_bytes()).is_ok() && is_sha256(file.sha256));
                }
                let text = manifest.to_toml().expect("TOML");
                prop_assert_eq!(PackManifest::parse(text.as_bytes()).expect("a description"), manifest);
            }
        }
    }
}
