//! What a plugin costs through each of its doors: samples, taken in turn so that what the machine does meanwhile meets all
//! doors alike. What the samples amount to is said elsewhere.

mod noop;
mod stream;
mod ways;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::collectors::{Collectors, Requests};
use super::error::PluginError;
use super::limits::Policy;
use super::registry::Registry;
use crate::clock::Clock;
use crate::events::{Delivery, EventSink as _, RecordingError};
use noop::Noop;
pub use stream::EXPERTS;
use stream::Stream;
use ways::Way;

/// A sample takes at least this long, so that the clock's grain does not matter.
const SAMPLE: Duration = Duration::from_millis(2);
/// Times that a plugin is started.
const STARTS: usize = 7;

/// A way to run a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum BenchDoor {
    /// Linked into the program
    #[value(name = "built-in")]
    #[serde(rename = "built-in")]
    Builtin,
    /// A native library in this process
    DylibInProcess,
    /// A native library in a process of its own
    Dylib,
    /// A component
    Wasm,
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct BenchRequest {
    /// Id, file, or folder of files.
    pub target: String,
    /// The doors; empty for all that there are.
    pub doors: Vec<BenchDoor>,
    /// A recording to feed; else rows from a seed.
    pub recording: Option<PathBuf>,
    /// Rows of each kind of the seeded stream.
    pub rows: u32,
    /// Samples of each door.
    pub rounds: u32,
}

/// A door that was not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The door.
    pub door: BenchDoor,
    /// Why.
    pub reason: String,
}

/// What was measured of a door.
#[derive(Clone, Debug)]
pub struct DoorSamples {
    /// The door.
    pub door: BenchDoor,
    /// Where the plugin was taken from.
    pub target: String,
    /// Nanoseconds per row, one of each round.
    pub row_ns: Vec<f64>,
    /// Nanoseconds per checkpoint with all that was fed before, one of each round.
    pub checkpoint_ns: Vec<f64>,
    /// Nanoseconds from finding the plugin until it is ready; of components with their compiled code in the cache.
    pub start_ns: Vec<f64>,
    /// As `start_ns`, with an empty cache; of components only.
    pub cold_start_ns: Vec<f64>,
    /// Calls per second of the time that the plugin had.
    pub calls_per_s: f64,
    /// Most memory that it held, in bytes, where it can be told.
    pub peak_memory: Option<u64>,
    /// Why it was quarantined; its figures then mean nothing.
    pub faults: Vec<String>,
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct BenchSamples {
    /// The plugin.
    pub id: String,
    /// Its version.
    pub version: String,
    /// Kinds that it was fed with.
    pub kinds: Vec<String>,
    /// Rows of one pass over the stream.
    pub rows: u64,
    /// Nanoseconds per row of a collector that does nothing, one of each round.
    pub noop_ns: Vec<f64>,
    /// The doors.
    pub doors: Vec<DoorSamples>,
    /// Doors that were not measured.
    pub left_out: Vec<LeftOut>,
}

/// Why nothing can be measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The plugin cannot be used.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// The recording cannot be used.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The recording does not tell the facts of its run.
    #[error("{}: the facts of its run cannot be read: {error}; record it again", .path.display())]
    RunFacts {
        /// The recording.
        path: PathBuf,
        /// Why.
        error: serde_json::Error,
    },
    /// A folder cannot be read.
    #[error("{}: {error}", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A folder without plugins.
    #[error("{} holds no plugin file (.so or .wasm): build one into it with `lm-bench plugin build`", .0.display())]
    EmptyFolder(PathBuf),
    /// A folder with different plugins.
    #[error("the files are of different plugins, {first} and {other}: give one of the files")]
    SeveralPlugins {
        /// One id.
        first: String,
        /// Another.
        other: String,
    },
    /// The plugin is behind none of the doors asked for.
    #[error("{0} is behind none of the doors that --door names: leave it out, or build the plugin for one")]
    NoDoor(String),
    /// Nothing to feed.
    #[error(
        "there are no rows of the kinds that {id} takes ({kinds}): give another --recording, or leave it out"
    )]
    NoRows {
        /// The plugin.
        id: String,
        /// The kinds.
        kinds: String,
    },
    /// The rows cannot be made.
    #[error("the seeded stream cannot be made: {0}; give a --recording")]
    Stream(String),
    /// No folder for compiled code.
    #[error("a temporary folder for compiled components: {0}")]
    Cache(std::io::Error),
}

/// A door with its plugin loaded.
struct Lane {
    way: Way,
    collectors: Collectors,
    passes: u64,
    row_ns: Vec<f64>,
    checkpoint_ns: Vec<f64>,
}

