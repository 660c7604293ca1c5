//! The contracts of version 1.0.0 are as they were when they were frozen (`docs/decisions/0010-freeze-1.0.md`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Folders of which each file with this ending is frozen.
const FOLDERS: &[(&str, &str)] = &[("wit/1.0.0", "wit")];
/// Single files that are frozen.
const FILES: &[&str] = &[];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Digests by path, in the form of `sha256sum`.
fn frozen() -> BTreeMap<String, String> {
    let text = fs::read_to_string(root().join("tests/frozen/1.0.0.sha256")).expect("the digests");
    let line = |line: &str| {
        let (sum, path) = line.split_once("  ").expect("a digest and a path");
        (path.to_owned(), sum.to_owned())
    };
    text.lines().map(line).collect()
}

/// What there is to freeze.
fn contracts() -> BTreeSet<String> {
    let mut paths: BTreeSet<String> = FILES.iter().map(|&path| path.to_owned()).collect();
    for (folder, ending) in FOLDERS {
        let entries = fs::read_dir(root().join(folder)).expect("a folder of the contracts");
        for entry in entries {
            let entry = entry.expect("an entry");
            let name = entry.file_name().into_string().expect("a name in UTF-8");
            assert!(
                entry.path().extension().is_some_and(|found| found == *ending),
                "{folder}/{name} is no .{ending}: a contract has no other files"
            );
            paths.insert(format!("{folder}/{name}"));
        }
    }
    paths
}

#[test]
fn the_contracts_of_1_0_are_as_they_were_frozen() {
    let frozen = frozen();
    assert_eq!(
        frozen.keys().cloned().collect::<BTreeSet<_>>(),
        contracts(),
        "files came to or went from the contracts of 1.0.0, which are frozen: a new version of a contract gets a \
         folder or a crate of its own (docs/decisions/0010-freeze-1.0.md)"
    );
    for (path, sum) in frozen {
        let bytes = fs::read(root().join(&path)).expect("a file of the contracts");
        let found: String = Sha256::digest(bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert!(
            found == sum,
            "{path} is frozen and was changed: plugins that were built against it would no longer fit. Take the change \
             back; what is new goes into a new version beside it, as docs/decisions/0010-freeze-1.0.md says. (A change \
             that no built plugin can notice, such as of a comment, needs a decision that names it, and the digest \
             {found} in tests/frozen/1.0.0.sha256.)"
        );
    }
}
