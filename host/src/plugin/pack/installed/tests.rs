use std::fs;

use super::super::content::Content;
use super::super::testing::{component, secret, signed, unsigned};
use super::*;

/// Installed packs of a test. Their signatures are made now: use reads the system's time.
struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { folder }
    }

    fn trust(&self) -> PathBuf {
        self.folder.path().join("trust.toml")
    }

    fn packs(&self) -> InstalledPacks {
        InstalledPacks::new(self.folder.path().join("packs"), Some(self.trust()))
    }

    fn install(&self, (content, manifest): &(Content, PackManifest), allow_unsigned: bool) {
        let receipt = Receipt::new(content, today(), allow_unsigned);
        PackStore::new(self.folder.path().join("packs"))
            .install(content, manifest, &receipt)
            .expect("installed");
    }

    fn read(&self) -> Result<PluginFile, UseError> {
        let found = self.packs().candidates("acme-probe", None);
        found.first().expect("a plugin").read(&Limits::default())
    }

    fn refusal(&self) -> String {
        let error = self.read().expect_err("refused").to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
        error
    }
}

fn today() -> Timestamp {
    Timestamp::from_unix(Clock::start().unix_ms() / 1_000)
}

/// A pack signed today, for a number of days.
fn signed_today(version: &str, plugin: &[u8], days: u32) -> (Content, PackManifest) {
    let (mut content, manifest) = signed(version, plugin);
    let text = content.get(MANIFEST).expect("a description");
    let signature =
        super::super::signature::PackSignature::sign(&secret(), text, today(), today().after_days(days));
    content.set_signature(signature.to_toml().expect("TOML").into_bytes());
    (content, manifest)
}

#[test]
fn a_plugin_of_a_trusted_pack_is_read_with_its_configuration() {
    let home = Home::new();
    let plugin = component("acme-probe");
    home.install(&signed_today("1.0.0", &plugin, 30), false);
    TrustStore::add(&home.trust(), "acme", secret().public(), today()).expect("added");
    let found = home.packs().candidates("acme-probe", None);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].config["window"], 64);
    assert_eq!(found[0].source(), "pack acme-pack@1.0.0");
    assert_eq!(found[0].read(&Limits::default()).expect("a plugin").bytes, plugin);
    assert!(home.packs().candidates("acme", None).is_empty());
}

#[test]
fn trust_is_asked_for_at_each_use() {
    let home = Home::new();
    home.install(&signed_today("1.0.0", &component("acme-probe"), 30), false);
    assert!(home.refusal().contains("unknown key"));
    TrustStore::add(&home.trust(), "acme", secret().public(), today()).expect("added");
    home.read().expect("trusted");
    TrustStore::remove(&home.trust(), "acme").expect("removed");
    assert!(home.refusal().contains("unknown key"));
    fs::write(home.trust(), "nonsense").expect("a written file");
    assert!(home.refusal().contains("trust.toml"));
}

#[test]
fn an_expired_pack_is_refused_even_if_the_user_once_vouched_for_it() {
    let home = Home::new();
    home.install(&signed_today("1.0.0", &component("acme-probe"), 0), true);
    TrustStore::add(&home.trust(), "acme", secret().public(), today()).expect("added");
    assert!(home.refusal().contains("expired at"));
}

#[test]
fn a_pack_without_signature_is_used_if_it_was_allowed_when_it_was_installed() {
    let home = Home::new();
    home.install(&unsigned("1.0.0", &component("acme-probe")), true);
    home.read().expect("allowed");
    let place = home.folder.path().join("packs/acme-pack/1.0.0");
    let text = fs::read_to_string(place.join(MANIFEST)).expect("a file");
    fs::write(place.join(MANIFEST), format!("{text}# edited\n")).expect("a written file");
    assert!(home.refusal().contains("not signed"));
}

#[test]
fn a_file_that_was_edited_after_installing_is_refused() {
    let home = Home::new();
    home.install(&signed_today("1.0.0", &component("acme-probe"), 30), false);
    TrustStore::add(&home.trust(), "acme", secret().public(), today()).expect("added");
    let place = home.folder.path().join("packs/acme-pack/1.0.0");
    let file = place.join("acme_probe.wasm");
    let mut other = component("acme-probe");
    other.extend([0, 2, 1, b'x']);
    fs::write(&file, other).expect("a written file");
    assert!(
        home.refusal()
            .contains("edited after installing: acme_probe.wasm")
    );
    fs::remove_file(&file).expect("a file");
    std::os::unix::fs::symlink("/etc/hostname", &file).expect("a link");
    assert!(home.refusal().contains("symbolic link"));
    let text = fs::read_to_string(place.join(MANIFEST)).expect("a file");
    fs::write(place.join(MANIFEST), text.replace("window = 64", "window = 65")).expect("a written file");
    assert!(home.refusal().contains("edited after signing"));
    fs::write(place.join(MANIFEST), "nonsense").expect("a written file");
    assert!(home.packs().candidates("acme-probe", None).is_empty());
    let listed = home.packs().list();
    assert!(!listed[0].is_usable() && listed[0].verdict.to_string().contains("pack.toml"));
}

#[test]
fn the_newest_version_is_taken_unless_another_one_is_pinned() {
    let home = Home::new();
    let old = component("acme-probe");
    let mut new = component("acme-probe");
    new.extend([0, 2, 1, b'x']);
    home.install(&unsigned("1.9.0", &old), true);
    home.install(&unsigned("1.10.0", &new), true);
    assert_eq!(home.read().expect("allowed").bytes, new);
    let digest = home.packs().candidates("acme-probe", None)[1]
        .read(&Limits::default())
        .expect("a plugin")
        .sha256;
    let pinned = home.packs().candidates("acme-probe", Some(&digest));
    assert_eq!(pinned[0].read(&Limits::default()).expect("a plugin").bytes, old);
    assert_eq!(pinned.len(), 2);
}

#[test]
fn a_pack_under_the_name_of_another_is_not_used() {
    let home = Home::new();
    home.install(&unsigned("1.0.0", &component("acme-probe")), true);
    let packs = home.folder.path().join("packs");
    fs::rename(packs.join("acme-pack/1.0.0"), packs.join("acme-pack/2.0.0")).expect("renamed");
    assert!(home.packs().candidates("acme-probe", None).is_empty());
    assert!(
        home.packs().list()[0]
            .verdict
            .to_string()
            .contains("acme-pack 1.0.0")
    );
}
