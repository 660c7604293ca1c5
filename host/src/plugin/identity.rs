//! Who a plugin is: its manifest, read from the file and checked before any of its code runs.

use std::collections::BTreeSet;

use lm_bench_plugin::manifest::{self, Description, Manifest, MetricDecl};

use super::limits::Limits;

/// Interfaces that this version offers to plugins.
pub(crate) const INTERFACES: &[&str] = &[manifest::COLLECTOR_INTERFACE, manifest::PROBE_INTERFACE];
/// A manifest is a page of text; more is no manifest.
const MANIFEST_BYTES: usize = 1 << 20;

/// Why a manifest is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// There is none.
    #[error("it has no manifest: it was not built as an lm-bench plugin (use `lm-bench plugin build`)")]
    Missing,
    /// There are several, so that what is inspected need not be what runs.
    #[error("it has {0} manifests where one is expected")]
    Several(usize),
    /// It is no manifest.
    #[error("its manifest cannot be read: {0}")]
    Unreadable(String),
    /// It was written for a later version.
    #[error(
        "its manifest has layout {found}, this lm-bench ({}) reads layout {}: update lm-bench, or use a build of the plugin for it",
        crate::plugin::HOST_VERSION,
        manifest::SCHEMA
    )]
    Schema {
        /// The layout's version.
        found: u64,
    },
    /// It needs what this version does not have.
    #[error(
        "{id} {version} needs interface {needs}, this lm-bench ({}) offers {}: update lm-bench, or use an older version of the plugin",
        crate::plugin::HOST_VERSION, INTERFACES.join(", ")
    )]
    Interface {
        /// The plugin.
        id: String,
        /// Its version.
        version: String,
        /// The interface.
        needs: String,
    },
    /// It does not ask for the interface through which collectors are called.
    #[error("{id} {version} offers nothing that this lm-bench calls: its manifest requires no interface")]
    NoInterface {
        /// The plugin.
        id: String,
        /// Its version.
        version: String,
    },
    /// A value is not allowed.
    #[error("its manifest is not valid: {0}")]
    Invalid(String),
}

/// Reads a manifest whatever it requires, so that `inspect` can show a plugin that this version cannot run.
///
/// # Errors
/// When it is no manifest of a known layout, or a value is not allowed.
pub(crate) fn read(json: &[u8], limits: &Limits) -> Result<Manifest, ManifestError> {
    #[derive(serde::Deserialize)]
    struct Layout {
        schema: u64,
    }
    let unreadable = |error: serde_json::Error| ManifestError::Unreadable(error.to_string());
    if json.len() > MANIFEST_BYTES {
        let text = format!("{} bytes are more than the {MANIFEST_BYTES} allowed", json.len());
        return Err(ManifestError::Unreadable(text));
    }
    // The layout comes first: a later layout may lack the fields of this one.
    let layout: Layout = serde_json::from_slice(json).map_err(unreadable)?;
    if layout.schema != u64::from(manifest::SCHEMA) {
        return Err(ManifestError::Schema { found: layout.schema });
    }
    let manifest: Manifest = serde_json::from_slice(json).map_err(unreadable)?;
    check(&manifest, limits).map_err(ManifestError::Invalid)?;
    Ok(manifest)
}

/// Reads what a build recorded of a plugin. It is shown and not acted upon, so what is no description is none.
pub(crate) fn read_description(json: &[u8]) -> Option<Description> {
    (json.len() <= MANIFEST_BYTES)
        .then(|| serde_json::from_slice(json).ok())
        .flatten()
}

/// Checks that this version offers all that the plugin requires.
///
/// # Errors
/// Naming the first interface that is missing.
pub(crate) fn check_interfaces(manifest: &Manifest) -> Result<(), ManifestError> {
    let Manifest {
        id,
        version,
        requires,
        ..
    } = manifest;
    if requires.is_empty() {
        return Err(ManifestError::NoInterface {
            id: id.clone(),
            version: version.clone(),
        });
    }
    match requires
        .iter()
        .find(|needs| !INTERFACES.contains(&needs.as_str()))
    {
        None => Ok(()),
        Some(needs) => Err(ManifestError::Interface {
            id: id.clone(),
            version: version.clone(),
            needs: needs.clone(),
        }),
    }
}

