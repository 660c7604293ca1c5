//! What the plugin does with its configuration.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::plugin::contract::play::How;
use crate::plugin::contract::stream::Stream;
use crate::plugin::contract::subject::Subject;
use crate::plugin::contract::verdict::{Trouble, Verdict};

/// A key that no plugin has.
const UNKNOWN: &str = "no_such_key";

/// There is a schema, of an object that refuses unknown keys.
pub(super) fn schema(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    let Some(schema) = subject.schema() else {
        return Ok(Verdict::none(
            "its build recorded no schema: build it with `lm-bench plugin build`",
        ));
    };
    if schema.get("type") != Some(&json!("object")) {
        return Ok(Verdict::fail(
            "the schema is not one of an object (\"type\": \"object\")",
        ));
    }
    if schema.get("additionalProperties") != Some(&json!(false)) {
        return Ok(Verdict::fail(
            "the schema allows unknown keys: \"additionalProperties\" is not false (in Rust: \
             #[serde(deny_unknown_fields)])",
        ));
    }
    let Some(required) = schema.get("required").and_then(Value::as_array) else {
        return Ok(Verdict::pass());
    };
    Ok(match required.first() {
        None => Verdict::pass(),
        Some(key) => Verdict::fail(format!("the schema requires {key}: each key needs a default")),
    })
}

/// It starts with an empty configuration.
pub(super) fn default(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    try_config(subject, Map::new()).map(|()| Verdict::pass())
}

/// It refuses a key that it does not know.
pub(super) fn unknown_key(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    let mut config = subject.config.clone();
    config.insert(UNKNOWN.to_owned(), Value::from(1));
    Ok(match refusal(subject, config) {
        Refusal::None => Verdict::fail(format!(
            "{{\"{UNKNOWN}\": 1}} is accepted: a user's spelling mistake passes unnoticed"
        )),
        Refusal::Proper => Verdict::pass(),
        Refusal::Other(trouble) => Verdict::fail(format!(
            "an unknown key is not refused by a configuration fault, but ends in {}: {}",
            trouble.call, trouble.failure
        )),
    })
}

/// It refuses a value of another type than the schema tells, for each key.
pub(super) fn wrong_type(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    let schema = subject.schema().unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut tried = 0;
    for (key, property) in properties.into_iter().flatten() {
        let Some(value) = misfit(property, &schema) else {
            continue;
        };
        tried += 1;
        let mut config = subject.config.clone();
        config.insert(key.clone(), value.clone());
        match refusal(subject, config) {
            Refusal::Proper => {}
            Refusal::None => {
                return Ok(Verdict::fail(format!(
                    "{key} accepts {value}, which is of another type"
                )));
            }
            Refusal::Other(trouble) => {
                return Ok(Verdict::fail(format!(
                    "{key} = {value} is not refused by a configuration fault, but ends in {}: {}",
                    trouble.call, trouble.failure
                )));
            }
        }
    }
    Ok(match tried {
        0 => Verdict::none("there is no key with a type"),
        _ => Verdict::pass(),
    })
}

enum Refusal {
    None,
    Proper,
    Other(Trouble),
}

fn refusal(subject: &Subject<'_>, config: Map<String, Value>) -> Refusal {
    match try_config(subject, config) {
        Ok(()) => Refusal::None,
        Err(trouble) if trouble.failure.is_configuration() => Refusal::Proper,
        Err(trouble) => Refusal::Other(trouble),
    }
}

/// A life without events.
fn try_config(subject: &Subject<'_>, config: Map<String, Value>) -> Result<(), Trouble> {
    let config = Value::Object(config).to_string();
    subject
        .play_with(&config, &Stream::default(), &How::default())
        .map(drop)
}

/// A value of a type that a property does not have; `None` where it may have all of them.
fn misfit(property: &Value, schema: &Value) -> Option<Value> {
    let mut types = BTreeSet::new();
    collect_types(property, schema, &mut types, 0);
    if types.is_empty() {
        return None;
    }
    let candidates = [
        ("object", json!({"no": "such"})),
        ("array", json!([["no such"]])),
        ("string", json!("no such value")),
        ("boolean", json!(true)),
    ];
    let fits = |name: &str| types.contains(name);
    candidates
        .into_iter()
        .find(|(name, _)| !fits(name))
        .map(|(_, value)| value)
}

/// Names of the types that a property may have.
fn collect_types(property: &Value, schema: &Value, types: &mut BTreeSet<String>, depth: u32) {
    const DEEPEST: u32 = 8;
    if depth > DEEPEST {
        return;
    }
    match property.get("type") {
        Some(Value::String(name)) => drop(types.insert(name.clone())),
        Some(Value::Array(names)) => {
            types.extend(names.iter().filter_map(Value::as_str).map(str::to_owned));
        }
        _ => {}
    }
    let values = property.get("enum").and_then(Value::as_array);
    types.extend(
        values
            .into_iter()
            .flatten()
            .chain(property.get("const"))
            .map(type_name),
    );
    if let Some(target) = property.get("$ref").and_then(Value::as_str)
        && let Some(target) = target.strip_prefix('#').and_then(|path| schema.pointer(path))
    {
        collect_types(target, schema, types, depth + 1);
    }
    for group in ["anyOf", "oneOf", "allOf"] {
        let parts = property.get(group).and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            collect_types(part, schema, types, depth + 1);
        }
    }
}

fn type_name(value: &Value) -> String {
    let name = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_another_type_is_found_through_references() {
        let schema = json!({"$defs": {"Detail": {"oneOf": [
            {"const": "overall", "type": "string"}, {"enum": ["layer"]}
        ]}}});
        let of = |property: Value| misfit(&property, &schema);
        assert_eq!(of(json!({"$ref": "#/$defs/Detail"})), Some(json!({"no": "such"})));
        assert_eq!(of(json!({"type": "object"})), Some(json!([["no such"]])));
        let most = json!({"type": ["object", "array", "string"]});
        assert_eq!(of(most), Some(json!(true)));
        assert_eq!(of(json!(true)), None);
        assert_eq!(of(json!({"$ref": "#/$defs/Absent"})), None);
        let all = json!({"type": ["object", "array", "string", "boolean"]});
        assert_eq!(of(all), None);
    }
}
