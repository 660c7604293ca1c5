use std::collections::BTreeMap;
use std::io::Read;

use serde_json::{Value, json};

use super::*;

type Members = BTreeMap<String, Vec<u8>>;

fn unpack(path: &Path) -> Members {
    let mut archive = tar::Archive::new(std::fs::File::open(path).unwrap());
    let mut members = Members::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().to_string_lossy().into_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        members.insert(name, bytes);
    }
    members
}

fn append(builder: &mut tar::Builder<Vec<u8>>, name: &str, bytes: &[u8], kind: tar::EntryType) {
    let mut header = tar::Header::new_gnu();
    // Written by hand: the tar crate refuses names such as ../x.
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_size(bytes.len() as u64);
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_cksum();
    builder.append(&header, bytes).unwrap();
}

fn pack(members: &Members) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in members {
        append(&mut builder, name, bytes, tar::EntryType::Regular);
    }
    builder.into_inner().unwrap()
}

/// What reading gives for a small recording whose members were changed.
fn after(change: impl FnOnce(&mut Members)) -> Result<usize, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.lmrec");
    record(&path, small_run);
    let mut members = unpack(&path);
    change(&mut members);
    read(&folder, &pack(&members))
}

fn read(folder: &tempfile::TempDir, bytes: &[u8]) -> Result<usize, String> {
    let path = folder.path().join("changed.lmrec");
    std::fs::write(&path, bytes).unwrap();
    replayed(&path)
        .map(|deliveries| deliveries.len())
        .map_err(|error| {
            let text = error.to_string();
            assert!(!text.contains('\n'), "{text}");
            text.replace(&path.display().to_string(), "FILE")
        })
}

/// What reading gives for a `stream.json` that was changed.
fn after_json(change: impl FnOnce(&mut Value)) -> String {
    after(|members| {
        let mut stream: Value = serde_json::from_slice(&members["stream.json"]).unwrap();
        change(&mut stream);
        members.insert("stream.json".to_owned(), serde_json::to_vec(&stream).unwrap());
    })
    .unwrap_err()
}

#[track_caller]
fn assert_says(error: &str, what: &str) {
    assert!(error.starts_with("FILE ") && error.contains(what), "{error}");
}

#[test]
fn an_unchanged_copy_reads() {
    assert!(after(|_| ()).unwrap() >= 5);
}

#[test]
fn files_that_are_no_recordings_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert_says(&read(&folder, b"").unwrap_err(), "stream.json is missing");
    assert_says(
        &read(&folder, &[7; 5_000]).unwrap_err(),
        "not a whole tar archive",
    );
    assert_says(&read(&folder, &[0; 10]).unwrap_err(), "not a whole tar archive");
    let gone = Recording::open(&folder.path().join("gone.lmrec"))
        .unwrap_err()
        .to_string();
    assert!(
        gone.starts_with("cannot read ") && gone.contains("No such file"),
        "{gone}"
    );
    let error = Recording::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("not a regular file"), "{error}");
}

#[test]
fn a_truncated_file_is_refused_wherever_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.lmrec");
    record(&path, small_run);
    let whole = std::fs::read(&path).unwrap();
    // The last 1,024 bytes are the empty blocks that end a tar, and before them is padding.
    for length in (1..whole.len() - 2_048).step_by(509) {
        let error = read(&folder, &whole[..length]).unwrap_err();
        assert!(
            error.starts_with("FILE is not a usable recording"),
            "{length}: {error}"
        );
    }
}