/// Measures a plugin. `progress` is told before each part what it is.
///
/// # Errors
/// When the plugin or the rows cannot be used.
pub fn bench(
    request: &BenchRequest,
    policy: &Policy,
    mut progress: impl FnMut(&str),
) -> Result<BenchSamples, BenchError> {
    let (ways, left_out) = ways::ways(&request.target, &request.doors, policy)?;
    let stream = match &request.recording {
        Some(path) => Stream::recorded(path)?,
        None => Stream::seeded(request.rows),
    };
    let cache = tempfile::tempdir().map_err(BenchError::Cache)?;
    // A cache makes its own folder, which nobody else can enter.
    let compiled = cache.path().join("wasm");
    let bench = Bench {
        policy,
        stream: &stream,
        cache: &compiled,
        clock: Clock::start(),
    };
    let mut lanes = Vec::new();
    for way in &ways {
        lanes.push(Lane {
            way: way.clone(),
            collectors: bench.load(way, &compiled)?,
            passes: 1,
            row_ns: Vec::new(),
            checkpoint_ns: Vec::new(),
        });
    }
    let kinds: Vec<usize> = lanes[0].collectors.demands().kinds.into_iter().collect();
    let found = Registry::new(policy)?.find(&ways[0].target)?;
    let (id, version) = (found.manifest.id.clone(), found.manifest.version.clone());
    let deliveries = stream.of(&kinds)?;
    let names = kinds.iter().filter_map(|kind| stream.kinds.get(*kind));
    let names: Vec<String> = names.map(|kind| kind.name.to_string()).collect();
    let rows: u64 = deliveries.iter().map(|one| u64::from(one.block.rows())).sum();
    if rows == 0 {
        let kinds = names.join(", ");
        return Err(BenchError::NoRows { id, kinds });
    }
    let noop: Box<Noop> = Box::new(Noop::new(&kinds, &stream.kinds, &policy.limits));
    let noop = Collectors::of_session((found, noop), &stream.run, &stream.kinds, policy)?;
    progress(&format!("{} rounds of {rows} rows", request.rounds));
    let noop_ns = bench.rounds((noop, &mut lanes), (&deliveries, rows), request.rounds);
    progress("starts");
    let doors = lanes.into_iter().map(|lane| bench.door(lane));
    Ok(BenchSamples {
        id,
        version,
        kinds: names,
        rows,
        noop_ns,
        doors: doors.collect::<Result<_, _>>()?,
        left_out,
    })
}

struct Bench<'a> {
    policy: &'a Policy,
    stream: &'a Stream,
    cache: &'a Path,
    clock: Clock,
}

impl Bench<'_> {
    /// Loads a plugin, with compiled components in a folder.
    fn load(&self, way: &Way, cache: &Path) -> Result<Collectors, PluginError> {
        let requests = Requests {
            plugins: vec![way.target.clone()],
            ..Requests::default()
        };
        let policy = Policy {
            in_process: way.door == BenchDoor::DylibInProcess,
            component_cache: Some(cache.to_owned()),
            ..self.policy.clone()
        };
        Collectors::load(&requests, &self.stream.run, &self.stream.kinds, &policy)
    }

    /// Takes the samples: in each round each door once. Gives those of the collector that does nothing.
    fn rounds(
        &self,
        (mut noop, lanes): (Collectors, &mut [Lane]),
        (deliveries, rows): (&[Delivery], u64),
        rounds: u32,
    ) -> Vec<f64> {
        let passes = |collectors: &mut Collectors| {
            // The first pass warms up.
            self.passes(collectors, deliveries, 1);
            let one = self.passes(collectors, deliveries, 1).max(1);
            (SAMPLE.as_nanos() as u64).div_ceil(one)
        };
        let noop_passes = passes(&mut noop);
        for lane in &mut *lanes {
            lane.passes = passes(&mut lane.collectors);
        }
        let mut noop_ns = Vec::new();
        for _ in 0..rounds {
            let took = self.passes(&mut noop, deliveries, noop_passes);
            noop_ns.push(took as f64 / (noop_passes * rows) as f64);
            for lane in &mut *lanes {
                let took = self.passes(&mut lane.collectors, deliveries, lane.passes);
                lane.row_ns.push(took as f64 / (lane.passes * rows) as f64);
                let start = self.clock.now_ns();
                lane.collectors.checkpoint();
                lane.checkpoint_ns.push((self.clock.now_ns() - start) as f64);
            }
        }
        noop_ns
    }

    /// Feeds the stream some times; gives the time that it took, in nanoseconds.
    fn passes(&self, collectors: &mut Collectors, deliveries: &[Delivery], passes: u64) -> u64 {
        let start = self.clock.now_ns();
        for _ in 0..passes {
            for delivery in deliveries {
                // Collectors take everything; one that fails is quarantined and told with its door.
                let _ = collectors.accept(delivery, &self.stream.symbols);
            }
        }
        self.clock.now_ns() - start
    }

    /// Ends a door's plugin and measures its start.
    fn door(&self, lane: Lane) -> Result<DoorSamples, BenchError> {
        let mut samples = DoorSamples {
            door: lane.way.door,
            target: lane.way.target.clone(),
            row_ns: lane.row_ns,
            checkpoint_ns: lane.checkpoint_ns,
            start_ns: Vec::new(),
            cold_start_ns: Vec::new(),
            calls_per_s: 0.0,
            peak_memory: None,
            faults: Vec::new(),
        };
        for outcome in lane.collectors.finish() {
            samples.calls_per_s = outcome.calls as f64 * 1e9 / outcome.busy_ns.max(1) as f64;
            samples.peak_memory = outcome.peak_memory;
            samples.faults.extend(outcome.faults);
        }
        for _ in 0..STARTS {
            samples.start_ns.push(self.start(&lane.way, self.cache)?);
            if lane.way.door == BenchDoor::Wasm {
                let empty = tempfile::tempdir().map_err(BenchError::Cache)?;
                samples
                    .cold_start_ns
                    .push(self.start(&lane.way, &empty.path().join("wasm"))?);
            }
        }
        Ok(samples)
    }

    fn start(&self, way: &Way, cache: &Path) -> Result<f64, PluginError> {
        let start = self.clock.now_ns();
        let collectors = self.load(way, cache)?;
        let took = self.clock.now_ns() - start;
        drop(collectors);
        Ok(took as f64)
    }
}