/// Whether a text is a plugin id: `[a-z][a-z0-9-]{1,62}`.
pub(crate) fn is_id(text: &str) -> bool {
    let mut bytes = text.bytes();
    (2..=63).contains(&text.len())
        && bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Whether a text is a metric's name: `[a-z0-9_.]`, at least one byte and at most `max`.
pub(crate) fn is_metric_name(text: &str, max: usize) -> bool {
    (1..=max).contains(&text.len())
        && text
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.'))
}

/// Checks what a probe declares; a collector declares no kinds.
fn check_kinds(manifest: &Manifest) -> Result<(), String> {
    const MOST: usize = 64;
    let both = manifest
        .requires
        .iter()
        .any(|needs| needs == manifest::COLLECTOR_INTERFACE);
    match (manifest.is_probe(), manifest.kinds.len()) {
        (false, 0) => return Ok(()),
        (false, _) => {
            return Err(format!(
                "it declares kinds and does not require {}",
                manifest::PROBE_INTERFACE
            ));
        }
        (true, 1..=MOST) if !both && manifest.metrics.is_empty() => {}
        (true, 1..=MOST) => return Err("a probe is no collector and reports no metrics".to_owned()),
        (true, kinds) => return Err(format!("a probe of {kinds} kinds, 1 to {MOST} are allowed")),
    }
    for kind in &manifest.kinds {
        let parts: Vec<&str> = kind.name.split('.').collect();
        let named = matches!(parts.as_slice(), ["vendor", vendor, kind] if is_word(vendor) && is_word(kind));
        if !named {
            return Err(format!("kind {:?} is not named vendor.NAME.KIND", kind.name));
        }
        for column in &kind.columns {
            if !is_word(&column.name) || column.name == "t_ns" {
                return Err(format!("column {:?} of {} is not usable", column.name, kind.name));
            }
        }
    }
    Ok(())
}

/// Whether a text is a part of a kind's name or the name of a column.
fn is_word(text: &str) -> bool {
    (1..=32).contains(&text.len())
        && text
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

fn check(manifest: &Manifest, limits: &Limits) -> Result<(), String> {
    let Manifest {
        id,
        version,
        about,
        license,
        sdk,
        requires,
        metrics,
        ..
    } = manifest;
    if !is_id(id) {
        return Err(format!(
            "{id:?} is no id (2 to 63 of a-z, 0-9 and -, a letter first)"
        ));
    }
    check_kinds(manifest)?;
    let texts = [version, about, license, sdk].into_iter().chain(requires);
    for text in texts {
        if text.len() > limits.text_bytes || text.chars().any(char::is_control) {
            return Err(format!(
                "a text is longer than {} bytes or not one line",
                limits.text_bytes
            ));
        }
    }
    if metrics.len() > limits.metrics {
        return Err(format!(
            "{} metrics are declared, {} are allowed",
            metrics.len(),
            limits.metrics
        ));
    }
    let mut names = BTreeSet::new();
    for metric in metrics {
        if !is_metric_name(&metric.name, limits.name_bytes) {
            return Err(format!(
                "{:?} is no metric name (1 to {} of a-z, 0-9, _ and .)",
                metric.name, limits.name_bytes
            ));
        }
        if !names.insert(&metric.name) {
            return Err(format!("metric {} is declared twice", metric.name));
        }
        check_declared(metric, limits).map_err(|what| format!("metric {}: {what}", metric.name))?;
    }
    Ok(())
}

/// Checks the texts of a declaration: they are shown on terminals and kept in records.
fn check_declared(metric: &MetricDecl, limits: &Limits) -> Result<(), String> {
    for text in [&metric.unit, &metric.formula, &metric.about] {
        if text.len() > limits.text_bytes || text.chars().any(char::is_control) {
            return Err(format!(
                "unit, formula and about are one line of at most {} bytes each",
                limits.text_bytes
            ));
        }
    }
    if metric.labels.len() > limits.labels {
        let declared = metric.labels.len();
        return Err(format!(
            "{declared} labels are declared, {} are allowed",
            limits.labels
        ));
    }
    match metric
        .labels
        .iter()
        .find(|key| !is_metric_name(key, limits.label_bytes))
    {
        Some(key) => Err(format!(
            "{:?} is no label (1 to {} of a-z, 0-9, _ and .)",
            key.chars().take(limits.label_bytes).collect::<String>(),
            limits.label_bytes
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
        let mut json = serde_json::json!({
            "schema": 1, "id": "probe", "version": "1.0.0", "about": "a", "license": "MIT",
            "sdk": "1.0.0", "requires": ["lmb.collector/1"], "metrics": [{
                "name": "rows", "unit": "1", "kind": "counter", "direction": "neither",
                "formula": "", "about": ""
            }]
        });
        change(&mut json);
        serde_json::to_vec(&json).expect("JSON")
    }

    fn error(change: impl FnOnce(&mut serde_json::Value)) -> String {
        match read(&manifest(change), &Limits::default()) {
            Ok(manifest) => check_interfaces(&manifest).expect_err("refused").to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_manifest_of_this_version_is_accepted_and_unknown_keys_are_ignored() {
        let json = manifest(|json| json["homepage"] = "https://example.org".into());
        let manifest = read(&json, &Limits::default()).expect("accepted");
        assert_eq!(manifest.id, "probe");
        check_interfaces(&manifest).expect("offered");
    }

    #[test]
    fn a_later_interface_is_refused_with_what_is_needed_and_what_there_is() {
        let text = error(|json| json["requires"] = serde_json::json!(["lmb.collector/2"]));
        assert_eq!(
            text,
            format!(
                "probe 1.0.0 needs interface lmb.collector/2, this lm-bench ({}) offers lmb.collector/1, lmb.probe/1: \
                 update lm-bench, or use an older version of the plugin",
                crate::plugin::HOST_VERSION
            )
        );
    }

    #[test]
    fn a_later_layout_is_named_even_if_nothing_else_fits() {
        let text = read(br#"{"schema":2,"plugins":[]}"#, &Limits::default()).expect_err("refused");
        assert!(text.to_string().contains("has layout 2"), "{text}");
    }

    #[test]
    fn values_that_are_not_allowed_are_named() {
        assert!(error(|json| json["id"] = "../evil".into()).contains("\"../evil\" is no id"));
        assert!(error(|json| json["metrics"][0]["name"] = "Bad Name".into()).contains("no metric name"));
        assert!(error(|json| json["about"] = "two\nlines".into()).contains("not one line"));
        let unit = error(|json| json["metrics"][0]["unit"] = "\u{1b}[2J".into());
        assert!(unit.contains("metric rows: unit, formula and about"), "{unit}");
        let label = error(|json| json["metrics"][0]["labels"] = serde_json::json!(["Layer\n"]));
        assert!(label.contains("is no label"), "{label}");
        let labels: Vec<String> = (0..17).map(|at| format!("l{at}")).collect();
        let many = error(|json| json["metrics"][0]["labels"] = labels.into());
        assert!(many.contains("17 labels are declared, 16 are allowed"), "{many}");
        let twice = error(|json| {
            let metric = json["metrics"][0].clone();
            json["metrics"] = vec![metric.clone(), metric].into();
        });
        assert!(twice.contains("rows is declared twice"), "{twice}");
        assert!(error(|json| json["requires"] = serde_json::json!([])).contains("requires no interface"));
        assert!(error(|json| json["schema"] = "one".into()).contains("cannot be read"));
    }

    #[test]
    fn ids_have_two_to_sixty_three_characters() {
        assert!(is_id("a1") && is_id(&"a".repeat(63)));
        for bad in ["", "a", "1a", "-a", "A1", "a_b", &"a".repeat(64)] {
            assert!(!is_id(bad), "{bad}");
        }
    }
}
