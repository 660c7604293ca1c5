//! The candle engine on a real model, position by position against llama.cpp on the same file.
//!
//! The reference tokens are fed, and at each position the most likely token must be the reference's next one. It may
//! differ only where the two candidates' logits lie within [`TIE`]; such positions are printed.
//!
//! `tests/all.sh` sets `LM_BENCH_TEST_MODEL`. Without it these tests count as ignored.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use lm_bench::engine::Engine;
use lm_bench::engine::candle::{CandleEngine, LoadOptions};
use lm_bench::events::Recorder;
use lm_bench::model::{self, LoadFormat, Model};
use serde::Deserialize;

/// Logits closer than this are a tie that rounding may break either way.
const TIE: f32 = 1e-2;

#[derive(Deserialize)]
struct Reference {
    prompts: BTreeMap<String, Case>,
}

#[derive(Deserialize)]
struct Case {
    prompt: String,
    prompt_tokens: Vec<u32>,
    tokens: Vec<u32>,
}

#[derive(Deserialize)]
struct Texts {
    strings: Vec<Text>,
}

#[derive(Deserialize)]
struct Text {
    text: String,
    ids: Vec<u32>,
    ids_without_special: Option<Vec<u32>>,
}

fn read<T: for<'de> Deserialize<'de>>(name: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/assets/reference").join(name);
    let text = std::fs::read_to_string(&path).expect("the committed reference");
    serde_json::from_str(&text).expect("a valid reference")
}

fn open(path: &Path) -> Result<Model, Failed> {
    Ok(model::open(&path.to_string_lossy(), LoadFormat::Auto, 0)?)
}

fn argmax(logits: &[f32]) -> u32 {
    let best = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b]));
    best.expect("logits") as u32
}

/// Feeds a case's reference tokens; returns ties and differences as text.
fn follow(engine: &mut CandleEngine, name: &str, case: &Case) -> Result<(usize, Vec<String>), Failed> {
    let mut recorder = Recorder::disabled();
    let mut ties = 0;
    let mut differences = Vec::new();
    engine.begin(1, case.prompt_tokens.len() + case.tokens.len())?;
    engine.prefill(std::slice::from_ref(&case.prompt_tokens), &mut recorder)?;
    for (position, &expected) in case.tokens.iter().enumerate() {
        let logits = engine.logits().ok_or("the engine keeps no logits")?;
        let found = argmax(logits);
        if found != expected {
            let (ours, theirs) = (logits[found as usize], logits[expected as usize]);
            let line = format!("{name}[{position}]: {found} at {ours}, llama.cpp chose {expected}, here at {theirs}");
            if ours - theirs <= TIE {
                eprintln!("tie: {line}");
                ties += 1;
            } else {
                differences.push(line);
            }
        }
        engine.decode(&[expected], &mut recorder)?;
    }
    Ok((ties, differences))
}

/// All cases of a reference on one model file.
fn agrees(path: &Path, reference: &str) -> Result<(), Failed> {
    let model = open(path)?;
    let mut engine = CandleEngine::load(&model, LoadOptions { fp8: None, run: (1, 512) })?;
    let reference: Reference = read(reference);
    let mut positions = 0;
    let mut all = Vec::new();
    for (name, case) in &reference.prompts {
        let (_, differences) = follow(&mut engine, name, case)?;
        positions += case.tokens.len();
        all.extend(differences);
    }
    eprintln!("{positions} positions of {} prompts", reference.prompts.len());
    if positions < 5 * 32 { Err("too few positions".into()) } else { none(&all) }
}

fn none(differences: &[String]) -> Result<(), Failed> {
    if differences.is_empty() { Ok(()) } else { Err(differences.join("\n").into()) }
}

fn tokenizer_agrees(path: &Path) -> Result<(), Failed> {
    let tokenizer = open(path)?.tokenizer()?;
    let mut differences = Vec::new();
    let mut check = |text: &str, expected: &[u32]| match tokenizer.encode(text) {
        Ok(ids) if ids == expected => {}
        other => differences.push(format!("{text:?}: {other:?}, llama.cpp {expected:?}")),
    };
    for text in read::<Texts>("smollm2-tokens.json").strings {
        check(&text.text, &text.ids);
        drop(text.ids_without_special);
    }
    for case in read::<Reference>("smollm2-q4_1.json").prompts.values() {
        check(&case.prompt, &case.prompt_tokens);
    }
    none(&differences)
}

fn trial(
    name: &'static str,
    variable: &'static str,
    test: impl FnOnce(&Path) -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let path = std::env::var_os(variable).map(PathBuf::from);
    if path.is_none() {
        eprintln!("SKIPPED {name}: {variable} is not set; run tests/all.sh");
    }
    let ignored = path.is_none();
    Trial::test(name, move || test(&path.ok_or("no model")?)).with_ignored_flag(ignored)
}

fn main() {
    let trials = vec![
        trial("greedy_tokens_agree_with_llama_cpp", "LM_BENCH_TEST_MODEL", |path| {
            agrees(path, "smollm2-q4_1.json")
        }),
        trial("token_ids_agree_with_llama_cpp", "LM_BENCH_TEST_MODEL", tokenizer_agrees),
        trial("equal_experts_give_the_dense_models_tokens", "LM_BENCH_TEST_MOE_MODEL", |path| {
            agrees(path, "smollm2-moe.json")
        }),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
