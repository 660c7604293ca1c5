//! What ran, and the numbers that people look for first.

use super::super::record::{Definition, RunRecord};
use super::format::{NONE, bytes, clean, number, short, unit};
use super::grid::Grid;
use super::style::Style;
use super::{heading, reasons, wrap};

/// The verdict with its reasons; model, engine, machine and extent of the run, a line each.
pub(super) fn facts(record: &RunRecord, style: Style) -> String {
    let verdict = if record.verdict.valid { "VALID" } else { "INVALID" };
    let title = format!("{} {}: {verdict}", record.tool.name, record.tool.version);
    let lines = [
        ("model", model(record)),
        ("engine", engine(record)),
        ("machine", machine(record)),
        ("run", extent(record, style)),
        (
            "output",
            record
                .output_sample
                .as_ref()
                .map_or(String::new(), |text| format!("\"{}\"", excerpt(text))),
        ),
    ];
    let mut text = heading(style, &clean(&title)) + &reasons(record, style);
    for (name, line) in lines.iter().filter(|(_, line)| !line.is_empty()) {
        text += &wrap(style, &format!("  {name:<8} "), &clean(line));
        text.push('\n');
    }
    text
}

/// Characters of the generated text that are shown; the record has all of it.
const EXCERPT: usize = 160;

fn excerpt(text: &str) -> String {
    let mut shown: String = text.chars().take(EXCERPT).collect();
    if text.chars().count() > EXCERPT {
        shown.push_str("...");
    }
    shown
}

fn model(record: &RunRecord) -> String {
    let model = &record.model;
    if model.layers == 0 {
        return model.name.clone();
    }
    let mut parts = vec![model.architecture.clone(), format!("{} layers", model.layers)];
    if model.experts > 0 {
        parts.push(format!(
            "{} experts, {} per token",
            model.experts, model.experts_per_token
        ));
    }
    let active = model
        .active_parameters
        .filter(|active| *active != model.parameters);
    parts.push(format!("{} parameters", short(model.parameters)));
    parts.extend(active.map(|active| format!("{} active", short(active))));
    parts.push(
        [model.format.as_str(), model.weight_type.as_deref().unwrap_or("")]
            .join(" ")
            .trim()
            .to_owned(),
    );
    format!("{}: {}", model.name, parts.join(", "))
}

fn engine(record: &RunRecord) -> String {
    let engine = &record.engine;
    if engine.threads == 0 {
        return format!("{} at {}", engine.name, engine.device);
    }
    let version = engine
        .version
        .as_deref()
        .map_or(String::new(), |version| format!(" {version}"));
    let threads = if engine.threads == 1 { "thread" } else { "threads" };
    format!(
        "{}{version} on {}: {}, quantization {}, {} {threads}, weights {}, KV cache {} per token",
        engine.name,
        engine.device,
        engine.dtype,
        engine.quantization,
        engine.threads,
        bytes(engine.weight_bytes),
        bytes(engine.kv_bytes_per_token),
    )
}

fn machine(record: &RunRecord) -> String {
    let environment = &record.environment;
    let cpu = &environment.cpu;
    let mut parts = vec![cpu.model.clone().unwrap_or_else(|| environment.arch.clone())];
    parts.extend(cpu.usable_cores.map(|cores| format!("{cores} usable cores")));
    parts.extend(environment.memory_total_bytes.map(bytes));
    parts.extend(environment.os.clone());
    parts.extend(
        environment
            .gpus
            .iter()
            .map(|gpu| format!("GPU {}: {}", gpu.index, gpu.name)),
    );
    parts.join(", ")
}

fn extent(record: &RunRecord, style: Style) -> String {
    let (counts, warmup) = (&record.counts, record.warmup.iterations);
    let per = |tokens: u64| tokens.checked_div(counts.requests).unwrap_or(0);
    if counts.iterations_planned == 0 {
        return format!(
            "{}, {} failed, {} prompt and {} output tokens, {} apart",
            several(counts.requests, "request"),
            counts.errors,
            counts.prompt_tokens,
            counts.output_tokens,
            several(warmup, "warm-up request"),
        );
    }
    let sequences = counts.requests.checked_div(counts.iterations).unwrap_or(0);
    format!(
        "{} {times} {} {times} ({} prompt + {} output tokens), {} apart",
        several(counts.iterations, "iteration"),
        several(sequences, "sequence"),
        per(counts.prompt_tokens),
        per(counts.output_tokens),
        several(warmup, "warm-up iteration"),
        times = style.times(),
    )
}

fn several(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// The headline numbers with their statistic and interval, and the warm-up's beside them.
pub(super) fn numbers(record: &RunRecord, style: Style) -> String {
    let headline = &record.headline;
    let mut grid = Grid::default()
        .text("headline")
        .number("")
        .word("unit")
        .spare("95 % interval")
        .spare("warm-up")
        .text("statistic");
    let rows = [
        (
            "prefill_latency_ms",
            headline.prefill_latency_ms,
            record.warmup.prefill_latency_ms,
        ),
        (
            "decode_latency_per_token_ms",
            headline.decode_latency_per_token_ms,
            record.warmup.decode_latency_per_token_ms,
        ),
        ("total_tokens_per_second", headline.total_tokens_per_second, None),
        ("peak_gpu_mem_gb", headline.peak_gpu_mem_gb, None),
    ];
    for (name, value, warmup) in rows {
        let definition = headline.definitions.get(name);
        let interval = definition.and_then(|definition| definition.interval);
        grid.push([
            name.to_owned(),
            value.map_or(NONE.to_owned(), number),
            definition.map_or(String::new(), |definition| unit(&definition.unit)),
            interval.map_or(NONE.to_owned(), |found| {
                format!("[{}, {}]", number(found.low), number(found.high))
            }),
            warmup.map_or(NONE.to_owned(), number),
            match (name, value) {
                ("peak_gpu_mem_gb", None) if record.environment.gpus.is_empty() => "no GPU".to_owned(),
                (_, None) => "not measured".to_owned(),
                (_, Some(_)) => definition.map_or(String::new(), statistic),
            },
        ]);
    }
    grid.render(style)
}

fn statistic(definition: &Definition) -> String {
    match definition.statistic.as_str() {
        "median" => format!("median of {}", definition.n),
        other => other.to_owned(),
    }
}
