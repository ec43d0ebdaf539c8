//! A batch's columns while they are filled: Arrow's buffers, little endian, ready to be compressed.
//!
//! Most rows fill a third of the columns, so a column is brought up to the current row only when a row has a cell for it.
//! A cell that is null holds the one before it again: Arrow leaves its content open, and a repetition costs zstd nothing
//! where zeros between values cost up to a third of the column.

use super::schema::{Cell, Col};

/// One column under construction.
#[derive(Debug)]
pub(crate) struct Column {
    col: Col,
    /// Cells, or the characters or entries of cells of varying length.
    data: Vec<u8>,
    /// End of each cell in `data` in characters or entries, after a leading 0; empty for cells of fixed width.
    offsets: Vec<u8>,
    /// Bit per row, least significant first.
    validity: Vec<u8>,
    rows: usize,
    filled: usize,
}

impl Column {
    fn new(col: Col) -> Column {
        let mut column = Column { col, data: Vec::new(), offsets: Vec::new(), validity: Vec::new(), rows: 0, filled: 0 };
        column.clear();
        column
    }

    fn clear(&mut self) {
        self.data.clear();
        self.offsets.clear();
        if !matches!(self.col.cell(), Cell::Uint(_)) {
            self.offsets.extend_from_slice(&0u32.to_le_bytes());
        }
        self.validity.clear();
        (self.rows, self.filled) = (0, 0);
    }

    /// Adds nulls until there are so many rows.
    fn pad(&mut self, rows: usize) {
        let missing = rows - self.rows;
        if missing == 0 {
            return;
        }
        match self.col.cell() {
            Cell::Uint(width) if self.data.is_empty() => self.data.resize(rows * width, 0),
            Cell::Uint(width) => repeat_tail(&mut self.data, width, missing),
            Cell::Utf8 | Cell::List => repeat_tail(&mut self.offsets, 4, missing),
        }
        self.rows = rows;
    }

    /// Marks a cell of `row` as present; the caller adds its content.
    fn present(&mut self, row: usize) {
        self.pad(row);
        if self.col.nullable() {
            self.validity.resize(row / 8 + 1, 0);
            self.validity[row / 8] |= 1 << (row % 8);
        }
        self.rows += 1;
        self.filled += 1;
    }

    /// Closes a cell of varying length; `unit` is the bytes of an entry.
    fn close(&mut self, unit: usize) {
        // Bounded far below 4 GiB by the writer's flush.
        let end = (self.data.len() / unit) as u32;
        self.offsets.extend_from_slice(&end.to_le_bytes());
    }

    /// Rows without a cell.
    pub(crate) fn nulls(&self) -> usize {
        self.rows - self.filled
    }

    /// The validity bitmap; empty when all cells are present.
    pub(crate) fn validity(&self) -> &[u8] {
        if self.nulls() == 0 { &[] } else { &self.validity }
    }

    /// Cells, or what their offsets point into.
    pub(crate) fn data(&self) -> &[u8] {
        &self.data
    }

    /// Offsets of cells of varying length.
    pub(crate) fn offsets(&self) -> &[u8] {
        &self.offsets
    }
}

/// Repeats the last `width` bytes `times` times; doubles what it copies, so a long run is a few copies.
fn repeat_tail(bytes: &mut Vec<u8>, width: usize, times: usize) {
    let run = bytes.len() - width;
    let mut missing = width * times;
    while missing > 0 {
        let copy = missing.min(bytes.len() - run);
        bytes.extend_from_within(run..run + copy);
        missing -= copy;
    }
}

/// All columns of a batch under construction.
#[derive(Debug)]
pub(crate) struct Columns {
    columns: Vec<Column>,
    rows: usize,
}

impl Columns {
    /// None filled.
    pub(crate) fn new() -> Columns {
        Columns { columns: Col::ALL.iter().map(|&col| Column::new(col)).collect(), rows: 0 }
    }

    /// Complete rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes in cells of varying length.
    pub(crate) fn variable_bytes(&self) -> usize {
        self.columns[Col::Name as usize].data.len().max(self.columns[Col::Values as usize].data.len())
    }

    /// Sets a cell of the current row.
    #[inline]
    pub(crate) fn set<const N: usize>(&mut self, col: Col, cell: [u8; N]) {
        debug_assert_eq!(col.cell(), Cell::Uint(N));
        let column = &mut self.columns[col as usize];
        column.present(self.rows);
        column.data.extend_from_slice(&cell);
    }

    /// Sets the text of the current row.
    pub(crate) fn set_text(&mut self, col: Col, text: &str) {
        let column = &mut self.columns[col as usize];
        column.present(self.rows);
        column.data.extend_from_slice(text.as_bytes());
        column.close(1);
    }

    /// Sets the list of the current row.
    pub(crate) fn set_list(&mut self, col: Col, entries: impl IntoIterator<Item = u64>) {
        let column = &mut self.columns[col as usize];
        column.present(self.rows);
        for entry in entries {
            column.data.extend_from_slice(&entry.to_le_bytes());
        }
        column.close(8);
    }

    /// Ends the current row.
    pub(crate) fn end_row(&mut self) {
        self.rows += 1;
    }

    /// The columns, each brought to the same number of rows.
    pub(crate) fn complete(&mut self) -> &[Column] {
        for column in &mut self.columns {
            column.pad(self.rows);
            if column.col.nullable() {
                column.validity.resize(self.rows.div_ceil(8), 0);
            }
        }
        &self.columns
    }

    /// Starts the next batch, keeping the memory.
    pub(crate) fn clear(&mut self) {
        self.columns.iter_mut().for_each(Column::clear);
        self.rows = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_cells_repeat_the_one_before() {
        let mut columns = Columns::new();
        for row in 0..9u64 {
            if row == 2 || row == 6 {
                columns.set(Col::Folio, row.to_le_bytes());
                columns.set_text(Col::Name, "ab");
            }
            columns.end_row();
        }
        let complete = columns.complete();
        let folio = &complete[Col::Folio as usize];
        let (cells, _) = folio.data().as_chunks();
        assert_eq!(cells.iter().map(|&cell| u64::from_le_bytes(cell)).collect::<Vec<_>>(), [0, 0, 2, 2, 2, 2, 6, 6, 6]);
        assert_eq!((folio.nulls(), folio.validity()), (7, &[0b0100_0100, 0][..]));
        let name = &complete[Col::Name as usize];
        let (offsets, _) = name.offsets().as_chunks();
        assert_eq!(offsets.iter().map(|&end| u32::from_le_bytes(end)).collect::<Vec<_>>(), [0, 0, 0, 2, 2, 2, 2, 4, 4, 4]);
        assert_eq!(name.data(), b"abab");
    }
}
