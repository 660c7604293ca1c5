//! Components written as text: the pieces of a collector, and how they become a component.

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// A manifest of a plugin "written" with one counter.
pub(crate) const MANIFEST: &str = r#"{"schema":1,"id":"written","version":"1.0.0","about":"from text","license":"MIT","sdk":"none","requires":["lmb.collector/1"],"metrics":[{"name":"rows","unit":"1","kind":"counter","direction":"neither","formula":"","about":""}]}"#;

/// Memory, the allocator that the contract asks for, and the six functions; `$ok` is an area of zeros: the result
/// "ok", an empty list. Arguments are never freed: the memory is large enough for a test.
pub(crate) const BODY: &str = r#"
  (memory (export "memory") 16)
  (global $next (mut i32) (i32.const 4096))
  (func (export "cabi_realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $next) (i32.const 15)) (i32.const -16)))
    (global.set $next (i32.add (local.get $at) (local.get $size)))
    (local.get $at))
  (func (export "C#open") (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const 1024))
  (func (export "C#finish") (result i32) (i32.const 1024))
"#;

/// A subscription to nothing with `max_rows` 64: ok, no wants.
pub(crate) const SUBSCRIBE: &str = r#"
  (func (export "C#subscribe") (param i32 i32 i32 i32) (result i32)
    (i32.store (i32.const 1112) (i32.const 0))
    (i32.store8 (i32.const 1100) (i32.const 0))
    (i32.store (i32.const 1104) (i32.const 0)) (i32.store (i32.const 1108) (i32.const 0))
    (i32.store (i32.const 1112) (i32.const 64))
    (i32.const 1100))
"#;

/// Calls that succeed.
pub(crate) const CALLS: &str = r#"
  (func (export "C#on-batch") (param i32 i64 i32 f64 i64 i32 i32) (result i32) (i32.const 1024))
  (func (export "C#lost-after") (param i32 i64) (result i32) (i32.const 1024))
  (func (export "C#checkpoint") (result i32) (i32.const 1024))
"#;

pub(crate) fn core(parts: &[&str]) -> Vec<u8> {
    let text = format!("(module {})", parts.concat()).replace("C#", "lm-bench:collector/collector@1.0.0#");
    wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A component of a world in the package of collectors, with a manifest in its core module.
pub(crate) fn component(mut core: Vec<u8>, world: &str, manifest: Option<&str>) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit/1.0.0");
    let (package, _) = resolve.push_path(&folder).expect("the contract is valid WIT");
    let world = match world {
        "metric-collector" => resolve.select_world(&[package], Some(world)).expect("the world"),
        text => {
            let other = resolve.push_str("other.wit", text).expect("valid WIT");
            resolve.select_world(&[other], None).expect("one world")
        }
    };
    embed_component_metadata(&mut core, &resolve, world, StringEncoding::UTF8).expect("metadata");
    if let Some(manifest) = manifest {
        custom_section(&mut core, "lmb:manifest", manifest.as_bytes());
    }
    let mut encoder = ComponentEncoder::default()
        .validate(true)
        .module(&core)
        .expect("a module of the world");
    encoder.encode().expect("a component")
}

/// Appends a custom section: id 0, length, length of the name, name, data.
pub(crate) fn custom_section(module: &mut Vec<u8>, name: &str, data: &[u8]) {
    fn leb128(mut value: usize, out: &mut Vec<u8>) {
        while value >= 0x80 {
            out.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
    }
    let mut body = Vec::new();
    leb128(name.len(), &mut body);
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(data);
    module.push(0);
    leb128(body.len(), module);
    module.extend_from_slice(&body);
}
