//! Blocks as Arrow record batches.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, DictionaryArray, FixedSizeListArray, PrimitiveArray, RecordBatch,
    RecordBatchOptions, StringArray,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use lm_bench_plugin::{Block, ColumnBuf, ColumnDef, Data, ElementType, KindDef};

/// How symbols are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbols {
    /// As ids, while the table still grows.
    Ids,
    /// As dictionary, with the whole table as its values.
    Dictionary,
}

/// The Arrow type of a column's elements.
pub(super) fn element_type(element: ElementType, symbols: Symbols) -> DataType {
    match element {
        ElementType::U8 => DataType::UInt8,
        ElementType::U16 => DataType::UInt16,
        ElementType::U32 => DataType::UInt32,
        ElementType::U64 => DataType::UInt64,
        ElementType::I64 => DataType::Int64,
        ElementType::F32 => DataType::Float32,
        ElementType::F64 => DataType::Float64,
        ElementType::Sym if symbols == Symbols::Ids => DataType::UInt32,
        ElementType::Sym => DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8)),
    }
}

/// The Arrow schema of a kind whose lists have the given lengths; unit and meaning are field metadata.
pub(super) fn schema(kind: &KindDef, widths: &[u32], symbols: Symbols) -> Arc<Schema> {
    let fields = kind
        .columns
        .iter()
        .zip(widths)
        .map(|(column, &width)| field(column, width, symbols));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn field(column: &ColumnDef, width: u32, symbols: Symbols) -> Field {
    let element = element_type(column.element, symbols);
    let data_type = if column.list {
        DataType::FixedSizeList(item_field(element), list_size(width))
    } else {
        element
    };
    let metadata = [("unit", column.unit.as_ref()), ("about", column.about.trim())];
    Field::new(column.name.as_ref(), data_type, false)
        .with_metadata(metadata.map(|(key, value)| (key.to_owned(), value.to_owned())))
}

fn item_field(element: DataType) -> Arc<Field> {
    Arc::new(Field::new_list_field(element, false))
}

/// Recorders refuse lists that do not fit by far.
fn list_size(width: u32) -> i32 {
    i32::try_from(width).unwrap_or(i32::MAX)
}

/// Values per row of each column.
pub(super) fn widths(block: &Block) -> Vec<u32> {
    (0..block.kind().columns.len())
        .map(|at| block.column(at).width)
        .collect()
}

/// A block as a record batch with symbols as ids.
pub(super) fn to_batch(block: &Block, schema: &Arc<Schema>) -> Result<RecordBatch, ArrowError> {
    let mut arrays = Vec::with_capacity(schema.fields().len());
    for (at, column) in block.kind().columns.iter().enumerate() {
        let data = block.column(at);
        let values = to_array(data.data);
        arrays.push(if column.list {
            in_lists(values, data.width)?
        } else {
            values
        });
    }
    let rows = RecordBatchOptions::new().with_row_count(Some(block.rows() as usize));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &rows)
}

fn to_array(data: Data<'_>) -> ArrayRef {
    fn array<T: ArrowPrimitiveType>(values: &[T::Native]) -> ArrayRef {
        Arc::new(PrimitiveArray::<T>::from_iter_values(values.iter().copied()))
    }
    match data {
        Data::U8(values) => array::<UInt8Type>(values),
        Data::U16(values) => array::<UInt16Type>(values),
        Data::U32(values) => array::<UInt32Type>(values),
        Data::U64(values) => array::<UInt64Type>(values),
        Data::I64(values) => array::<Int64Type>(values),
        Data::F32(values) => array::<Float32Type>(values),
        Data::F64(values) => array::<Float64Type>(values),
    }
}

fn in_lists(values: ArrayRef, width: u32) -> Result<ArrayRef, ArrowError> {
    let item = item_field(values.data_type().clone());
    Ok(Arc::new(FixedSizeListArray::try_new(
        item,
        list_size(width),
        values,
        None,
    )?))
}

/// Replaces symbol ids by a dictionary whose values are the whole symbol table, so that keys are ids.
pub(super) fn with_dictionary(
    batch: &RecordBatch,
    kind: &KindDef,
    texts: &StringArray,
    schema: &Arc<Schema>,
) -> Result<RecordBatch, ArrowError> {
    let mut arrays = Vec::with_capacity(batch.num_columns());
    for (column, array) in kind.columns.iter().zip(batch.columns()) {
        arrays.push(match (column.element, column.list) {
            (ElementType::Sym, false) => keyed(array, texts)?,
            (ElementType::Sym, true) => {
                let lists = array.as_fixed_size_list();
                in_lists(keyed(lists.values(), texts)?, lists.value_length().unsigned_abs())?
            }
            _ => Arc::clone(array),
        });
    }
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &rows)
}

