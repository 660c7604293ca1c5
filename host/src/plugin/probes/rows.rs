//! Holds the rows of a probe against its declaration and brings them into the run.

use std::borrow::Cow;

use lm_bench_plugin::manifest::{ColumnDecl, KindDecl};
use lm_bench_plugin::{ColumnBuf, ColumnData, ColumnDef, ElementType, KindDef, Level};

use super::session::{ProbeRows, Sample};
use crate::events::RowRecorder;
use crate::plugin::failure::Failure;
use crate::plugin::limits::Limits;

/// Most bytes of all symbols of a probe.
const SYMBOL_BYTES: usize = 16 << 20;

/// A declared kind as the run knows it: with the host's time in front.
pub(super) fn kind(decl: &KindDecl, version: &str) -> KindDef {
    let own = |text: &str| Cow::Owned(text.to_owned());
    let column = |decl: &ColumnDecl| ColumnDef {
        name: own(&decl.name),
        element: decl.element,
        list: decl.list,
        unit: own(&decl.unit),
        since: own(version),
        nonfinite: decl.nonfinite,
        about: own(&decl.about),
    };
    let t_ns = ColumnDef {
        name: Cow::Borrowed("t_ns"),
        element: ElementType::U64,
        list: false,
        unit: Cow::Borrowed("ns"),
        since: own(version),
        nonfinite: false,
        about: Cow::Borrowed("time since the run started at which the sample began"),
    };
    let columns = std::iter::once(t_ns)
        .chain(decl.columns.iter().map(column))
        .collect();
    KindDef {
        name: own(&decl.name),
        level: Level::Off,
        since: own(version),
        about: own(&decl.about),
        columns: Cow::Owned(columns),
    }
}

/// Brings samples of one probe into the run.
pub(super) struct Intake {
    /// Declarations and, in their order, the kinds' indices in the run's table.
    pub(super) kinds: Vec<(KindDecl, usize)>,
    pub(super) recorder: RowRecorder,
    pub(super) limits: Limits,
    symbols: Vec<u32>,
    symbol_bytes: usize,
}

impl Intake {
    pub(super) fn new(kinds: Vec<(KindDecl, usize)>, recorder: RowRecorder, limits: Limits) -> Self {
        Self {
            kinds,
            recorder,
            limits,
            symbols: Vec::new(),
            symbol_bytes: 0,
        }
    }

    /// Records a sample whole or not at all, and tells its number of rows.
    ///
    /// # Errors
    /// What breaks the declaration or a limit.
    pub(super) fn take(&mut self, t_ns: u64, mut sample: Sample) -> Result<u64, Failure> {
        let all: u64 = sample.rows.iter().map(|rows| u64::from(rows.rows)).sum();
        let most = u64::from(self.limits.max_rows);
        if all > most {
            return Err(Failure::contract(format!(
                "gave {all} rows in one sample where {most} are allowed"
            )));
        }
        self.learn(&sample.symbols)?;
        for rows in &mut sample.rows {
            self.check(rows).map_err(Failure::contract)?;
        }
        for rows in &sample.rows {
            let (_, index) = self.kinds[rows.kind as usize];
            let columns: Vec<ColumnData<'_>> = rows
                .columns
                .iter()
                .map(|(width, column)| ColumnData {
                    width: *width,
                    data: column.slice(0, column.len()),
                })
                .collect();
            self.recorder
                .record(index, (t_ns, rows.rows), &columns)
                .map_err(Failure::contract)?;
        }
        self.recorder.flush_if_due();
        Ok(all)
    }

    fn learn(&mut self, texts: &[String]) -> Result<(), Failure> {
        for text in texts {
            self.symbol_bytes += text.len() + size_of::<u32>();
            if self.symbol_bytes > SYMBOL_BYTES {
                return Err(Failure::contract(format!(
                    "has symbols of more than {SYMBOL_BYTES} bytes"
                )));
            }
            self.symbols.push(self.recorder.symbol(text));
        }
        Ok(())
    }

    /// Checks rows and puts the run's symbols in the place of the probe's.
    fn check(&self, rows: &mut ProbeRows) -> Result<(), String> {
        const WIDEST: u32 = 65_536;
        let Some((decl, _)) = self.kinds.get(rows.kind as usize) else {
            return Err(format!(
                "gave rows of kind number {}, which it does not declare",
                rows.kind
            ));
        };
        let name = &decl.name;
        if rows.rows == 0 {
            return Err(format!("gave 0 rows of {name}; leave them out"));
        }
        let (have, want) = (rows.columns.len(), decl.columns.len());
        if have != want {
            return Err(format!("gave {have} columns of {name}, which has {want}"));
        }
        for (decl, (width, column)) in decl.columns.iter().zip(&mut rows.columns) {
            let at = format!("column {} of {name}", decl.name);
            if *width == 0 || *width > WIDEST || (!decl.list && *width != 1) {
                return Err(format!("gave {width} values per row in {at}"));
            }
            let want = u64::from(rows.rows) * u64::from(*width);
            if column.len() as u64 != want {
                let have = column.len();
                return Err(format!(
                    "gave {have} values in {at} where {want} belong to the rows"
                ));
            }
            if !is_of(column, decl.element) {
                return Err(format!("gave {at} in another type than {}", decl.element.name()));
            }
            if !decl.nonfinite && !is_finite(column) {
                return Err(format!(
                    "gave a value that is not finite in {at}, which is not declared so"
                ));
            }
            if let (ElementType::Sym, ColumnBuf::U32(ids)) = (decl.element, column) {
                for id in ids {
                    let known = self.symbols.get(*id as usize);
                    *id = *known
                        .ok_or_else(|| format!("gave symbol {id} in {at}, which it never asked for"))?;
                }
            }
        }
        Ok(())
    }
}

fn is_of(column: &ColumnBuf, element: ElementType) -> bool {
    matches!(
        (column, element),
        (ColumnBuf::U8(_), ElementType::U8)
            | (ColumnBuf::U16(_), ElementType::U16)
            | (ColumnBuf::U32(_), ElementType::U32 | ElementType::Sym)
            | (ColumnBuf::U64(_), ElementType::U64)
            | (ColumnBuf::I64(_), ElementType::I64)
            | (ColumnBuf::F32(_), ElementType::F32)
            | (ColumnBuf::F64(_), ElementType::F64)
    )
}

fn is_finite(column: &ColumnBuf) -> bool {
    match column {
        ColumnBuf::F32(values) => values.iter().all(|value| value.is_finite()),
        ColumnBuf::F64(values) => values.iter().all(|value| value.is_finite()),
        _ => true,
    }
}
