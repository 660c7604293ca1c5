//! Builds plugins once per process, and feeds collectors.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use lm_bench::events::{Delivery, EventSink as _, KindTable, SymbolTable};
use lm_bench::plugin::build_plugin::{BuildDoor, BuildRequest, build};
use lm_bench::plugin::{CollectorOutcome, Collectors, Limits, PluginError, Policy, Requests};
use lm_bench_plugin::kinds::{self, token};
use lm_bench_plugin::{Block, EventRow, RunInfo};

/// Folder of a crate of this repository.
pub(crate) fn crate_folder(id: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    ["plugins", "tests/plugins"]
        .iter()
        .map(|place| root.join(place).join(id))
        .find(|path| path.is_dir())
        .expect("a crate")
}

/// Where cargo keeps plugins between builds.
pub(crate) fn target_dir() -> PathBuf {
    match std::env::var_os("LM_BENCH_TEST_TARGET") {
        Some(folder) => folder.into(),
        // CARGO_TARGET_TMPDIR is `tmp` in the target folder.
        None => Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("plugins"),
    }
}

/// The file of a plugin, built when it is first asked for.
pub(crate) fn built(id: &str, door: BuildDoor) -> PathBuf {
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    // A failed build panics in the test that asked for it; the others ask again.
    let mut built = BUILT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let key = format!("{id} {door:?}");
    if let Some(path) = built.get(&key) {
        return path.clone();
    }
    let out = target_dir().join("doors");
    let request = BuildRequest {
        dir: crate_folder(id),
        door,
        out,
        target_dir: Some(target_dir()),
        program: Some(env!("CARGO_BIN_EXE_lm-bench").into()),
    };
    let path = build(&request)
        .unwrap_or_else(|error| panic!("{id} for {door:?}: {error}"))
        .path;
    built.insert(key, path.clone());
    path
}

/// A plugin as the three doors have it: id, library, component.
pub(crate) fn three_doors(id: &str) -> [String; 3] {
    let path = |door| built(id, door).to_string_lossy().into_owned();
    [id.to_owned(), path(BuildDoor::Dylib), path(BuildDoor::Wasm)]
}

/// A policy that allows native code and keeps compiled components beside the other results of the build.
pub(crate) fn policy() -> Policy {
    let component_cache = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("doors-cache"));
    // Tests run beside one another and beside compilers: only those of the time limits are strict about time.
    let limits = Limits {
        batch_ms: 30_000,
        call_ms: 60_000,
        ..Limits::default()
    };
    Policy {
        allow_native: true,
        program: Some(env!("CARGO_BIN_EXE_lm-bench").into()),
        limits,
        component_cache,
        ..Policy::default()
    }
}

/// A policy that loads native code into this process.
pub(crate) fn in_process() -> Policy {
    Policy {
        in_process: true,
        ..policy()
    }
}

/// A policy under which time decides nothing.
pub(crate) fn deterministic() -> Policy {
    Policy {
        deterministic: true,
        ..policy()
    }
}

/// A policy with changed limits.
pub(crate) fn limited(change: impl FnOnce(&mut Limits)) -> Policy {
    let mut policy = policy();
    change(&mut policy.limits);
    policy
}

/// Requests for one plugin with a configuration.
pub(crate) fn request(target: &str, id: &str, config: &serde_json::Value) -> Requests {
    let config = config.as_object().expect("an object").clone();
    Requests {
        plugins: vec![target.to_owned()],
        defaults: false,
        config: BTreeMap::from([(id.to_owned(), config)]),
        ..Requests::default()
    }
}

/// A delivery of rows.
pub(crate) fn delivery<R: EventRow>(rows: &[R], seq: u64, lost_before: u64) -> Delivery {
    let mut block = Block::new(Arc::new(kinds::KINDS[R::INDEX].clone()), rows.len() as u32);
    rows.iter().for_each(|row| block.push(row));
    Delivery {
        kind: R::INDEX,
        block,
        seq,
        lost_before,
    }
}

/// Deliveries of the token kind: `rows` rows each, indices counting up.
pub(crate) fn tokens(deliveries: u64, rows: u32) -> Vec<Delivery> {
    let row = |seq: u64, at: u32| token::Row {
        t_ns: seq * 1_000_000 + u64::from(at) * 1_000,
        request: seq % 3,
        index: seq as u32 * rows + at,
        chunk: at,
        tokens_in_chunk: 1,
    };
    let block = |seq| {
        delivery(
            &(0..rows).map(|at| row(seq, at)).collect::<Vec<_>>(),
            seq,
            seq % 2,
        )
    };
    (0..deliveries).map(block).collect()
}

/// Rows of the token kind that are lost after the last delivery.
pub(crate) const LOST_AFTER: u64 = 3;

/// Loads and runs collectors over deliveries.
pub(crate) fn run(
    requests: &Requests,
    policy: &Policy,
    deliveries: &[Delivery],
    symbols: &SymbolTable,
) -> Result<Vec<CollectorOutcome>, PluginError> {
    let mut collectors = Collectors::load(requests, &RunInfo::default(), &KindTable::builtin(), policy)?;
    for delivery in deliveries {
        collectors
            .accept(delivery, symbols)
            .expect("collectors take everything");
    }
    collectors
        .lost(token::INDEX, LOST_AFTER)
        .expect("collectors take everything");
    Ok(collectors.finish())
}

/// Runs the hostile collector over ten deliveries of seven rows.
pub(crate) fn hostile(
    target: &str,
    config: &serde_json::Value,
    policy: &Policy,
) -> Result<CollectorOutcome, PluginError> {
    let requests = request(target, "hostile", config);
    let outcomes = run(&requests, policy, &tokens(10, 7), &SymbolTable::new())?;
    Ok(outcomes.into_iter().next().expect("one collector"))
}