#[test]
fn members_that_do_not_belong_are_refused() {
    let with = |name: &str, kind| {
        let folder = tempfile::tempdir().unwrap();
        let mut builder = tar::Builder::new(Vec::new());
        append(&mut builder, name, b"", kind);
        read(&folder, &builder.into_inner().unwrap()).unwrap_err()
    };
    for name in ["../stream.json", "/etc/passwd", "a/b.arrow", ".hidden"] {
        assert_says(
            &with(name, tar::EntryType::Regular),
            "does not belong into a recording",
        );
    }
    for kind in [
        tar::EntryType::Symlink,
        tar::EntryType::Link,
        tar::EntryType::Directory,
        tar::EntryType::GNUSparse,
    ] {
        assert_says(&with("step.arrow", kind), "does not belong into a recording");
    }
    let twice = {
        let folder = tempfile::tempdir().unwrap();
        let mut builder = tar::Builder::new(Vec::new());
        append(&mut builder, "step.arrow", b"", tar::EntryType::Regular);
        append(&mut builder, "step.arrow", b"", tar::EntryType::Regular);
        read(&folder, &builder.into_inner().unwrap()).unwrap_err()
    };
    assert_says(&twice, "step.arrow is there twice");
}

#[test]
fn an_absurd_member_size_is_refused_before_it_is_allocated() {
    let folder = tempfile::tempdir().unwrap();
    let mut header = tar::Header::new_gnu();
    header.set_path("stream.json").unwrap();
    header.set_size(1 << 60);
    header.set_entry_type(tar::EntryType::Regular);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.resize(4_096, 0);
    let error = read(&folder, &bytes).unwrap_err();
    assert_says(&error, "not a usable recording");
}

#[test]
fn a_newer_version_is_named() {
    let error = after_json(|stream| stream["version"] = json!(2));
    assert_eq!(
        error,
        "FILE has recording format version 2, this lm-bench reads up to 1; use a newer lm-bench"
    );
    assert_says(
        &after_json(|stream| stream["version"] = json!("1")),
        "stream.json: invalid type",
    );
    assert_says(
        &after_json(|stream| stream["format"] = json!("other")),
        "format is \"other\"",
    );
    // Fields of a later version are no reason to refuse.
    assert!(
        after(|members| {
            let mut stream: Value = serde_json::from_slice(&members["stream.json"]).unwrap();
            stream["new"] = json!({"a": 1});
            stream["totals"]["new"] = json!(1);
            members.insert("stream.json".to_owned(), serde_json::to_vec(&stream).unwrap());
            members.insert("new.bin".to_owned(), vec![1, 2, 3]);
        })
        .is_ok()
    );
}

#[test]
fn a_missing_member_is_named() {
    let without = |name: &str| after(|members| drop(members.remove(name))).unwrap_err();
    assert_says(&without("stream.json"), "stream.json is missing");
    assert_says(&without("step.arrow"), "step.arrow is missing");
    assert_says(&without("moe_route.2.arrow"), "moe_route.2.arrow is missing");
}

#[test]
fn a_description_that_contradicts_itself_is_refused() {
    let at = |kind: &str, stream: &Value| {
        stream["kinds"]
            .as_array()
            .unwrap()
            .iter()
            .position(|entry| entry["name"] == kind)
            .unwrap()
    };
    let batch = |key: &'static str, value: Value| after_json(move |stream| stream["batches"][0][key] = value);
    assert_says(
        &batch("kind", json!(99)),
        "batch 0 is of a kind that is not listed",
    );
    assert_says(
        &batch("file", json!(99)),
        "batch 0 is in a file that is not listed",
    );
    assert_says(&batch("rows", json!(0)), "no rows");
    assert_says(&batch("rows", json!(u32::MAX)), "add up to");
    assert_says(&batch("rows", json!(1_u64 << 40)), "stream.json: invalid value");
    assert_says(&batch("weight", json!(-1.0)), "impossible weight");
    assert_says(&batch("seq", json!(3)), "has number 3, expected 0");
    assert_says(&batch("lost_before", json!(u64::MAX)), "stream.json: ");
    assert_says(
        &after_json(|stream| drop(stream["batches"].as_array_mut().unwrap().pop())),
        "add up to",
    );
    assert_says(
        &after_json(|stream| stream["kinds"][0]["files"] = json!([])),
        "has 0 files",
    );
    assert_says(
        &after_json(|stream| stream["kinds"][0]["name"] = json!("../../x")),
        "is not usable",
    );
    assert_says(
        &after_json(|stream| stream["kinds"][0]["columns"] = json!([])),
        "t_ns",
    );
    assert_says(
        &after_json(|stream| stream["kinds"][0]["files"][0]["widths"] = json!([1])),
        "widths",
    );
    let zero_width = after_json(|stream| {
        let route = at("moe_route", stream);
        stream["kinds"][route]["files"][0]["widths"][7] = json!(0);
    });
    assert_says(&zero_width, "widths of moe_route.arrow");
    assert_says(
        &after_json(|stream| stream["totals"]["kinds"] = json!([])),
        "totals of kind",
    );
    let too_many = after_json(|stream| {
        for kind in stream["totals"]["kinds"].as_array_mut().unwrap() {
            kind["recorded"] = json!(u64::MAX);
        }
    });
    assert_says(&too_many, "stream.json: the totals");
}

