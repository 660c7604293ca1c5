use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::events::Totals;

/// A batch: rows, list length, weight, rows lost before it, seed of the values.
fn batches() -> impl Strategy<Value = Vec<(u32, u32, u32, u64, u64)>> {
    vec((1..6_u32, 1..4_u32, 1..100_u32, 0..1_000_u64, any::<u64>()), 0..8)
}

/// Any bits at all, NaN with payload included.
fn random_block(kinds: &KindTable, rows: u32, width: u32, seed: u64) -> Block {
    let kind = kinds.find("vendor.acme.everything").unwrap();
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state ^ (state >> 29)
    };
    let columns = kind.columns.iter().map(|column| {
        let width = if column.list { width } else { 1 };
        let bits = (0..rows * width).map(|_| next());
        let values = match column.element {
            ElementType::U8 => ColumnBuf::U8(bits.map(|b| b as u8).collect()),
            ElementType::U16 => ColumnBuf::U16(bits.map(|b| b as u16).collect()),
            ElementType::U32 => ColumnBuf::U32(bits.map(|b| b as u32).collect()),
            ElementType::U64 => ColumnBuf::U64(bits.collect()),
            ElementType::I64 => ColumnBuf::I64(bits.map(|b| b as i64).collect()),
            ElementType::F32 => ColumnBuf::F32(bits.map(|b| f32::from_bits(b as u32)).collect()),
            ElementType::F64 => ColumnBuf::F64(bits.map(f64::from_bits).collect()),
            ElementType::Sym => ColumnBuf::U32(bits.map(|b| (b % 3) as u32).collect()),
        };
        (width, values)
    });
    Block::from_columns(Arc::clone(kind), rows, columns.collect()).unwrap()
}

fn write(path: &Path, batches: &[(u32, u32, u32, u64, u64)]) -> Vec<Delivery> {
    let kinds = KindTable::with(vec![vendor_kind()]).unwrap();
    let kind = kinds.index("vendor.acme.everything").unwrap();
    let symbols = SymbolTable::new();
    symbols.intern("one");
    symbols.intern("two");
    let mut writer = RecordingWriter::create(path, &kinds).unwrap();
    let mut totals = Totals::new(&kinds);
    let mut written = Vec::new();
    for (seq, &(rows, width, weight, lost_before, seed)) in batches.iter().enumerate() {
        let mut block = random_block(&kinds, rows, width, seed);
        block.weight = f64::from(weight);
        let account = &mut totals.kinds[kind];
        block.first_row = account.recorded + lost_before;
        account.delivered += u64::from(rows);
        account.lost += lost_before;
        account.recorded += u64::from(rows) + lost_before;
        let delivery = Delivery {
            kind,
            block,
            seq: seq as u64,
            lost_before,
        };
        writer.accept(&delivery, &symbols).unwrap();
        written.push(delivery);
    }
    writer.finish(serde_json::Value::Null, &totals).unwrap();
    written
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_rows_survive(batches in batches()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("any.lmrec");
        let written = write(&path, &batches);
        prop_assert_eq!(seen(&replayed(&path).unwrap()), seen(&written));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Reading damaged bytes may succeed, where the damage is in a value, or fail; it must end, and not panic.
    #[test]
    fn damaged_bytes_never_panic(
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in proptest::option::weighted(0.1, any::<prop::sample::Index>()),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("damaged.lmrec");
        write(&path, &[(3, 2, 8, 5, 1), (2, 1, 8, 0, 2)]);
        let mut bytes = std::fs::read(&path).unwrap();
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        std::fs::write(&path, &bytes).unwrap();
        if let Err(error) = replayed(&path) {
            prop_assert!(!error.to_string().contains("panicked"), "{}", error);
        }
    }
}
