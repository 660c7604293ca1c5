use super::super::signature::PackSignature;
use super::super::testing::{component, now, secret, signed, unsigned};
use super::*;

fn install(store: &PackStore, pack: &(Content, PackManifest)) -> Result<Installed, PackError> {
    store.install(&pack.0, &pack.1, &Receipt::new(&pack.0, now(), false))
}

fn labels(store: &PackStore) -> Vec<String> {
    store.list().iter().map(Place::label).collect()
}

/// All that lies below a folder, with the bytes of files.
fn everything(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                found.push((path.clone(), Vec::new()));
                open.push(path);
            } else {
                found.push((path.clone(), fs::read(path).expect("a file")));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_pack_is_installed_once_and_removed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = PackStore::new(folder.path().join("data/packs"));
    assert!(store.list().is_empty());
    let plugin = component("acme-probe");
    let pack = signed("1.0.0", &plugin);
    assert_eq!(install(&store, &pack).expect("installed"), Installed::New);
    let place = folder.path().join("data/packs/acme-pack/1.0.0");
    assert_eq!(fs::read(place.join("acme_probe.wasm")).expect("a file"), plugin);
    let before = everything(folder.path());
    assert_eq!(install(&store, &pack).expect("there"), Installed::Unchanged);
    assert_eq!(everything(folder.path()), before);

    install(&store, &signed("1.10.0", &plugin)).expect("installed");
    install(&store, &signed("1.9.0-rc.1", &plugin)).expect("installed");
    assert_eq!(
        labels(&store),
        ["acme-pack@1.10.0", "acme-pack@1.9.0-rc.1", "acme-pack@1.0.0"]
    );
    let error = store.remove("acme-pack").expect_err("several").to_string();
    assert!(error.contains("1.10.0, 1.9.0-rc.1, 1.0.0"), "{error}");
    store.remove("acme-pack@1.10.0").expect("removed");
    store.remove("acme-pack@1.9.0-rc.1").expect("removed");
    assert_eq!(
        store.remove("acme-pack").expect("removed").label(),
        "acme-pack@1.0.0"
    );
    assert!(everything(&folder.path().join("data/packs")).is_empty());
    let error = store.remove("acme-pack").expect_err("gone").to_string();
    assert_eq!(error, "no pack acme-pack is installed (installed are: none)");
}

#[test]
fn removing_never_leaves_the_folder() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = PackStore::new(folder.path().join("packs"));
    install(&store, &signed("1.0.0", &component("acme-probe"))).expect("installed");
    fs::create_dir_all(folder.path().join("victim/1.0.0")).expect("a folder");
    let before = everything(folder.path());
    for target in [
        "../victim",
        "../victim@1.0.0",
        "acme-pack@../../victim",
        "acme-pack@",
        "",
        "@",
        "/",
    ] {
        assert!(
            matches!(store.remove(target), Err(PackError::NotInstalled { .. })),
            "{target}"
        );
    }
    assert_eq!(everything(folder.path()), before);
}

#[test]
fn other_content_under_one_version_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = PackStore::new(folder.path().to_owned());
    install(&store, &signed("1.0.0", &component("acme-probe"))).expect("installed");
    let before = everything(folder.path());
    let mut other = component("acme-probe");
    // Another custom section.
    other.extend([0, 2, 1, b'x']);
    let error = install(&store, &signed("1.0.0", &other)).expect_err("refused");
    assert!(matches!(error, PackError::OtherContent { .. }), "{error}");
    assert_eq!(everything(folder.path()), before);
}

#[test]
fn a_renewed_signature_replaces_the_old_one_and_is_not_lost_again() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = PackStore::new(folder.path().to_owned());
    let old = signed("1.0.0", &component("acme-probe"));
    install(&store, &old).expect("installed");
    let (mut content, manifest) = old.clone();
    let text = content.get(MANIFEST).expect("a description");
    let renewed = PackSignature::sign(&secret(), text, now(), now().after_days(300));
    let renewed = renewed.to_toml().expect("TOML");
    content.set_signature(renewed.clone().into_bytes());
    assert_eq!(
        install(&store, &(content, manifest)).expect("renewed"),
        Installed::Renewed
    );
    let path = folder.path().join("acme-pack/1.0.0/pack.sig");
    assert_eq!(fs::read_to_string(&path).expect("a file"), renewed);
    let plain = unsigned("1.0.0", &component("acme-probe"));
    assert_eq!(
        install(&store, &plain).expect("nothing to do"),
        Installed::Unchanged
    );
    assert_eq!(fs::read_to_string(&path).expect("a file"), renewed);
}

