//! Files that are no plugins: refused with one line, never loaded.

use std::path::Path;

use lm_bench::events::SymbolTable;
use lm_bench::plugin::build_plugin::BuildDoor;
use lm_bench::plugin::{ElfError, ManifestError, PluginError};
use serde_json::json;

use crate::support::{built, policy, request, run};

fn load(bytes: &[u8]) -> PluginError {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("hostile.so");
    std::fs::write(&path, bytes).expect("a written file");
    load_path(&path)
}

fn load_path(path: &Path) -> PluginError {
    let requests = request(&path.to_string_lossy(), "hostile", &json!({}));
    let error = run(&requests, &policy(), &[], &SymbolTable::new()).expect_err("refused");
    assert_eq!(error.to_string().lines().count(), 1, "{error}");
    error
}

#[test]
fn a_truncated_library_is_refused_at_each_length() {
    let bytes = std::fs::read(built("hostile", BuildDoor::Dylib)).expect("a library");
    // Loading such a file would kill this process.
    let lengths = [
        1,
        4,
        16,
        64,
        1_000,
        5_000,
        20_000,
        bytes.len() / 4,
        bytes.len() / 2,
        bytes.len() - 1,
    ];
    for length in lengths {
        let error = load(&bytes[..length]);
        assert!(
            !matches!(error, PluginError::Library { .. }),
            "{length} bytes were loaded: {error}"
        );
    }
}

#[test]
fn a_library_without_manifest_is_no_plugin() {
    let bytes = std::fs::read(built("hostile", BuildDoor::Dylib)).expect("a library");
    // The name of the section, in the table of names at the end of the file.
    let name = b".lmb.manifest\0";
    let mut changed = bytes.clone();
    let places: Vec<usize> = (0..bytes.len() - name.len())
        .filter(|&at| bytes[at..].starts_with(name))
        .collect();
    assert!(!places.is_empty());
    places.iter().for_each(|&at| changed[at + 1] = b'x');
    let error = load(&changed);
    assert!(
        matches!(
            &error,
            PluginError::Elf {
                error: ElfError::Manifest(ManifestError::Missing),
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_changed_interface_in_the_manifest_is_refused_before_loading() {
    for door in [BuildDoor::Dylib, BuildDoor::Wasm] {
        let mut bytes = std::fs::read(built("hostile", door)).expect("a plugin");
        let needle = b"\"requires\":[\"lmb.collector/1\"]";
        let places: Vec<usize> = (0..bytes.len() - needle.len())
            .filter(|&at| bytes[at..].starts_with(needle))
            .collect();
        assert!(!places.is_empty());
        places.iter().for_each(|&at| bytes[at + needle.len() - 3] = b'2');
        let error = load(&bytes).to_string();
        assert!(error.contains("needs interface lmb.collector/2"), "{error}");
        assert!(
            error.contains("offers lmb.collector/1, lmb.probe/1: update lm-bench"),
            "{error}"
        );
    }
}

#[test]
fn other_files_are_told_apart() {
    let cases: [(&[u8], &str); 4] = [
        (b"", "is empty"),
        (b"#!/bin/sh\n", "neither a native library"),
        (b"\0asm\x01\0\0\0", "core WebAssembly module"),
        (b"\x7fELF\x02\x01\x01\xc8", "precompiled WebAssembly"),
    ];
    for (bytes, text) in cases {
        assert!(load(bytes).to_string().contains(text), "{text}");
    }
    assert!(
        load_path(Path::new("/no/such/file.so"))
            .to_string()
            .contains("No such file")
    );
    assert!(
        load_path(Path::new("/"))
            .to_string()
            .contains("not a regular file")
    );
}
