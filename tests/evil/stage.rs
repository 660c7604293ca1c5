//! Runs `lm-bench replay` of one recording beside well-behaved collectors, in a home of its own, and keeps what it left.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;
use std::time::Duration;

use lm_bench::clock::Clock;
use serde_json::Value;
use tempfile::TempDir;

use crate::case::WHOLE;
use crate::native;
use crate::wasm;

/// A replay that has not ended after this long hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a replay left.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    /// What it wrote into its home: paths that are new or changed.
    pub(crate) written: Vec<PathBuf>,
}

/// A home with an evil plugin in it.
pub(crate) struct Stage {
    home: TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self {
            home: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    /// The home, where the program also runs.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Replays the recording with the good plugins and further arguments.
    pub(crate) fn replay(&self, args: &[String]) -> Result<Ended, String> {
        let before = everything(self.home());
        let logs = tempfile::tempdir().map_err(|error| error.to_string())?;
        let [out, err] = ["out", "err"].map(|name| logs.path().join(name));
        let create = |path: &Path| File::create(path).expect("a writable folder");
        let mut child = Command::new(env!("CARGO_BIN_EXE_lm-bench"))
            .args(["replay".as_ref(), recording().as_os_str()])
            .args(["--output-format=json", "--allow-native"])
            .args(good_plugins())
            .args(args)
            .current_dir(self.home())
            .env("HOME", self.home())
            // Compiled components are kept outside the home: whatever is written there is a misdeed.
            .env("XDG_CACHE_HOME", scratch().join("cache"))
            .env("XDG_DATA_HOME", self.home().join("data"))
            .env("XDG_CONFIG_HOME", self.home().join("config"))
            .env_remove("LM_BENCH_PLUGIN_PATH")
            .stdout(create(&out))
            .stderr(create(&err))
            .spawn()
            .map_err(|error| format!("the program does not start: {error}"))?;
        let clock = Clock::start();
        let status = loop {
            if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
                break status;
            }
            if clock.now_ns() > PATIENCE.as_nanos() as u64 {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("it hangs: not done after {} s", PATIENCE.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let after = everything(self.home());
        let changed = after
            .into_iter()
            .filter(|entry| before.get(&entry.0) != Some(&entry.1));
        Ok(Ended {
            status,
            stdout: fs::read(out).map_err(|error| error.to_string())?,
            stderr: String::from_utf8(fs::read(err).map_err(|error| error.to_string())?)
                .map_err(|_| "what it tells on stderr is not UTF-8".to_owned())?,
            written: changed.map(|(path, _)| path).collect(),
        })
    }
}

/// The recording that all cases replay.
fn recording() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/recordings/replay-small.lmrec")
}

/// Where the tests keep what they share.
pub(crate) fn scratch() -> &'static Path {
    static SCRATCH: OnceLock<PathBuf> = OnceLock::new();
    SCRATCH.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("evil");
        fs::create_dir_all(folder.join("cache")).expect("a writable folder");
        folder
    })
}

/// A native collector and a component that behave, beside the built-in collectors.
fn good_plugins() -> &'static [String] {
    static GOOD: OnceLock<Vec<String>> = OnceLock::new();
    GOOD.get_or_init(|| {
        let library = native::compiled(scratch(), "good_native", &["ID=\"good-native\""]);
        let component = scratch().join("good_component.wasm");
        fs::write(&component, wasm::collector("good-component", &[])).expect("a writable folder");
        [library, component]
            .iter()
            .map(|path| format!("--plugin={}", path.display()))
            .collect()
    })
}

/// The metrics of all plugins but one, as their bytes in the record.
pub(crate) fn metrics_beside(record: &Value, id: &str) -> String {
    let metrics = record["metrics"].as_array().cloned().unwrap_or_default();
    let others: Vec<Value> = metrics
        .into_iter()
        .filter(|metric| metric["plugin"] != id)
        .collect();
    serde_json::to_string_pretty(&others).expect("JSON")
}

/// The metrics of a replay with good plugins alone.
pub(crate) fn expected() -> &'static str {
    static EXPECTED: OnceLock<String> = OnceLock::new();
    EXPECTED.get_or_init(|| {
        let ended = Stage::new().replay(&[]).expect("the program runs");
        assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
        let record: Value = serde_json::from_slice(&ended.stdout).expect("a record");
        for (id, (metric, value)) in ["good-native", "good-component"].iter().zip(WHOLE) {
            let metrics = record["metrics"].as_array().expect("metrics");
            let found = metrics
                .iter()
                .find(|found| found["plugin"] == *id && found["name"] == *metric);
            assert_eq!(found.map(|found| &found["value"]), Some(&(*value).into()), "{id}");
        }
        metrics_beside(&record, "")
    })
}

/// All that lies below a folder, with the bytes of files.
fn everything(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(everything(&path));
        }
        found.insert(path.clone(), fs::read(&path).unwrap_or_default());
    }
    found
}
