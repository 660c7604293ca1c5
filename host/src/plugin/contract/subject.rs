//! The plugin that is checked: started anew for each stream, through the door that a run uses.

use std::cell::RefCell;
use std::time::Duration;

use lm_bench_plugin::manifest::Description;
use lm_bench_plugin::{ModelInfo, Peak, RunInfo, Subscription};
use serde_json::{Map, Value};

use super::verdict::{Place, Trouble};
use crate::clock::Clock;
use crate::events::KindTable;
use crate::plugin::builtin;
use crate::plugin::collectors::Loader;
use crate::plugin::failure::Failure;
use crate::plugin::limits::Limits;
use crate::plugin::registry::{Code, Found};
use crate::plugin::session::{Door, Session};

/// The plugin and what it is checked with.
pub(super) struct Subject<'a> {
    pub(super) found: &'a Found,
    pub(super) loader: &'a Loader<'a>,
    pub(super) limits: &'a Limits,
    pub(super) config: Map<String, Value>,
    pub(super) kinds: KindTable,
    pub(super) clock: Clock,
    pub(super) seen: RefCell<Seen>,
}

/// What all calls so far have taken.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The slowest batch, and where it was.
    pub(super) slowest: Option<(Duration, Place)>,
    /// The greatest memory that it held, in bytes.
    pub(super) memory: Option<u64>,
    /// Most lines of one run.
    pub(super) log_lines: usize,
    /// Lines that were refused, and the last kept one before.
    pub(super) log_refused: Option<(u64, String)>,
    /// The first call that exceeded its time.
    pub(super) late: Option<Trouble>,
    /// The first call that exceeded the memory.
    pub(super) large: Option<Trouble>,
}

impl Seen {
    /// Takes note of a call that failed for want of time or memory.
    pub(super) fn failed(&mut self, trouble: &Trouble) {
        match trouble.failure {
            Failure::TimeLimit(_) | Failure::Late { .. } if self.late.is_none() => {
                self.late = Some(trouble.clone());
            }
            Failure::MemoryLimit { .. } if self.large.is_none() => self.large = Some(trouble.clone()),
            _ => {}
        }
    }
}

/// Facts of a run that a collector may want to know, as those of a small model.
pub(super) fn known_run() -> RunInfo {
    let peak = |of: &str, per_second| Peak {
        of: of.to_owned(),
        source: "made up".to_owned(),
        measured: true,
        per_second,
    };
    RunInfo {
        model: ModelInfo {
            name: "made-up".to_owned(),
            architecture: "mixtral".to_owned(),
            layers: 4,
            hidden: 256,
            heads: 8,
            kv_heads: 4,
            head_dim: 32,
            experts: super::values::LIST_WIDTH,
            experts_per_token: 2,
            vocab: 1_000,
            parameters: 10_000_000,
            weight_bytes: 20_000_000,
            kv_bytes_per_token: 4_096,
        },
        engine: "made-up".to_owned(),
        // No CPU: collectors ask for most where there is a GPU.
        device: "cuda:0 made up".to_owned(),
        quantization: "none".to_owned(),
        batch_size: 8,
        prompt_tokens: 128,
        output_tokens: 32,
        sample_every: 8,
        peaks: vec![peak("flops", 1e14), peak("bytes", 1e12)],
    }
}

/// A call of a plugin that was started, held against its time limit.
pub(super) fn timed<T>(
    session: &mut dyn Session,
    (clock, limit): (&Clock, Duration),
    call: impl FnOnce(&mut dyn Session) -> Result<T, Failure>,
) -> (Result<T, Failure>, Duration) {
    let start = clock.now_ns();
    let interrupts = session.interrupts();
    let result = call(session);
    let took = Duration::from_nanos(clock.now_ns() - start);
    if result.is_ok() && !interrupts && took > limit {
        return (Err(Failure::Late { took, limit }), took);
    }
    (result, took)
}

impl Subject<'_> {
    /// Starts the plugin's code.
    ///
    /// # Errors
    /// When it cannot be loaded, although it was found.
    pub(super) fn session(&self) -> Result<Box<dyn Session>, Trouble> {
        self.loader.session(self.found).map_err(|error| Trouble {
            call: "load",
            failure: Failure::Died(error.to_string()),
            at: None,
        })
    }

    /// Its configuration as JSON.
    pub(super) fn config_text(&self) -> String {
        Value::Object(self.config.clone()).to_string()
    }

    /// Asks what it wants, with a configuration and facts of a run.
    ///
    /// # Errors
    /// When it cannot be started or does not answer.
    pub(super) fn subscription(&self, config: &str, run: &RunInfo) -> Result<Subscription, Trouble> {
        let mut session = self.session()?;
        let answer = self.subscribe(session.as_mut(), config, run);
        session.end();
        answer
    }

    /// Asks a plugin that was started what it wants.
    ///
    /// # Errors
    /// When it does not answer.
    pub(super) fn subscribe(
        &self,
        session: &mut dyn Session,
        config: &str,
        run: &RunInfo,
    ) -> Result<Subscription, Trouble> {
        let run = run_text(run)?;
        let limit = (&self.clock, self.limits.call_time());
        let (answer, _) = timed(session, limit, |session| session.subscribe(config, &run));
        answer.map_err(|failure| self.trouble("subscribe", failure, None))
    }

    /// What its build recorded, or what it says itself.
    pub(super) fn description(&self) -> Option<Description> {
        match &self.found.code {
            Code::Builtin(builtin) => builtin::describe(builtin),
            Code::Dylib(_, facts) => facts.description.clone(),
            Code::Wasm(_, facts) => facts.description.clone(),
        }
    }

    /// The schema of its configuration, where it is told.
    pub(super) fn schema(&self) -> Option<Value> {
        if let Some(description) = self.description() {
            return Some(description.config);
        }
        if self.found.door() != Door::Dylib {
            return None;
        }
        let mut session = self.session().ok()?;
        let told = session.describe();
        session.end();
        serde_json::from_str(&told.ok()?).ok()
    }

    /// What went wrong, noted where it is a matter of time or memory.
    pub(super) fn trouble(&self, call: &'static str, failure: Failure, at: Option<Place>) -> Trouble {
        let trouble = Trouble { call, failure, at };
        self.seen.borrow_mut().failed(&trouble);
        trouble
    }
}

/// Facts of a run as JSON.
pub(super) fn run_text(run: &RunInfo) -> Result<String, Trouble> {
    serde_json::to_string(run).map_err(|error| Trouble {
        call: "subscribe",
        failure: Failure::contract(error.to_string()),
        at: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(call: &'static str, failure: Failure) -> Trouble {
        let at = None;
        Trouble { call, failure, at }
    }

    #[test]
    fn the_first_excess_of_time_and_of_memory_is_kept() {
        let mut seen = Seen::default();
        seen.failed(&trouble("open", Failure::Stack));
        assert!(seen.late.is_none() && seen.large.is_none());
        let large = Failure::MemoryLimit { wanted: 2, limit: 1 };
        seen.failed(&trouble("on_batch", large.clone()));
        seen.failed(&trouble("finish", large));
        seen.failed(&trouble("open", Failure::TimeLimit(Duration::from_millis(1))));
        assert_eq!(seen.large.map(|trouble| trouble.call), Some("on_batch"));
        assert_eq!(seen.late.map(|trouble| trouble.call), Some("open"));
    }
}
