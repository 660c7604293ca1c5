//! Between the SDK's types and those of the component contract.

use lm_bench_plugin::{
    Batch, Data, ElementType, FaultCode, Metric, Resolved, ResolvedColumn, Sampling, Subscription, Value,
    Want,
};

use super::bindings::lm_bench::collector::types;

/// Memory for the columns of a batch, kept between batches.
#[derive(Default)]
pub(super) struct Scratch {
    columns: Vec<types::Column<'static>>,
}

impl Scratch {
    /// The batch's columns as the contract has them; the values are borrowed.
    pub(super) fn columns<'a>(&mut self, batch: &Batch<'a>) -> Vec<types::Column<'a>> {
        let mut columns: Vec<types::Column<'a>> = std::mem::take(&mut self.columns);
        columns.extend(batch.columns.iter().map(|column| types::Column {
            width: column.width,
            data: match column.data {
                Data::U8(values) => types::Data::U8s(values),
                Data::U16(values) => types::Data::U16s(values),
                Data::U32(values) => types::Data::U32s(values),
                Data::U64(values) => types::Data::U64s(values),
                Data::I64(values) => types::Data::S64s(values),
                Data::F32(values) => types::Data::F32s(values),
                Data::F64(values) => types::Data::F64s(values),
            },
        }));
        columns
    }

    /// Takes the memory back.
    #[expect(
        clippy::unnecessary_filter_map,
        reason = "the vector's type changes, and with it the elements' lifetime"
    )]
    pub(super) fn recycle(&mut self, mut columns: Vec<types::Column<'_>>) {
        columns.clear();
        // An empty vector's elements may change their lifetime; collecting in place keeps the memory.
        self.columns = columns.into_iter().filter_map(|_| None).collect();
    }
}

/// The columns of each kind, to be borrowed by [`resolved`].
pub(super) fn columns_of(resolved: &Resolved) -> Vec<Vec<types::ResolvedColumn<'_>>> {
    fn column(column: &ResolvedColumn) -> types::ResolvedColumn<'_> {
        types::ResolvedColumn {
            name: &column.name,
            element: match column.element {
                ElementType::U8 => types::Element::U8,
                ElementType::U16 => types::Element::U16,
                ElementType::U32 => types::Element::U32,
                ElementType::U64 => types::Element::U64,
                ElementType::I64 => types::Element::I64,
                ElementType::F32 => types::Element::F32,
                ElementType::F64 => types::Element::F64,
                ElementType::Sym => types::Element::Sym,
            },
            list: column.list,
            unit: &column.unit,
            nonfinite: column.nonfinite,
        }
    }
    resolved
        .kinds
        .iter()
        .map(|kind| kind.columns.iter().map(column).collect())
        .collect()
}

pub(super) fn resolved<'a>(
    resolved: &'a Resolved,
    columns: &'a [Vec<types::ResolvedColumn<'a>>],
) -> Vec<types::ResolvedKind<'a>> {
    let kinds = resolved.kinds.iter().zip(columns);
    kinds
        .map(|(kind, columns)| types::ResolvedKind {
            kind: &kind.kind,
            id: kind.id,
            columns,
        })
        .collect()
}

pub(super) fn subscription(subscription: types::Subscription) -> Subscription {
    let wants = subscription.wants.into_iter().map(|want| Want {
        kind: want.kind,
        columns: want.columns,
        optional: want.optional,
        sampling: match want.sampling {
            types::Sampling::All => Sampling::All,
            types::Sampling::EveryNth(n) => Sampling::EveryNth(n),
        },
    });
    Subscription {
        wants: wants.collect(),
        max_rows: subscription.max_rows,
    }
}

pub(super) fn metric(metric: types::Metric) -> Metric {
    let value = match metric.value {
        types::Value::Counter(count) => Value::Counter(count),
        types::Value::Gauge(number) => Value::Gauge(number),
        types::Value::Distribution(values) => Value::Distribution(values),
        types::Value::Unavailable(reason) => Value::Unavailable(reason),
    };
    Metric {
        name: metric.name,
        labels: metric.labels,
        value,
        samples: metric.samples,
    }
}

pub(super) fn fault_code(code: types::FaultCode) -> FaultCode {
    match code {
        types::FaultCode::Config => FaultCode::Config,
        types::FaultCode::Data => FaultCode::Data,
        types::FaultCode::Contract => FaultCode::Contract,
        types::FaultCode::Panic => FaultCode::Panic,
    }
}
