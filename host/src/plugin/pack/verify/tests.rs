use super::super::key::SecretKey;
use super::super::testing::{NOW, component, content, now, secret, signed, unsigned};
use super::super::trust::TrustStore;
use super::*;

fn trusting(keys: &[(&str, &SecretKey)]) -> TrustStore {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("trust.toml");
    for (name, key) in keys {
        TrustStore::add(&path, name, key.public(), now()).expect("added");
    }
    TrustStore::read(&path).expect("a list")
}

fn state(content: &Content, trust: &TrustStore, seconds: u64) -> PackState {
    let (verdict, _) = verify(content, trust, Timestamp::from_unix(seconds));
    assert_eq!(verdict.to_string().lines().count(), 1);
    let accepted = matches!(verdict.state, PackState::Trusted);
    assert_eq!(verdict.is_accepted(false), accepted, "{verdict}");
    verdict.state
}

/// A pack with one file replaced, added or (without bytes) left out.
fn changed(pack: &Content, name: &str, bytes: Option<&[u8]>) -> Content {
    let mut files: Vec<(&str, &[u8])> = pack.files().filter(|(known, _)| *known != name).collect();
    files.extend(bytes.map(|bytes| (name, bytes)));
    content(&files)
}

#[test]
fn each_state_is_told() {
    let acme = trusting(&[("acme", &secret())]);
    let nobody = TrustStore::default();
    let other = trusting(&[("other", &SecretKey::from_seed(&[8; 32]))]);
    let (pack, _) = signed("1.0.0", &component("acme-probe"));
    assert_eq!(state(&pack, &acme, NOW), PackState::Trusted);
    assert_eq!(state(&pack, &nobody, NOW), PackState::UnknownKey);
    assert_eq!(state(&pack, &other, NOW), PackState::UnknownKey);
    const DAY: u64 = 86_400;
    assert_eq!(state(&pack, &acme, NOW + 30 * DAY - 1), PackState::Trusted);
    assert_eq!(state(&pack, &acme, NOW + 30 * DAY), PackState::Expired);
    assert_eq!(state(&pack, &acme, NOW - CLOCK_SKEW), PackState::Trusted);
    assert_eq!(state(&pack, &acme, NOW - CLOCK_SKEW - 1), PackState::NotYetValid);
    let (plain, _) = unsigned("1.0.0", &component("acme-probe"));
    assert_eq!(state(&plain, &acme, NOW), PackState::Unsigned);
}

#[test]
fn whatever_is_changed_after_signing_is_an_edit() {
    let acme = trusting(&[("acme", &secret())]);
    let (pack, _) = signed("1.0.0", &component("acme-probe"));
    let text = String::from_utf8(pack.get(MANIFEST).expect("a description").to_vec()).expect("text");
    let of = |pack: &Content| state(pack, &acme, NOW);
    let edits = [
        changed(
            &pack,
            MANIFEST,
            Some(text.replace("window = 64", "window = 65").as_bytes()),
        ),
        changed(&pack, MANIFEST, Some(format!("{text}#").as_bytes())),
        changed(&pack, MANIFEST, Some(b"no TOML")),
        changed(&pack, "acme_probe.wasm", Some(&component("acme-prone"))),
        changed(&pack, "acme_probe.wasm", None),
    ];
    for edit in &edits {
        assert_eq!(of(edit), PackState::Edited);
        assert!(!verify(edit, &acme, now()).0.is_accepted(true));
    }
    // The signature of another version of the same pack.
    let (other, _) = signed("1.0.1", &component("acme-probe"));
    assert_eq!(
        of(&changed(&pack, SIGNATURE, other.get(SIGNATURE))),
        PackState::Edited
    );
}

#[test]
fn the_end_of_a_signature_cannot_be_moved() {
    let acme = trusting(&[("acme", &secret())]);
    let (pack, _) = signed("1.0.0", &component("acme-probe"));
    let text = String::from_utf8(pack.get(SIGNATURE).expect("a signature").to_vec()).expect("text");
    let expires = now().after_days(30).to_string();
    assert!(text.contains(&expires));
    let moved = text.replace(&expires, &now().after_days(3_000).to_string());
    let moved = changed(&pack, SIGNATURE, Some(moved.as_bytes()));
    assert_eq!(state(&moved, &acme, NOW), PackState::Edited);
}

#[test]
fn what_is_no_whole_pack_is_broken() {
    let acme = trusting(&[("acme", &secret())]);
    let (pack, _) = signed("1.0.0", &component("acme-probe"));
    let (plain, _) = unsigned("1.0.0", &component("acme-probe"));
    let broken = [
        (changed(&pack, MANIFEST, None), "no pack.toml"),
        (
            changed(&pack, SIGNATURE, Some(b"signed, honestly")),
            "pack.sig cannot be read",
        ),
        (changed(&pack, SIGNATURE, Some(b"")), "pack.sig cannot be read"),
        (
            changed(&pack, "install.sh", Some(b"rm")),
            "install.sh is in the pack",
        ),
        (
            changed(&pack, "README.md", Some(b"hi")),
            "README.md is in the pack",
        ),
        (changed(&plain, MANIFEST, Some(b"no TOML")), "cannot be read"),
        (
            changed(&plain, "acme_probe.wasm", None),
            "acme_probe.wasm is missing",
        ),
        (
            changed(&plain, "acme_probe.wasm", Some(b"x")),
            "is not the file whose sha256",
        ),
    ];
    for (pack, words) in broken {
        let (verdict, _) = verify(&pack, &acme, now());
        assert_eq!(verdict.state, PackState::Broken);
        assert!(verdict.to_string().contains(words), "{verdict}");
        assert!(!verdict.is_accepted(true));
    }
}

#[test]
fn the_user_can_vouch_for_a_pack_without_a_known_signer_alone() {
    let (plain, _) = unsigned("1.0.0", &component("acme-probe"));
    let (pack, _) = signed("1.0.0", &component("acme-probe"));
    for pack in [plain, pack] {
        let (verdict, _) = verify(&pack, &TrustStore::default(), now());
        assert!(verdict.is_accepted(true) && !verdict.is_accepted(false));
    }
    let acme = trusting(&[("acme", &secret())]);
    let (expired, _) = signed("1.0.0", &component("acme-probe"));
    assert!(!verify(&expired, &acme, now().after_days(31)).0.is_accepted(true));
}

#[test]
fn the_sentence_names_key_and_time() {
    let (pack, _) = signed("1.0.0", &component("acme-probe"));
    let fingerprint = secret().public().fingerprint();
    let (verdict, _) = verify(&pack, &trusting(&[("acme", &secret())]), now());
    let end = now().after_days(30);
    assert_eq!(
        verdict.to_string(),
        format!("signed by the trusted key acme ({fingerprint}), valid until {end}")
    );
    let (verdict, _) = verify(&pack, &TrustStore::default(), now());
    assert_eq!(
        verdict.to_string(),
        format!("signed by an unknown key {fingerprint}")
    );
}
