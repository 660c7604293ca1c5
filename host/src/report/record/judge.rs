//! Whether a result may be used, and what to know before using it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use lm_bench_plugin::kinds::phase;

use super::observer::OBSERVER_EFFECT;
use super::{EventLosses, ObserverEffect, RunRecord};
use crate::events::sampled_steps;
use crate::stats::Percent;

/// Whether the result may be used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Whether nothing speaks against it.
    pub valid: bool,
    /// What speaks against it.
    pub reasons: Vec<Note>,
}

/// A remark with a code for programs and a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// Code, such as `interrupted`; does not change between versions.
    pub code: String,
    /// What was seen, and what to do.
    pub text: String,
}

impl Note {
    /// A remark.
    pub fn new(code: &str, text: impl fmt::Display) -> Self {
        Self {
            code: code.to_owned(),
            text: text.to_string(),
        }
    }

    /// Whether [`RunRecord::judge`] finds this reason by itself in the rest of the record.
    pub fn is_derived(&self) -> bool {
        DERIVED.contains(&self.code.as_str())
    }
}

/// Codes of the reasons that follow from the record.
const DERIVED: [&str; 4] = [INTERRUPTED, ERRORS, NO_OUTPUT, OBSERVER_EFFECT];
const INTERRUPTED: &str = "interrupted";
const ERRORS: &str = "errors";
const NO_OUTPUT: &str = "no_output";
/// Share of the usable cores that were busy before the run from which on a warning is given.
const BUSY_SHARE: f64 = 0.5;

impl RunRecord {
    /// Sets verdict and warnings from the rest of the record. `extra` are reasons that only the driver knows.
    pub fn judge(&mut self, extra: Vec<Note>) {
        let mut reasons = self.objections();
        reasons.extend(extra);
        self.verdict = Verdict {
            valid: reasons.is_empty(),
            reasons,
        };
        self.warnings = self.remarks();
    }

    fn objections(&self) -> Vec<Note> {
        let counts = &self.counts;
        let mut found = Vec::new();
        if counts.iterations < counts.iterations_planned {
            let (done, planned) = (counts.iterations, counts.iterations_planned);
            found.push(Note::new(
                INTERRUPTED,
                format_args!("{done} of {planned} iterations were completed"),
            ));
        }
        if counts.errors > 0 {
            let (errors, requests) = (counts.errors, counts.requests);
            found.push(Note::new(
                ERRORS,
                format_args!("{errors} of {requests} sequences failed"),
            ));
        }
        if counts.output_tokens == 0 {
            found.push(Note::new(
                NO_OUTPUT,
                "no token was generated in the measured part",
            ));
        }
        found.extend(self.observer_effect.iter().flat_map(ObserverEffect::objections));
        found
    }

    fn remarks(&self) -> Vec<Note> {
        let mut found = Vec::new();
        found.extend(self.few_iterations());
        found.extend(self.few_sampled_steps());
        found.extend(self.busy_machine());
        found.extend(self.lost_events());
        found.extend(self.refused_rows());
        found.extend(self.unoptimised());
        found.extend(self.observer_effect.iter().flat_map(ObserverEffect::doubts));
        found.extend(
            self.plugins
                .iter()
                .filter(|plugin| !plugin.faults.is_empty())
                .map(|plugin| {
                    let last = if plugin.partial {
                        "its metrics are from its last checkpoint"
                    } else {
                        "its metrics are missing"
                    };
                    Note::new(
                        "plugin_quarantined",
                        format_args!("{}: {}; {last}", plugin.id, plugin.faults.join("; ")),
                    )
                }),
        );
        found
    }

    fn few_iterations(&self) -> Option<Note> {
        let need = super::CONFIDENCE.min_samples(Percent::DEFAULT[0]);
        let have = self.counts.iterations;
        (have < need && self.counts.iterations_planned > 0).then(|| {
            let text = format!(
                "{have} iterations give no interval for the latencies: use --num-iters {need} or more"
            );
            Note::new("few_iterations", text)
        })
    }

