//! Who the plugin says it is.

use lm_bench_plugin::manifest::MetricDecl;

use crate::plugin::contract::subject::Subject;
use crate::plugin::contract::verdict::{Trouble, Verdict};
use crate::plugin::identity::is_metric_name;
use crate::plugin::limits::Limits;

/// The manifest says all that a reader of the plugin's metrics must know. What would make it unreadable has been refused
/// before.
pub(super) fn manifest(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    let manifest = &subject.found.manifest;
    let mut wrong = Vec::new();
    if !is_version(&manifest.version) {
        wrong.push(format!("version {:?} is no MAJOR.MINOR.PATCH", manifest.version));
    }
    if manifest.about.trim().is_empty() {
        wrong.push("about is empty: say in one line what it measures".to_owned());
    }
    if !is_licence(&manifest.license) {
        wrong.push(format!("license {:?} is no SPDX expression", manifest.license));
    }
    if manifest.metrics.is_empty() {
        wrong.push("no metric is declared".to_owned());
    }
    let metrics = manifest.metrics.iter();
    wrong.extend(metrics.filter_map(|metric| {
        let what = metric_fault(metric, subject.limits)?;
        Some(format!("metric {}: {what}", metric.name))
    }));
    Ok(match wrong.is_empty() {
        true => Verdict::pass(),
        false => Verdict::fail(wrong.join("; ")),
    })
}

/// What is wrong with the declaration of a metric. Its name has been checked.
fn metric_fault(metric: &MetricDecl, limits: &Limits) -> Option<String> {
    let unit = &metric.unit;
    if unit.is_empty() || !unit.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some(format!("{unit:?} is no unit; 1 stands for a ratio or a count"));
    }
    if metric.formula.trim().is_empty() {
        return Some("it has no formula".to_owned());
    }
    if metric.about.trim().is_empty() {
        return Some("about is empty: say what it tells".to_owned());
    }
    if metric.labels.len() > limits.labels {
        return Some(format!(
            "{} labels, {} are allowed",
            metric.labels.len(),
            limits.labels
        ));
    }
    let mut labels = metric.labels.iter().enumerate();
    labels.find_map(|(at, key)| {
        if !is_metric_name(key, limits.label_bytes) {
            return Some(format!("label {key:?} is no key (a-z, 0-9, _ and .)"));
        }
        metric.labels[..at]
            .contains(key)
            .then(|| format!("label {key} is declared twice"))
    })
}

/// Whether a text is a version as semver has it.
fn is_version(text: &str) -> bool {
    let core = text.split(['-', '+']).next().unwrap_or_default();
    let mut parts = core.split('.');
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    core.split('.').count() == 3 && parts.all(number)
}

/// Whether a text has the characters of an SPDX expression.
fn is_licence(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b" .-+():".contains(&byte);
    text.bytes().any(|byte| byte.is_ascii_alphanumeric()) && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use lm_bench_plugin::{Direction, MetricKind};

    use super::*;

    #[test]
    fn versions_and_licences_have_their_form() {
        for version in ["1.0.0", "0.1.12", "1.2.3-rc.1+build"] {
            assert!(is_version(version), "{version}");
        }
        for version in ["", "1", "1.0", "1.0.x", "v1.0.0", "1.0.0.0"] {
            assert!(!is_version(version), "{version}");
        }
        assert!(is_licence("MIT OR Apache-2.0") && is_licence("LicenseRef-Acme"));
        assert!(!is_licence("") && !is_licence("mine; all rights reserved") && !is_licence(" "));
    }

    #[test]
    fn a_metric_has_unit_formula_and_meaning() {
        let sound = MetricDecl {
            name: "m".to_owned(),
            unit: "ms".to_owned(),
            kind: MetricKind::Gauge,
            direction: Direction::Neither,
            formula: "x".to_owned(),
            about: "a".to_owned(),
            labels: vec!["phase".to_owned()],
        };
        let fault = |change: fn(&mut MetricDecl)| {
            let mut metric = sound.clone();
            change(&mut metric);
            metric_fault(&metric, &Limits::default())
        };
        assert_eq!(fault(|_| {}), None);
        type Change = fn(&mut MetricDecl);
        let faults: [(Change, &str); 5] = [
            (|metric| metric.unit = "m s".to_owned(), "no unit"),
            (|metric| metric.formula.clear(), "no formula"),
            (|metric| metric.about = " ".to_owned(), "about is empty"),
            (|metric| metric.labels.push("Phase".to_owned()), "is no key"),
            (|metric| metric.labels.push("phase".to_owned()), "declared twice"),
        ];
        for (change, text) in faults {
            assert!(fault(change).is_some_and(|fault| fault.contains(text)), "{text}");
        }
    }
}
