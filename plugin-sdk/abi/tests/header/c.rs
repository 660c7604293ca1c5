//! Writes declarations in C.

use std::collections::BTreeMap;

use crate::declarations::{Constant, Declaration, Field};

/// The declarations as C.
pub(crate) fn write(declarations: &[Declaration]) -> String {
    let names = names(declarations);
    let mut text = String::new();
    for declaration in declarations {
        match declaration {
            Declaration::Constant(constant) => text += &define("LMB_", constant, &names),
            Declaration::Module {
                docs,
                name,
                constants,
            } => {
                let prefix = format!("LMB_{}_", name.to_uppercase());
                text += &format!("\n{}\n", comment("", docs, &names));
                for constant in constants {
                    text += define(&prefix, constant, &names).trim_start();
                }
            }
            Declaration::Struct { docs, name, fields } => {
                text += &format!("\n{}typedef struct Lmb{name} {{\n", comment("", docs, &names));
                for field in fields {
                    text += &comment("    ", &field.docs, &names);
                    text += &format!("    {};\n", member(field));
                }
                text += &format!("}} Lmb{name};\n");
            }
        }
    }
    text
}

/// What documentation names, by its name in Rust.
fn names(declarations: &[Declaration]) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for declaration in declarations {
        match declaration {
            Declaration::Constant(Constant { name, .. }) => names.insert(name.clone(), format!("LMB_{name}")),
            Declaration::Module { name, .. } => {
                names.insert(name.clone(), format!("LMB_{}_…", name.to_uppercase()))
            }
            Declaration::Struct { name, .. } => names.insert(name.clone(), format!("Lmb{name}")),
        };
    }
    names
}

fn comment(indent: &str, docs: &[String], names: &BTreeMap<String, String>) -> String {
    assert!(!docs.is_empty(), "a declaration without documentation");
    let text = docs.join(&format!("\n{indent} * "));
    assert!(!text.contains("*/"), "{text}");
    format!("{indent}/* {} */\n", plain(&text, names))
}

/// Documentation without the links of rustdoc, in the names of C.
fn plain(text: &str, names: &BTreeMap<String, String>) -> String {
    let mut pieces = text.split('`');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    while let (Some(code), Some(after)) = (pieces.next(), pieces.next()) {
        let (ty, field) = code.split_once("::").unwrap_or((code, ""));
        let link = plain.ends_with('[');
        let name = match names.get(ty) {
            Some(name) if field.is_empty() => name.clone(),
            Some(name) => format!("{name}.{field}"),
            None if link => panic!("{code} is linked and not declared"),
            None => code.to_owned(),
        };
        if link {
            plain.pop();
        }
        plain += &name;
        plain += after.strip_prefix(']').filter(|_| link).unwrap_or(after);
    }
    plain
}

fn define(prefix: &str, constant: &Constant, names: &BTreeMap<String, String>) -> String {
    let Constant { docs, name, value } = constant;
    let value = match value.strip_prefix("*b\"").and_then(|rest| rest.strip_suffix('"')) {
        // An array of bytes; C++ does not take a string for it, because of the string's end.
        Some(bytes) => {
            let letters: Vec<String> = bytes.chars().map(|byte| format!("'{byte}'")).collect();
            format!("{{{}}}", letters.join(", "))
        }
        None => {
            let number = value.bytes().all(|byte| byte.is_ascii_digit());
            assert!(
                number || value.starts_with('"'),
                "a value of an unknown form: {value}"
            );
            if number && prefix != "LMB_" {
                format!("UINT32_C({value})")
            } else {
                value.clone()
            }
        }
    };
    format!("\n{}#define {prefix}{name} {value}\n", comment("", docs, names))
}

/// A field as C declares it.
fn member(field: &Field) -> String {
    let Field { name, ty, .. } = field;
    if let Some(signature) = ty.split_once("extern \"C\" fn(").map(|(_, signature)| signature) {
        let (arguments, result) = signature.rsplit_once(')').expect("a signature");
        let result = result
            .strip_prefix(" -> ")
            .map_or_else(|| "void ".to_owned(), spelled);
        let arguments: Vec<String> = arguments
            .split(',')
            .filter(|argument| !argument.trim().is_empty())
            .map(|argument| {
                let (name, ty) = argument.split_once(':').expect("a named argument");
                spelled(ty) + name.trim()
            })
            .collect();
        return format!("{result}(*{name})({})", arguments.join(", "));
    }
    match ty.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(array) => {
            let (element, length) = array.split_once("; ").expect("an array");
            format!("{}{name}[{length}]", spelled(element))
        }
        None => spelled(ty) + name,
    }
}

/// A type up to the name that follows it.
fn spelled(ty: &str) -> String {
    let ty = ty.trim();
    if let Some(target) = ty.strip_prefix("*const ") {
        return format!("const {}", pointer(target));
    }
    if let Some(target) = ty.strip_prefix("*mut ") {
        return pointer(target);
    }
    let word = match ty {
        "u8" => "uint8_t",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "i32" => "int32_t",
        "f64" => "double",
        "usize" => "size_t",
        "c_void" => "void",
        own => {
            assert!(own.chars().all(char::is_alphanumeric), "an unknown type: {own}");
            return format!("Lmb{own} ");
        }
    };
    format!("{word} ")
}

fn pointer(target: &str) -> String {
    format!("{}*", spelled(target))
}
