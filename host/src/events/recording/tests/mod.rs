//! Recordings written and read back, damaged ones, and one of an earlier program.

mod hostile;
mod random;
mod round_trip;

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use lm_bench_plugin::kinds::{mark, moe_route, phase, quant, step};
use lm_bench_plugin::{Block, ColumnBuf, ColumnDef, ElementType, KindDef, Level};

use crate::events::{
    CollectMode, Collected, Collection, CollectionSetup, Delivery, EventSink, KindTable, Recorder,
    RecorderConfig, Recording, RecordingWriter, SymbolTable,
};

/// A kind with a column of each type, scalar and list.
fn vendor_kind() -> KindDef {
    let types = [
        ElementType::U8,
        ElementType::U16,
        ElementType::U32,
        ElementType::U64,
        ElementType::I64,
        ElementType::F32,
        ElementType::F64,
        ElementType::Sym,
    ];
    let column = |name: String, element, list| ColumnDef {
        name: Cow::Owned(name),
        element,
        list,
        unit: Cow::Borrowed("1"),
        since: Cow::Borrowed("1.0"),
        nonfinite: true,
        about: Cow::Borrowed(" Anything."),
    };
    let mut columns = vec![column("t_ns".to_owned(), ElementType::U64, false)];
    for element in types {
        columns.push(column(element.name().to_owned(), element, false));
        columns.push(column(format!("{}_list", element.name()), element, true));
    }
    KindDef {
        name: Cow::Borrowed("vendor.acme.everything"),
        level: Level::Ops,
        since: Cow::Borrowed("1.0"),
        about: Cow::Borrowed(" All types."),
        columns: Cow::Owned(columns),
    }
}

/// Rows of [`vendor_kind`] with list columns of `width` values; all columns count from `start`.
fn vendor_block(kinds: &KindTable, rows: u32, width: u32, start: u8) -> Block {
    let kind = kinds.find("vendor.acme.everything").unwrap();
    let columns = kind.columns.iter().map(|column| {
        let width = if column.list { width } else { 1 };
        let numbers = (0..rows * width).map(|at| u8::try_from(at % 100).unwrap() + start);
        let values = match column.element {
            ElementType::U8 => ColumnBuf::U8(numbers.collect()),
            ElementType::U16 => ColumnBuf::U16(numbers.map(u16::from).collect()),
            ElementType::U32 => ColumnBuf::U32(numbers.map(|n| u32::from(n) << 20).collect()),
            ElementType::U64 => ColumnBuf::U64(numbers.map(|n| u64::MAX - u64::from(n)).collect()),
            ElementType::I64 => ColumnBuf::I64(numbers.map(|n| -i64::from(n)).collect()),
            ElementType::F32 => ColumnBuf::F32(numbers.map(|n| f32::from(n) / 3.0).collect()),
            ElementType::F64 => ColumnBuf::F64(numbers.map(|n| f64::INFINITY / f64::from(n)).collect()),
            ElementType::Sym => ColumnBuf::U32(numbers.map(|n| u32::from(n) % 3).collect()),
        };
        (width, values)
    });
    Block::from_columns(Arc::clone(kind), rows, columns.collect()).unwrap()
}

/// Runs `work` with a recorder while recording to `path`, and finishes the recording.
fn record(path: &Path, work: impl FnOnce(&mut Recorder)) -> Collected<Vec<Delivery>> {
    let setup = CollectionSetup {
        config: RecorderConfig {
            level: Level::Ops,
            block_rows: 4,
            ..RecorderConfig::default()
        },
        kinds: KindTable::builtin(),
        symbols: Arc::new(SymbolTable::new()),
        clock: crate::clock::Clock::fake(),
        mode: CollectMode::default(),
    };
    let writer = RecordingWriter::create(path, &setup.kinds).unwrap();
    let (mut recorder, collection) = Collection::start(setup, Some(writer), Vec::new()).unwrap();
    work(&mut recorder);
    let mut finished = collection.finish(recorder).unwrap();
    let writer = finished.recording.take().unwrap().unwrap();
    writer
        .finish(serde_json::json!({"engine": "mock"}), &finished.totals)
        .unwrap();
    finished
}

/// A small run with scalars, lists of two lengths, symbols, weights and a value that is not finite.
fn small_run(recorder: &mut Recorder) {
    let (down, e4m3) = (recorder.symbol("ffn_down_input"), recorder.symbol("e4m3"));
    let row = quant::Row {
        tensor: down,
        format: e4m3,
        sqnr_channel_p50: f32::INFINITY,
        ..Default::default()
    };
    recorder.record(&quant::Row {
        t_ns: 5,
        phase: phase::LOAD,
        n: 64,
        amax: 0.1,
        ..row
    });
    for number in 0..6 {
        recorder.begin_step(number, phase::DECODE);
        let t_ns = 1_000 * (number + 1);
        recorder.record(&quant::Row {
            t_ns,
            step: number,
            n: 32,
            scale: 1e-3,
            ..row
        });
        let route = moe_route::Row {
            t_ns,
            step: number,
            tokens: 2,
            top_k: 1,
            ..Default::default()
        };
        recorder.record(&moe_route::Row {
            experts: 2,
            counts: &[2, 0],
            prob_sum: &[1.5, 0.5],
            ..route
        });
        recorder.record(&moe_route::Row {
            experts: 3,
            counts: &[1, 0, 1],
            prob_sum: &[1.0, 0.25, 0.75],
            ..route
        });
        recorder.record(&step::Row {
            t_ns,
            step: number,
            phase: phase::DECODE,
            host_ns: 900,
            ..Default::default()
        });
    }
    let name = recorder.symbol("späť | \"quoted\"");
    recorder.record(&mark::Row {
        t_ns: 9_000,
        name,
        value: 0.1 + 0.2,
    });
}

/// All that a sink can see of deliveries. NaN and negative zero count as values.
fn seen(deliveries: &[Delivery]) -> Vec<String> {
    let of = |d: &Delivery| {
        let Delivery {
            kind,
            block,
            seq,
            lost_before,
        } = d;
        let head = format!(
            "{kind} {seq} {lost_before} {} {} {}",
            block.rows(),
            block.weight,
            block.first_row
        );
        let columns = (0..block.kind().columns.len()).map(|at| format!("{:?}", block.column(at)));
        format!(
            "{head} {} {}",
            block.kind().name,
            columns.collect::<Vec<_>>().join(" ")
        )
    };
    deliveries.iter().map(of).collect()
}

fn replayed(path: &Path) -> Result<Vec<Delivery>, crate::events::RecordingError> {
    let mut deliveries = Vec::new();
    Recording::open(path)?.replay(&mut deliveries)?;
    Ok(deliveries)
}