fn keyed(ids: &ArrayRef, texts: &StringArray) -> Result<ArrayRef, ArrowError> {
    let keys = ids.as_primitive::<UInt32Type>().clone();
    Ok(Arc::new(DictionaryArray::try_new(keys, Arc::new(texts.clone()))?))
}

/// Whether an Arrow file has a kind's columns, whatever its field metadata say.
///
/// # Errors
/// A text naming the first column that differs.
pub(super) fn check_schema(kind: &KindDef, widths: &[u32], schema: &Schema) -> Result<(), String> {
    if schema.fields().len() != kind.columns.len() {
        return Err(format!(
            "{} columns, expected {}",
            schema.fields().len(),
            kind.columns.len()
        ));
    }
    for ((column, &width), field) in kind.columns.iter().zip(widths).zip(schema.fields()) {
        let element = element_type(column.element, Symbols::Dictionary);
        let fits = match field.data_type() {
            DataType::FixedSizeList(item, size) => {
                column.list && *size == list_size(width) && *item.data_type() == element
            }
            other => !column.list && *other == element,
        };
        if *field.name() != column.name || !fits {
            return Err(format!(
                "column {} of type {} where {} of type {}{} belongs",
                field.name(),
                field.data_type(),
                column.name,
                if column.list { "list of " } else { "" },
                column.element.name()
            ));
        }
    }
    Ok(())
}

/// A record batch of a checked schema as a block. Symbols get the ids that `intern` gives their texts.
///
/// # Errors
/// A text naming the column that is not usable.
pub(super) fn to_block(
    batch: &RecordBatch,
    kind: &Arc<KindDef>,
    intern: &dyn Fn(&str) -> u32,
) -> Result<Block, String> {
    let mut columns = Vec::with_capacity(batch.num_columns());
    for (column, array) in kind.columns.iter().zip(batch.columns()) {
        let wrong = |what: &str| format!("column {}: {what}", column.name);
        let (width, values) = match array.as_fixed_size_list_opt() {
            Some(lists) if lists.null_count() == 0 => {
                let from = lists.value_offset_at(0);
                let width = lists.value_length().unsigned_abs();
                (width, lists.values().slice(from, lists.len() * width as usize))
            }
            Some(_) => return Err(wrong("it has nulls")),
            None => (1, Arc::clone(array)),
        };
        if values.null_count() > 0 {
            return Err(wrong("it has nulls"));
        }
        columns.push((width, to_column(&values, column.element, intern).map_err(wrong)?));
    }
    let rows = u32::try_from(batch.num_rows()).map_err(|_| "a batch has more than 2^32 rows".to_owned())?;
    Block::from_columns(Arc::clone(kind), rows, columns)
}

fn to_column(
    values: &ArrayRef,
    element: ElementType,
    intern: &dyn Fn(&str) -> u32,
) -> Result<ColumnBuf, &'static str> {
    fn plain<T: ArrowPrimitiveType>(values: &ArrayRef) -> Result<Vec<T::Native>, &'static str> {
        let values = values.as_primitive_opt::<T>().ok_or("its type is another one")?;
        Ok(values.values().to_vec())
    }
    Ok(match element {
        ElementType::U8 => ColumnBuf::U8(plain::<UInt8Type>(values)?),
        ElementType::U16 => ColumnBuf::U16(plain::<UInt16Type>(values)?),
        ElementType::U32 => ColumnBuf::U32(plain::<UInt32Type>(values)?),
        ElementType::U64 => ColumnBuf::U64(plain::<UInt64Type>(values)?),
        ElementType::I64 => ColumnBuf::I64(plain::<Int64Type>(values)?),
        ElementType::F32 => ColumnBuf::F32(plain::<Float32Type>(values)?),
        ElementType::F64 => ColumnBuf::F64(plain::<Float64Type>(values)?),
        ElementType::Sym => ColumnBuf::U32(symbol_ids(values, intern)?),
    })
}

fn symbol_ids(values: &ArrayRef, intern: &dyn Fn(&str) -> u32) -> Result<Vec<u32>, &'static str> {
    let dictionary = values
        .as_dictionary_opt::<UInt32Type>()
        .ok_or("its type is another one")?;
    let texts = dictionary
        .values()
        .as_string_opt::<i32>()
        .ok_or("its dictionary holds no texts")?;
    let mut ids = Vec::with_capacity(dictionary.len());
    let mut last = None;
    for &key in dictionary.keys().values() {
        let id = match last {
            Some((known, id)) if known == key => id,
            _ if (key as usize) < texts.len() && texts.is_valid(key as usize) => {
                intern(texts.value(key as usize))
            }
            _ => return Err("a symbol is not in the dictionary"),
        };
        last = Some((key, id));
        ids.push(id);
    }
    Ok(ids)
}
