//! Large folios that are made, and then split or partly removed in each of the ways a process can bring about.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use memmap2::MmapMut;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::mm::{Advice, madvise};

use crate::PAGE;

/// Pages of memory between two places that are treated alike: what a folio of 64 KiB holds.
const FOLIO: usize = 16;

/// Pages of a file between two holes: what readahead reads at once, and so the largest folio it makes.
const STRIDE: u64 = 32;

/// Reads a file from beginning to end as readahead likes it: large folios, where the file system has them.
///
/// # Errors
/// When the file cannot be read.
pub fn read(path: &Path) -> Result<()> {
    let mut file = File::open(path).with_context(|| path.display().to_string())?;
    let mut bytes = vec![0; 16 * usize::try_from(PAGE)?];
    while file.read(&mut bytes)? > 0 {}
    Ok(())
}

/// Makes a hole of one page in every stretch of the file, and cuts off its last eighth in the middle of a stretch: the page
/// cache splits the large folios around.
///
/// # Errors
/// When the file system makes no holes.
pub fn cut(path: &Path, pages: u64) -> Result<()> {
    let file = OpenOptions::new().write(true).open(path).with_context(|| path.display().to_string())?;
    let end = pages - pages / 8 - 3;
    for first in (0..end - STRIDE).step_by(usize::try_from(STRIDE)?) {
        // Another place of the stretch each time, so that splits of every shape come.
        let page = first + first / STRIDE * 7 % STRIDE;
        fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, page * PAGE, PAGE).context("make a hole")?;
    }
    file.set_len(end * PAGE).context("cut the file")
}

/// Memory in folios of 64 KiB, where `hugepages-64kB/enabled` says so.
///
/// # Errors
/// When there is not so much memory.
pub fn memory(pages: usize) -> Result<MmapMut> {
    ensure!(pages.is_multiple_of(4 * FOLIO), "{pages} pages cannot be treated in four ways");
    let bytes = pages * usize::try_from(PAGE)?;
    let mut memory = MmapMut::map_anon(bytes).context("memory")?;
    for (number, page) in memory.chunks_exact_mut(usize::try_from(PAGE)?).enumerate() {
        page[..8].copy_from_slice(&(number as u64).to_le_bytes());
    }
    Ok(memory)
}

/// Treats each quarter of the memory in its own way: part of each folio is told to be cold, paged out, told to be free, given back.
/// All but the last split the folio; that one leaves it whole, for reclaim to split.
///
/// # Errors
/// When the kernel refuses the advice.
pub fn advise(memory: &mut MmapMut) -> Result<()> {
    let page = usize::try_from(PAGE)?;
    let quarter = memory.len() / 4;
    let ways = [(Advice::LinuxCold, 1), (Advice::LinuxPageOut, 1), (Advice::LinuxFree, FOLIO / 2), (Advice::LinuxDontNeed, FOLIO / 2)];
    for (part, (advice, pages)) in memory.chunks_exact_mut(quarter).zip(ways) {
        for folio in part.chunks_exact_mut(FOLIO * page) {
            let some = &mut folio[3 * page..(3 + pages) * page];
            #[expect(unsafe_code, reason = "advice is given on addresses")]
            // SAFETY: whole pages of anonymous memory that nobody else holds; what the advice lets the kernel drop reads as zeros.
            unsafe { madvise(some.as_mut_ptr().cast(), some.len(), advice) }.with_context(|| format!("{advice:?}"))?;
        }
    }
    Ok(())
}

/// Has the kernel reclaim that many pages from this process' cgroup: folios with parts given back are split by that.
///
/// # Errors
/// When the cgroup has no such file. That less was reclaimed than asked for is none.
pub fn reclaim(folder: &Path, pages: u64) -> Result<()> {
    let path = folder.join("memory.reclaim");
    match fs::write(&path, (pages * PAGE).to_string()) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(()),
        done => done.with_context(|| path.display().to_string()),
    }
}