#[test]
fn rows_that_the_arrow_file_does_not_have_are_refused() {
    // step.arrow has 2 batches of 4 and 2 rows; here they are 2 and 4.
    let swapped = after_json(|stream| {
        let step = stream["kinds"]
            .as_array()
            .unwrap()
            .iter()
            .position(|kind| kind["name"] == "step")
            .unwrap();
        let batches = stream["batches"].as_array_mut().unwrap();
        for batch in batches.iter_mut().filter(|batch| batch["kind"] == step) {
            batch["rows"] = json!(6 - batch["rows"].as_u64().unwrap());
        }
    });
    assert_says(&swapped, "step.arrow: a batch has 4 rows, stream.json says 2");
}

#[test]
fn another_schema_is_refused() {
    let swapped = after(|members| {
        let mark = members["mark.arrow"].clone();
        members.insert("step.arrow".to_owned(), mark);
    });
    assert_says(&swapped.unwrap_err(), "step.arrow: 3 columns, expected 10");
    let other_type = after_json(|stream| {
        let mark = stream["kinds"]
            .as_array()
            .unwrap()
            .iter()
            .position(|kind| kind["name"] == "mark")
            .unwrap();
        stream["kinds"][mark]["columns"][2]["type"] = json!("f32");
    });
    assert_says(
        &other_type,
        "mark.arrow: column value of type Float64 where value of type f32 belongs",
    );
    let other_width = after(|members| {
        let second = members["moe_route.2.arrow"].clone();
        members.insert("moe_route.arrow".to_owned(), second);
    });
    assert_says(&other_width.unwrap_err(), "moe_route.arrow: column counts");
}

#[test]
fn damaged_arrow_files_are_refused() {
    let with = |change: fn(&mut Vec<u8>)| {
        after(|members| change(members.get_mut("quant.arrow").unwrap())).unwrap_err()
    };
    assert_says(&with(Vec::clear), "quant.arrow: it is not an Arrow IPC file");
    assert_says(
        &with(|bytes| bytes.truncate(bytes.len() / 2)),
        "quant.arrow: it is not an Arrow IPC file",
    );
    let absurd_footer = with(|bytes| {
        let at = bytes.len() - 10;
        bytes[at..at + 4].copy_from_slice(&i32::MAX.to_le_bytes());
    });
    assert_says(&absurd_footer, "quant.arrow: it is not an Arrow IPC file");
    let no_footer = with(|bytes| {
        let at = bytes.len() - 10;
        let length = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        bytes[at - length..at].fill(0xff);
    });
    assert_says(&no_footer, "quant.arrow: its footer is damaged");
}

/// Keys beyond the dictionary, which no other check sees: the file is whole, and only one value is wrong.
#[test]
fn a_symbol_outside_the_dictionary_is_refused() {
    let error = after(|members| {
        let bytes = members.get_mut("mark.arrow").unwrap();
        // `name` is the only 4-byte column of the only row; its key is 3, padded with zeros to 64 bytes.
        let mut key = vec![0_u8; 64];
        key[0] = 3;
        let at = bytes.windows(64).rposition(|window| window == key).unwrap();
        bytes[at] = 200;
    })
    .unwrap_err();
    assert_says(&error, "mark.arrow: ");
}
