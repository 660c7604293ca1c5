//! The WASM door, guest side: component exports around a [`Collector`].
#![allow(missing_docs, unsafe_code, clippy::all, reason = "holds generated bindings")]

use std::cell::RefCell;
use std::marker::PhantomData;

use crate::batch::Batch;
use crate::collector::{Collector, Host, LogLevel};
use crate::column::{ColumnData, Data, ElementType};
use crate::erased::{self, Instance};
use crate::fault::{Fault, FaultCode};
use crate::metric::{Metric, Value};
use crate::subscription::{Resolved, ResolvedColumn, ResolvedKind, Sampling, Subscription};

wit_bindgen::generate!({
    path: "../wit/1.0.0",
    world: "metric-collector",
    pub_export_macro: true,
    export_macro_name: "__export_component",
});

use exports::lm_bench::collector::collector::Guest;
use lm_bench::collector::{host, types};

thread_local! {
    static INSTANCE: RefCell<Option<Box<dyn Instance>>> = const { RefCell::new(None) };
}

/// The component that tells the schema of a collector's configuration.
pub mod description {
    use super::{Collector, PhantomData, erased};

    wit_bindgen::generate!({
        path: "../wit/1.0.0",
        world: "description",
        pub_export_macro: true,
        export_macro_name: "__export_description_component",
    });

    /// The description of one collector.
    pub struct Description<C>(PhantomData<C>);

    impl<C: Collector> Guest for Description<C> {
        fn describe() -> String {
            erased::config_schema::<C>()
        }
    }
}

/// The component of one collector; one instance of the component is one instance of the collector.
pub struct Component<C>(PhantomData<C>);

impl<C: Collector> Guest for Component<C> {
    fn subscribe(config: String, run: String) -> Result<types::Subscription, types::Fault> {
        tell_panics();
        erased::subscribe::<C>(&config, &run)
            .map(subscription)
            .map_err(fault)
    }

    fn open(config: String, run: String, resolved: Vec<types::ResolvedKind>) -> Result<(), types::Fault> {
        tell_panics();
        let resolved = Resolved {
            kinds: resolved.into_iter().map(resolved_kind).collect(),
        };
        let opened = erased::open::<C>(&config, &run, &resolved).map_err(fault)?;
        INSTANCE.set(Some(opened));
        Ok(())
    }

    fn on_batch(batch: types::Batch) -> Result<(), types::Fault> {
        let columns: Vec<ColumnData<'_>> = batch.columns.iter().map(column).collect();
        let view = Batch {
            kind: batch.kind,
            seq: batch.seq,
            rows: batch.rows,
            weight: batch.weight,
            lost_before: batch.lost_before,
            columns: &columns,
        };
        with_instance(|instance| instance.on_batch(&view, &mut Imports))
    }

    fn lost_after(kind: u16, rows: u64) -> Result<(), types::Fault> {
        with_instance(|instance| {
            instance.lost_after(kind, rows);
            Ok(())
        })
    }

    fn checkpoint() -> Result<Vec<types::Metric>, types::Fault> {
        let mut metrics = Vec::new();
        with_instance(|instance| instance.checkpoint(&mut metrics))?;
        Ok(metrics.into_iter().map(metric).collect())
    }

    fn finish() -> Result<Vec<types::Metric>, types::Fault> {
        let mut metrics = Vec::new();
        INSTANCE
            .take()
            .ok_or_else(not_open)
            .and_then(|instance| instance.finish(&mut metrics))
            .map_err(fault)?;
        Ok(metrics.into_iter().map(metric).collect())
    }
}

/// A guest's panic ends in a bare trap: this sends its text to the host's log first.
fn tell_panics() {
    std::panic::set_hook(Box::new(|panic| {
        host::log(host::Level::Error, &panic.to_string())
    }));
}

fn not_open() -> Fault {
    Fault::contract("the collector is not open")
}

fn with_instance(call: impl FnOnce(&mut Box<dyn Instance>) -> Result<(), Fault>) -> Result<(), types::Fault> {
    INSTANCE
        .with_borrow_mut(|slot| slot.as_mut().ok_or_else(not_open).and_then(call))
        .map_err(fault)
}

/// The host's functions.
struct Imports;

impl Host for Imports {
    fn log(&mut self, level: LogLevel, text: &str) {
        let level = match level {
            LogLevel::Debug => host::Level::Debug,
            LogLevel::Info => host::Level::Info,
            LogLevel::Warn => host::Level::Warn,
            LogLevel::Error => host::Level::Error,
        };
        host::log(level, text);
    }

    fn symbol(&mut self, id: u32) -> Option<String> {
        host::symbol(id)
    }
}

fn column(column: &types::Column) -> ColumnData<'_> {
    let data = match &column.data {
        types::Data::U8s(values) => Data::U8(values),
        types::Data::U16s(values) => Data::U16(values),
        types::Data::U32s(values) => Data::U32(values),
        types::Data::U64s(values) => Data::U64(values),
        types::Data::S64s(values) => Data::I64(values),
        types::Data::F32s(values) => Data::F32(values),
        types::Data::F64s(values) => Data::F64(values),
    };
    ColumnData {
        width: column.width,
        data,
    }
}

fn fault(fault: Fault) -> types::Fault {
    let code = match fault.code {
        FaultCode::Config => types::FaultCode::Config,
        FaultCode::Data => types::FaultCode::Data,
        FaultCode::Contract => types::FaultCode::Contract,
        FaultCode::Panic => types::FaultCode::Panic,
    };
    types::Fault {
        code,
        message: fault.message,
    }
}

fn subscription(subscription: Subscription) -> types::Subscription {
    let wants = subscription.wants.into_iter().map(|want| types::Want {
        kind: want.kind,
        columns: want.columns,
        optional: want.optional,
        sampling: match want.sampling {
            Sampling::All => types::Sampling::All,
            Sampling::EveryNth(n) => types::Sampling::EveryNth(n),
        },
    });
    types::Subscription {
        wants: wants.collect(),
        max_rows: subscription.max_rows,
    }
}

fn resolved_kind(kind: types::ResolvedKind) -> ResolvedKind {
    ResolvedKind {
        kind: kind.kind,
        id: kind.id,
        columns: kind.columns.into_iter().map(resolved_column).collect(),
    }
}

fn resolved_column(column: types::ResolvedColumn) -> ResolvedColumn {
    let element = match column.element {
        types::Element::U8 => ElementType::U8,
        types::Element::U16 => ElementType::U16,
        types::Element::U32 => ElementType::U32,
        types::Element::U64 => ElementType::U64,
        types::Element::I64 => ElementType::I64,
        types::Element::F32 => ElementType::F32,
        types::Element::F64 => ElementType::F64,
        types::Element::Sym => ElementType::Sym,
    };
    ResolvedColumn {
        name: column.name,
        element,
        list: column.list,
        unit: column.unit,
        nonfinite: column.nonfinite,
    }
}

fn metric(metric: Metric) -> types::Metric {
    let value = match metric.value {
        Value::Counter(count) => types::Value::Counter(count),
        Value::Gauge(number) => types::Value::Gauge(number),
        Value::Distribution(buckets) => types::Value::Distribution(buckets),
        Value::Unavailable(reason) => types::Value::Unavailable(reason),
    };
    types::Metric {
        name: metric.name,
        labels: metric.labels,
        value,
        samples: metric.samples,
    }
}
