//! Files to read: made when absent, and out of the page cache before a run.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use memmap2::Mmap;
use observer::simulate::random::Random;
use rustix::fs::{Advice, fadvise};

use crate::PAGE;

/// Opens a file of that many pages for reading, none of them cached. Makes it when it is absent or of another size.
pub fn open(path: &Path, pages: u64) -> Result<File> {
    let name = || path.display().to_string();
    let bytes = pages.checked_mul(PAGE).context("so many pages are no file")?;
    if fs::metadata(path).map(|meta| meta.len()).ok() != Some(bytes) {
        make(path, pages).with_context(name)?;
    }
    let file = File::open(path).with_context(name)?;
    // Pages that someone else read before would be charged to them, and the run would not start cold.
    fadvise(&file, 0, None, Advice::DontNeed).with_context(name)?;
    Ok(file)
}

fn make(path: &Path, pages: u64) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = BufWriter::with_capacity(1 << 20, OpenOptions::new().write(true).create(true).truncate(true).open(path)?);
    let mut page = vec![0; usize::try_from(PAGE)?];
    for index in 0..pages {
        // Real blocks with their own contents: a hole would be read without the disk.
        page[..8].copy_from_slice(&stamp(index).to_le_bytes());
        file.write_all(&page)?;
    }
    file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?;
    Ok(())
}

/// What the first bytes of a page say.
fn stamp(index: u64) -> u64 {
    Random::new(index).bits()
}

/// Checks that a page holds what was written to it.
pub fn check(page: &[u8], index: u64) -> Result<()> {
    ensure!(page.get(..8) == Some(&stamp(index).to_le_bytes()), "page {index} of the file does not hold what was written to it");
    Ok(())
}

/// Maps a file for reading.
pub fn map(file: &File) -> Result<Mmap> {
    #[expect(unsafe_code, reason = "a mapping is only sound while nobody shortens the file; it is the workload's own")]
    // SAFETY: the workload made the file for itself and nothing writes to it during the run.
    let map = unsafe { Mmap::map(file) };
    map.context("map the file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_made_kept_and_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub/file");
        let first = open(&path, 3).unwrap();
        let map = map(&first).unwrap();
        assert_eq!(map.len(), 3 * 4096);
        for index in 0..3 {
            check(&map[usize::try_from(index * PAGE).unwrap()..], index).unwrap();
        }
        assert!(check(&map, 1).is_err());
        let made = fs::metadata(&path).unwrap().modified().unwrap();
        open(&path, 3).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), made);
        assert_eq!(open(&path, 2).unwrap().metadata().unwrap().len(), 2 * 4096);
    }
}
