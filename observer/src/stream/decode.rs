//! A batch's body to cells that can be read by row.
//!
//! The columns are known, so each buffer's size follows from the number of rows before it is decompressed: nothing is
//! allocated that the batch's own row count does not justify. Columns without a single cell are not decompressed at all.

use std::{fmt, io};

use super::encode::NOT_COMPRESSED;
use super::message::BatchMessage;
use super::schema::{Cell, Col, MAX_VARIABLE};

/// What is wrong with a batch whose checksum is right: its writer was not ours, or had a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Invalid {
    /// A buffer is not what its column needs.
    Buffer(Col),
    /// A cell is missing or out of its range.
    Cell(Col),
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Invalid::Buffer(col) => write!(f, "column {col} cannot be unpacked"),
            Invalid::Cell(col) => write!(f, "a cell of column {col} is missing or out of bounds"),
        }
    }
}

/// Which rows have a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Present {
    #[default]
    None,
    Some,
    All,
}

/// One column's buffers.
#[derive(Debug, Default)]
struct Buffers {
    present: Present,
    validity: Vec<u8>,
    offsets: Vec<u8>,
    data: Vec<u8>,
}

/// The cells of one batch; memory is kept from batch to batch.
pub(crate) struct Cells {
    zstd: zstd::bulk::Decompressor<'static>,
    columns: Vec<Buffers>,
}

impl Cells {
    /// No batch yet.
    pub(crate) fn new() -> io::Result<Cells> {
        let columns = Col::ALL.iter().map(|_| Buffers::default()).collect();
        Ok(Cells { zstd: zstd::bulk::Decompressor::new()?, columns })
    }

    /// Unpacks a batch's body.
    pub(crate) fn load(&mut self, batch: &BatchMessage, body: &[u8]) -> Result<(), Invalid> {
        let mut nodes = batch.nodes.iter();
        let mut buffers = batch.buffers.iter().map(|&(start, len)| body.get(start..start + len));
        for (&col, column) in Col::ALL.iter().zip(&mut self.columns) {
            let invalid = Invalid::Buffer(col);
            let mut unpack = |bytes: usize, into: &mut Vec<u8>| {
                let stored = buffers.next().flatten().ok_or(invalid)?;
                unpack(&mut self.zstd, stored, bytes, into).ok_or(invalid)
            };
            let &(length, nulls) = nodes.next().ok_or(invalid)?;
            if length != batch.rows {
                return Err(invalid);
            }
            column.present = match nulls {
                0 => Present::All,
                nulls if nulls == length => Present::None,
                _ => Present::Some,
            };
            // A size of 0 skips the buffer.
            let absent = column.present == Present::None;
            let rows = if absent { 0 } else { length };
            unpack(if column.present == Present::Some { rows.div_ceil(8) } else { 0 }, &mut column.validity)?;
            if let Cell::Uint(width) = col.cell() {
                unpack(rows * width, &mut column.data)?;
                continue;
            }
            unpack(if absent { 0 } else { (rows + 1) * 4 }, &mut column.offsets)?;
            let end = last_offset(&column.offsets);
            match col.cell() {
                Cell::List => {
                    let &(entries, nulls) = nodes.next().ok_or(invalid)?;
                    if nulls != 0 || end > entries || entries > MAX_VARIABLE / 8 {
                        return Err(invalid);
                    }
                    unpack(0, &mut Vec::new())?;
                    unpack(if absent { 0 } else { entries * 8 }, &mut column.data)?;
                }
                _ if end > MAX_VARIABLE => return Err(invalid),
                _ => unpack(end, &mut column.data)?,
            }
        }
        Ok(())
    }

    /// The cell of an integer column.
    #[inline]
    pub(crate) fn uint(&self, col: Col, row: usize) -> Option<u64> {
        let column = &self.columns[col as usize];
        if !column.has(row) {
            return None;
        }
        Some(match col.cell() {
            Cell::Uint(1) => u64::from(*column.data.get(row)?),
            Cell::Uint(2) => u64::from(u16::from_le_bytes(*column.data.as_chunks().0.get(row)?)),
            Cell::Uint(4) => u64::from(u32::from_le_bytes(*column.data.as_chunks().0.get(row)?)),
            _ => u64::from_le_bytes(*column.data.as_chunks().0.get(row)?),
        })
    }

    /// The cell of an integer column that a row of this kind must have.
    #[inline]
    pub(crate) fn required(&self, col: Col, row: usize) -> Result<u64, Invalid> {
        self.uint(col, row).ok_or(Invalid::Cell(col))
    }

    /// The text of a row that must have one.
    pub(crate) fn text(&self, col: Col, row: usize) -> Result<&str, Invalid> {
        self.slice(col, row, 1).and_then(|bytes| str::from_utf8(bytes).ok()).ok_or(Invalid::Cell(col))
    }

    /// The bytes of the list of a row that must have one.
    pub(crate) fn list(&self, col: Col, row: usize) -> Result<&[u8], Invalid> {
        self.slice(col, row, 8).ok_or(Invalid::Cell(col))
    }

    fn slice(&self, col: Col, row: usize, unit: usize) -> Option<&[u8]> {
        let column = &self.columns[col as usize];
        let offsets = column.offsets.as_chunks().0;
        let offset = |at: usize| offsets.get(at).map(|&bytes| u32::from_le_bytes(bytes) as usize);
        if !column.has(row) {
            return None;
        }
        column.data.get(offset(row)?.checked_mul(unit)?..offset(row + 1)?.checked_mul(unit)?)
    }
}

impl Buffers {
    #[inline]
    fn has(&self, row: usize) -> bool {
        match self.present {
            Present::All => true,
            Present::None => false,
            Present::Some => self.validity.get(row / 8).is_some_and(|byte| byte >> (row % 8) & 1 != 0),
        }
    }
}

/// The last offset, which is the size of the data.
fn last_offset(offsets: &[u8]) -> usize {
    offsets.as_chunks().0.last().map_or(0, |&bytes| u32::from_le_bytes(bytes) as usize)
}

/// Unpacks a buffer of which `bytes` bytes are expected; `None` when it holds another number of them.
fn unpack(zstd: &mut zstd::bulk::Decompressor<'static>, stored: &[u8], bytes: usize, into: &mut Vec<u8>) -> Option<()> {
    into.clear();
    if bytes == 0 {
        return Some(());
    }
    let (length, content) = stored.split_first_chunk::<8>()?;
    let length = i64::from_le_bytes(*length);
    if length == NOT_COMPRESSED {
        into.extend_from_slice(content.get(..bytes).filter(|_| content.len() == bytes)?);
        return Some(());
    }
    if usize::try_from(length) != Ok(bytes) {
        return None;
    }
    into.reserve_exact(bytes);
    (zstd.decompress_to_buffer(content, into).ok()? == bytes).then_some(())
}
