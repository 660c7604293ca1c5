//! The columns of a batch in memory that both processes see: written by the host, read-only in the child.
#![allow(
    unsafe_code,
    reason = "this module is the dylib edge: mapping memory is unsafe"
)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;

use lm_bench_plugin::{ColumnData, Data, ElementType};
use memmap2::{Mmap, MmapOptions};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use serde::{Deserialize, Serialize};

/// Columns start at multiples of this, in bytes: a cache line, and more than any element needs.
const ALIGNMENT: u64 = 64;

/// Where a column lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ColumnPlace {
    /// First byte.
    offset: u64,
    /// Length in bytes.
    bytes: u64,
    /// Elements per row.
    width: u32,
    element: ElementType,
}

/// The host's end.
#[derive(Debug)]
pub(super) struct SharedColumns {
    file: File,
    size: u64,
}

impl SharedColumns {
    /// Memory without content. It can grow and never shrink, so that a mapping of it stays valid.
    pub(super) fn new() -> io::Result<Self> {
        let memory = memfd_create(
            "lm-bench-columns",
            MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
        )?;
        fcntl_add_seals(&memory, SealFlags::SHRINK)?;
        Ok(Self {
            file: File::from(memory),
            size: 0,
        })
    }

    /// A handle of the same memory for reading.
    pub(super) fn share(&self) -> io::Result<File> {
        File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }

    /// Puts columns in place of those before.
    pub(super) fn put(&mut self, columns: &[ColumnData<'_>]) -> io::Result<Vec<ColumnPlace>> {
        let mut places = Vec::with_capacity(columns.len());
        let mut end = 0_u64;
        for column in columns {
            let (element, bytes) = bytes_of(&column.data);
            let offset = end.next_multiple_of(ALIGNMENT);
            end = offset + bytes.len() as u64;
            if end > self.size {
                let size = end.next_power_of_two().max(1 << 16);
                self.file.set_len(size)?;
                self.size = size;
            }
            self.file.write_all_at(bytes, offset)?;
            places.push(ColumnPlace {
                offset,
                bytes: bytes.len() as u64,
                width: column.width,
                element,
            });
        }
        Ok(places)
    }
}

fn bytes_of<'a>(data: &Data<'a>) -> (ElementType, &'a [u8]) {
    match *data {
        Data::U8(values) => (ElementType::U8, values),
        Data::U16(values) => (ElementType::U16, bytemuck::cast_slice(values)),
        Data::U32(values) => (ElementType::U32, bytemuck::cast_slice(values)),
        Data::U64(values) => (ElementType::U64, bytemuck::cast_slice(values)),
        Data::I64(values) => (ElementType::I64, bytemuck::cast_slice(values)),
        Data::F32(values) => (ElementType::F32, bytemuck::cast_slice(values)),
        Data::F64(values) => (ElementType::F64, bytemuck::cast_slice(values)),
    }
}

/// The child's end.
#[derive(Debug)]
pub(super) struct MappedColumns {
    file: File,
    map: Option<Mmap>,
    /// End of the columns that were read.
    end: u64,
}

impl MappedColumns {
    /// Sees the memory behind a handle.
    pub(super) fn new(file: File) -> Self {
        Self {
            file,
            map: None,
            end: 0,
        }
    }

    /// Bytes of it that are in this process's memory: those that columns were read from.
    pub(super) fn resident(&self) -> u64 {
        self.end
    }

    fn mapped(&self) -> u64 {
        self.map.as_ref().map_or(0, |map| map.len() as u64)
    }

    /// The columns at some places.
    ///
    /// # Errors
    /// When a place is not inside the memory or not aligned for its elements.
    pub(super) fn get(&mut self, places: &[ColumnPlace]) -> io::Result<Vec<ColumnData<'_>>> {
        let ends = places
            .iter()
            .map(|place| place.offset.saturating_add(place.bytes));
        let end = ends.max().unwrap_or(0);
        if end > self.mapped() {
            // Dropped first: the new mapping holds the old one's content.
            self.map = None;
            // SAFETY: the memory is sealed against shrinking, and the host writes to it only between two calls. The
            // plugin's code could write to it as it could to all memory of its process.
            self.map = Some(unsafe { MmapOptions::new().map(&self.file) }?);
        }
        self.end = self.end.max(end.min(self.mapped()));
        let memory: &[u8] = self.map.as_deref().unwrap_or_default();
        places.iter().map(|place| view(memory, place)).collect()
    }
}

fn view<'a>(memory: &'a [u8], place: &ColumnPlace) -> io::Result<ColumnData<'a>> {
    fn cast<T: bytemuck::AnyBitPattern>(bytes: &[u8]) -> io::Result<&[T]> {
        bytemuck::try_cast_slice(bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("a column {error}")))
    }
    let range = place.offset as usize..place.offset.saturating_add(place.bytes) as usize;
    let bytes = memory
        .get(range)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a column outside the shared memory"))?;
    let data = match place.element {
        ElementType::U8 => Data::U8(bytes),
        ElementType::U16 => Data::U16(cast(bytes)?),
        ElementType::U32 | ElementType::Sym => Data::U32(cast(bytes)?),
        ElementType::U64 => Data::U64(cast(bytes)?),
        ElementType::I64 => Data::I64(cast(bytes)?),
        ElementType::F32 => Data::F32(cast(bytes)?),
        ElementType::F64 => Data::F64(cast(bytes)?),
    };
    Ok(ColumnData {
        width: place.width,
        data,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_seen_as_they_were_put_and_may_grow() {
        let mut ours = SharedColumns::new().expect("memory");
        let mut theirs = MappedColumns::new(ours.share().expect("a handle"));
        for rows in [1, 3, 100_000] {
            let bytes: Vec<u8> = (0..rows).map(|at| at as u8).collect();
            let halves: Vec<u16> = (0..rows).map(|at| at as u16).collect();
            let words: Vec<u32> = (0..rows).collect();
            let longs: Vec<u64> = (0..u64::from(rows)).collect();
            let signed: Vec<i64> = (0..i64::from(rows)).map(|at| -at).collect();
            let singles: Vec<f32> = words.iter().map(|at| *at as f32 / 3.0).collect();
            let doubles: Vec<f64> = words.iter().map(|at| f64::from(*at) / 3.0).collect();
            let data = [
                Data::U8(&bytes),
                Data::U16(&halves),
                Data::U32(&words),
                Data::U64(&longs),
                Data::I64(&signed),
                Data::F32(&singles),
                Data::F64(&doubles),
            ];
            let columns = data.map(|data| ColumnData { width: 1, data });
            let places = ours.put(&columns).expect("put");
            assert_eq!(theirs.get(&places).expect("seen"), columns, "{rows} rows");
        }
    }

    #[test]
    fn places_outside_the_memory_are_refused() {
        let mut ours = SharedColumns::new().expect("memory");
        let mut theirs = MappedColumns::new(ours.share().expect("a handle"));
        let column = ColumnData {
            width: 1,
            data: Data::U64(&[1, 2]),
        };
        let place = ours.put(&[column]).expect("put")[0];
        for wrong in [
            ColumnPlace { offset: 1, ..place },
            ColumnPlace { bytes: 15, ..place },
            ColumnPlace {
                offset: u64::MAX,
                ..place
            },
            ColumnPlace {
                bytes: u64::MAX,
                ..place
            },
        ] {
            assert!(theirs.get(&[wrong]).is_err(), "{wrong:?}");
        }
    }
}