#[test]
fn a_damaged_copy_is_named_and_not_mended_in_silence() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = PackStore::new(folder.path().to_owned());
    let pack = signed("1.0.0", &component("acme-probe"));
    install(&store, &pack).expect("installed");
    fs::write(folder.path().join("acme-pack/1.0.0/acme_probe.wasm"), b"other").expect("a written file");
    let error = install(&store, &pack).expect_err("refused");
    assert!(matches!(error, PackError::Damaged { .. }), "{error}");
    store.remove("acme-pack").expect("removed");
    install(&store, &pack).expect("installed");
}

#[test]
fn installations_and_removals_at_once_leave_whole_packs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = PackStore::new(folder.path().join("packs"));
    let pack = signed("1.0.0", &component("acme-probe"));
    let new = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| match install(&store, &pack).expect("installed") {
                Installed::New => {
                    new.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                }
                other => assert_eq!(other, Installed::Unchanged),
            });
        }
    });
    assert_eq!(new.into_inner(), 1, "one of them installed it");
    assert_eq!(labels(&store), ["acme-pack@1.0.0"]);
    std::thread::scope(|scope| {
        for turn in 0..8 {
            let (store, pack) = (&store, &pack);
            scope.spawn(move || {
                if turn % 2 == 0 {
                    install(store, pack).expect("installed");
                } else if let Err(error) = store.remove("acme-pack") {
                    assert!(matches!(error, PackError::NotInstalled { .. }), "{error}");
                }
            });
        }
    });
    for place in store.list() {
        let content = folder::read(&place.path, ContentLimits::default()).expect("a whole pack");
        assert_eq!(content, pack.0);
    }
    let names = names(&folder.path().join("packs"));
    assert!(names.iter().all(|name| name == "acme-pack"), "{names:?}");
}

#[test]
fn what_a_killed_installation_left_is_no_pack_and_is_swept_away() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = PackStore::new(folder.path().to_owned());
    let left = folder.path().join(".unfinished-abc");
    fs::create_dir(&left).expect("a folder");
    fs::write(left.join("pack.toml"), b"half").expect("a written file");
    assert!(store.list().is_empty());
    install(&store, &signed("1.0.0", &component("acme-probe"))).expect("installed");
    assert!(!left.exists());
}

#[test]
fn a_failed_installation_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = PackStore::new(folder.path().to_owned());
    // A file where the pack's folder belongs.
    fs::write(folder.path().join("acme-pack"), b"in the way").expect("a written file");
    let error = install(&store, &signed("1.0.0", &component("acme-probe"))).expect_err("refused");
    assert!(error.is_failure(), "{error}");
    assert_eq!(names(folder.path()), ["acme-pack"]);
}

#[test]
fn a_receipt_holds_for_the_description_it_was_written_for() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = PackStore::new(folder.path().to_owned());
    let (content, manifest) = unsigned("1.0.0", &component("acme-probe"));
    let receipt = Receipt::new(&content, now(), true);
    store.install(&content, &manifest, &receipt).expect("installed");
    let place = folder.path().join("acme-pack/1.0.0");
    let text = content.get(MANIFEST).expect("a description");
    assert_eq!(Receipt::read(&place, text), Some(receipt));
    assert_eq!(Receipt::read(&place, b"another"), None);
    let withdrawn = Receipt::new(&content, now(), false);
    assert_eq!(
        store.install(&content, &manifest, &withdrawn).expect("there"),
        Installed::Renewed
    );
    assert_eq!(
        Receipt::read(&place, text).map(|receipt| receipt.allow_unsigned),
        Some(false)
    );
}