    /// Whether operator figures of a phase rest on fewer steps than a median needs, though more were run.
    fn few_sampled_steps(&self) -> Option<Note> {
        let weights = self.events.values().map(|totals| totals.weight);
        let every = weights.max().filter(|weight| *weight > 1)?;
        let steps = [
            (phase::PREFILL, self.counts.iterations),
            (phase::DECODE, self.counts.decode_steps),
        ];
        let few: Vec<String> = steps
            .into_iter()
            .map(|(phase, steps)| (phase, steps, sampled_steps(every, steps, phase)))
            .filter(|(_, steps, sampled)| {
                *sampled < super::CONFIDENCE.min_samples(Percent::DEFAULT[0]) && sampled < steps
            })
            .map(|(phase, steps, sampled)| format!("{sampled} of {steps} {} steps", phase::name(phase)))
            .collect();
        (!few.is_empty()).then(|| {
            let text = format!(
                "operator figures rest on {}: use --sample-every 1 or more iterations",
                few.join(" and ")
            );
            Note::new("few_sampled_steps", text)
        })
    }

    fn busy_machine(&self) -> Option<Note> {
        let load = self.environment.load_1m?;
        let cores = self.environment.cpu.usable_cores?;
        (load > BUSY_SHARE * f64::from(cores)).then(|| {
            let text = format!(
                "{load:.1} tasks were running on {cores} cores before the start: latencies may be too high"
            );
            Note::new("busy_machine", text)
        })
    }

    fn lost_events(&self) -> Vec<Note> {
        let lossy = self.events.iter().filter(|(_, totals)| totals.lost > 0);
        lossy
            .map(|(kind, totals)| {
                let text = format!(
                    "{} of {} {kind} rows never reached the collectors{}",
                    totals.lost,
                    totals.rows,
                    self.loss_cause()
                );
                Note::new("events_lost", text)
            })
            .collect()
    }

    /// What to do about lost rows, where it is known.
    fn loss_cause(&self) -> &'static str {
        match self.event_losses {
            EventLosses {
                blocks_dropped: 0,
                rows_over_budget: 1..,
                ..
            } => ": the memory for kept events was used up; use --collect live or a larger --sample-every",
            EventLosses {
                blocks_dropped: 1..,
                rows_over_budget: 0,
                ..
            } => ": they came faster than they were taken; use --collect after or a larger --sample-every",
            _ => "",
        }
    }

    fn refused_rows(&self) -> Option<Note> {
        let rows = self.event_losses.rows_refused;
        (rows > 0).then(|| {
            let text = format!(
                "{rows} rows had lists of an impossible length and were not recorded: a fault of the engine"
            );
            Note::new("events_refused", text)
        })
    }

    fn unoptimised(&self) -> Option<Note> {
        let profile = &self.environment.build.profile;
        (profile == "debug").then(|| {
            Note::new(
                "unoptimised_build",
                "this is a build without optimisation: its numbers say nothing about speed",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Overhead, sample};
    use super::*;

    fn codes(notes: &[Note]) -> Vec<&str> {
        notes.iter().map(|note| note.code.as_str()).collect()
    }

    #[test]
    fn a_clean_run_is_valid() {
        let mut record = sample::record();
        record.judge(Vec::new());
        assert!(record.verdict.valid && record.verdict.reasons.is_empty());
    }

    #[test]
    fn each_objection_makes_the_result_invalid() {
        let spoil = |change: fn(&mut RunRecord)| {
            let mut record = sample::record();
            change(&mut record);
            record.judge(Vec::new());
            assert!(!record.verdict.valid);
            codes(&record.verdict.reasons).join(" ")
        };
        assert_eq!(spoil(|record| record.counts.iterations = 2), "interrupted");
        assert_eq!(spoil(|record| record.counts.errors = 1), "errors");
        assert_eq!(spoil(|record| record.counts.output_tokens = 0), "no_output");
        let mut record = sample::record();
        record.event_losses.rows_over_budget = 64;
        record.event_losses.rows_refused = 2;
        record.judge(Vec::new());
        let text = |code: &str| {
            let found = record.warnings.iter().find(|note| note.code == code);
            found.expect("a warning").text.as_str()
        };
        assert!(
            text("events_lost").ends_with("--sample-every") && text("events_lost").contains("--collect live")
        );
        assert!(text("events_refused").starts_with("2 rows had lists"));
        let mut record = sample::record();
        record.judge(vec![Note::new("lag", "the client fell behind")]);
        assert_eq!(
            (record.verdict.valid, codes(&record.verdict.reasons)),
            (false, vec!["lag"])
        );
        record.counts.errors = 1;
        record.judge(vec![Note::new("lag", "the client fell behind")]);
        let derived: Vec<bool> = record.verdict.reasons.iter().map(Note::is_derived).collect();
        assert_eq!(derived, [true, false]);
    }

    #[test]
    fn an_overhead_counts_against_the_result_once_its_whole_interval_exceeds_the_limit() {
        let judged = |limit: Option<f64>, change: fn(&mut Overhead)| {
            let mut record = sample::record();
            let effect = record.observer_effect.as_mut().unwrap();
            effect.max_overhead_pct = limit;
            for overhead in [
                &mut effect.prefill_latency,
                &mut effect.decode_latency_per_token,
                &mut effect.iteration_wall_time,
            ] {
                *overhead = Overhead {
                    overhead_pct: Some(2.0),
                    interval: Some(super::super::IntervalRecord::new(1.5, 2.5)),
                    ..Overhead::default()
                };
            }
            change(&mut effect.decode_latency_per_token);
            record.judge(Vec::new());
            let uncertain = record
                .warnings
                .iter()
                .filter(|note| note.code == "overhead_uncertain");
            (record.verdict.clone(), uncertain.count())
        };
        assert!(judged(None, |_| {}).0.valid);
        assert_eq!(
            (judged(Some(3.0), |_| {}).0.valid, judged(Some(3.0), |_| {}).1),
            (true, 0)
        );
        assert_eq!(
            (judged(Some(1.75), |_| {}).0.valid, judged(Some(1.75), |_| {}).1),
            (true, 3)
        );
        let (verdict, uncertain) = judged(Some(2.6), |decode| {
            (decode.overhead_pct, decode.interval) =
                (Some(4.0), Some(super::super::IntervalRecord::new(2.61, 5.5)));
        });
        assert_eq!((verdict.valid, uncertain), (false, 0));
        assert_eq!(
            verdict.reasons[0].text,
            "the observer effect on decode_latency_per_token is 4.00 %, at least 2.61 %: more than 2.6 %"
        );
        assert!(verdict.reasons[0].is_derived());
        let (verdict, _) = judged(Some(9.0), |decode| {
            *decode = Overhead {
                needs: Some(16),
                ..Overhead::default()
            }
        });
        assert_eq!(
            verdict.reasons[0].text,
            "the observer effect on decode_latency_per_token cannot be held against 9 %: it needs 16 pairs"
        );
        // No decode step, so no overhead of one.
        assert!(judged(Some(3.0), |decode| *decode = Overhead::default()).0.valid);
    }

    #[test]
    fn remarks_say_what_to_do_and_leave_the_result_valid() {
        let mut record = sample::record();
        record.counts.iterations = 3;
        record.counts.iterations_planned = 3;
        record.counts.decode_steps = 93;
        record.environment.load_1m = Some(3.0);
        record.environment.build.profile = "debug".to_owned();
        record.judge(Vec::new());
        assert!(record.verdict.valid);
        assert_eq!(
            codes(&record.warnings),
            [
                "few_iterations",
                "few_sampled_steps",
                "busy_machine",
                "events_lost",
                "unoptimised_build",
                "plugin_quarantined"
            ]
        );
        assert_eq!(
            record.warnings[0].text,
            "3 iterations give no interval for the latencies: use --num-iters 6 or more"
        );
        // Of 3 prefills the first is sampled; of 93 decode steps one in each of 11 whole windows of 8.
        assert_eq!(
            record.warnings[1].text,
            "operator figures rest on 1 of 3 prefill steps: use --sample-every 1 or more iterations"
        );
        record.judge(Vec::new());
        assert_eq!(record.warnings.len(), 6, "judging twice gives the same");
        record.events.values_mut().for_each(|totals| totals.weight = 1);
        record.judge(Vec::new());
        assert!(!codes(&record.warnings).contains(&"few_sampled_steps"));
    }
}
