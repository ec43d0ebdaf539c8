//! Which page frames a machine has, and where their struct pages are.

use std::ops::Range;

use anyhow::{Context, Result, ensure};

/// Frames of one machine at most: 16 TiB of 4 KiB pages. More is no machine, but a file that was read wrongly.
const MAX_FRAMES: u64 = 1 << 32;

/// How to find the struct page of every frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frames {
    /// Address of frame 0's struct page.
    pub vmemmap: u64,
    /// Bytes of a struct page.
    pub page_bytes: u64,
    /// Frames of the zones, ascending, not overlapping; holes inside are possible.
    pub ranges: Vec<Range<u64>>,
}

impl Frames {
    /// From the kernel's `vmemmap_base` and the text of /proc/zoneinfo.
    ///
    /// # Errors
    /// When something does not look like what it should be: nothing is guessed.
    pub fn new(vmemmap: u64, page_bytes: u64, zoneinfo: &str) -> Result<Self> {
        // The upper half of the address space, and its own mapping is made of huge pages.
        ensure!(vmemmap >> 47 == (1 << 17) - 1 || vmemmap >> 56 == 0xff, "vmemmap_base holds {vmemmap:#x}, which is no kernel address");
        ensure!(vmemmap.is_multiple_of(1 << 21), "vmemmap_base holds {vmemmap:#x}, which does not begin a huge page");
        ensure!((32..=256).contains(&page_bytes), "a struct page of {page_bytes} bytes is unknown");
        let ranges = ranges(zoneinfo)?;
        let frames: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        ensure!(frames <= MAX_FRAMES, "/proc/zoneinfo tells of {frames} page frames");
        Ok(Self { vmemmap, page_bytes, ranges })
    }

    /// How many frames there are.
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }
}

/// x86-64 begins the map of struct pages at a multiple of this, wherever it puts it.
const PLACED_AT: u64 = 1 << 30;

/// Where the frames are, or what is needed to tell it as soon as one folio's address is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The kernel told.
    At(Frames),
    /// It hides its symbols of data.
    Unplaced(Unplaced),
}

impl Place {
    /// Bytes of a struct page.
    pub fn page_bytes(&self) -> u64 {
        match self {
            Self::At(frames) => frames.page_bytes,
            Self::Unplaced(frames) => frames.page_bytes,
        }
    }
}

/// Frames whose struct pages all lie in the same [`PLACED_AT`] bytes: the address of any of them tells where they begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplaced {
    page_bytes: u64,
    ranges: Vec<Range<u64>>,
}

impl Unplaced {
    /// From the text of /proc/zoneinfo.
    ///
    /// # Errors
    /// When one address would not tell.
    pub fn new(page_bytes: u64, zoneinfo: &str) -> Result<Self> {
        ensure!(std::env::consts::ARCH == "x86_64", "where this machine's map of struct pages begins is unknown");
        ensure!(page_bytes.is_power_of_two() && page_bytes >= 32, "a struct page of {page_bytes} bytes is unknown");
        let ranges = ranges(zoneinfo)?;
        let end = ranges.last().map_or(0, |range| range.end);
        ensure!(end <= PLACED_AT / page_bytes, "this machine has page frames up to {end}, more than one address tells about");
        Ok(Self { page_bytes, ranges })
    }

    /// The frames, one of which holds this folio.
    ///
    /// # Errors
    /// When none of them does.
    pub fn around(&self, folio: u64) -> Result<Frames> {
        let vmemmap = folio & !(PLACED_AT - 1);
        let frame = (folio - vmemmap) / self.page_bytes;
        ensure!(
            folio.is_multiple_of(self.page_bytes) && self.ranges.iter().any(|range| range.contains(&frame)),
            "a folio at {folio:#x} is in none of this machine's page frames"
        );
        Ok(Frames { vmemmap, page_bytes: self.page_bytes, ranges: self.ranges.clone() })
    }
}

/// The zones that have memory.
fn ranges(zoneinfo: &str) -> Result<Vec<Range<u64>>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    let (mut spanned, mut present) = (0, 0);
    for line in zoneinfo.lines() {
        let line = line.trim();
        let value = |name: &str| line.strip_prefix(name).and_then(|rest| rest.trim().parse::<u64>().ok());
        if line.starts_with("Node ") {
            (spanned, present) = (0, 0);
        } else if let Some(pages) = value("spanned ") {
            spanned = pages;
        } else if let Some(pages) = value("present ") {
            present = pages;
        } else if let Some(start) = value("start_pfn:")
            && present > 0
        {
            ranges.push(start..start.checked_add(spanned).context("/proc/zoneinfo tells of a zone without end")?);
        }
    }
    ensure!(!ranges.is_empty(), "/proc/zoneinfo tells of no page frames");
    ranges.sort_by_key(|range| range.start);
    // Nodes may interleave: a frame is looked at once.
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    Ok(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZONEINFO: &str = "\
Node 0, zone      DMA
  per-node stats
      nr_inactive_anon 27
  pages free     2816
        min      68
        spanned  4095
        present  3998
        managed  3840
  pagesets
    cpu: 0
  start_pfn:           1
Node 0, zone    DMA32
        spanned  1044480
        present  258014
  start_pfn:           4096
Node 0, zone   Normal
        spanned  0
        present  0
  start_pfn:           0
Node 1, zone   Normal
        spanned  4096
        present  4096
  start_pfn:           2097152
";
    const BASE: u64 = 0xffff_ea00_0000_0000;

    #[test]
    fn zones_with_memory_are_joined_and_empty_ones_left_out() {
        let frames = Frames::new(BASE, 64, ZONEINFO).unwrap();
        assert_eq!(frames.ranges, [1..1_048_576, 2_097_152..2_101_248]);
        assert_eq!(frames.count(), 1_048_575 + 4096);
    }

    #[test]
    fn one_folio_tells_where_few_frames_begin() {
        let text = ZONEINFO.replace("start_pfn:           2097152", "start_pfn:           1200000");
        let (unplaced, told) = (Unplaced::new(64, &text).unwrap(), Frames::new(BASE, 64, &text).unwrap());
        for frame in [1, 5000, 1_204_095] {
            assert_eq!(unplaced.around(BASE + frame * 64).unwrap(), told);
        }
        for folio in [BASE + 0x1_0040 + 32, BASE, BASE + 1_100_000 * 64, BASE + (1 << 30)] {
            assert!(unplaced.around(folio).is_err(), "{folio:#x}");
        }
        let large = ZONEINFO.replace("2097152", "16777216");
        assert!(Unplaced::new(64, &large).is_err(), "its map is larger than a gigabyte");
    }

    #[test]
    fn what_is_no_memory_map_is_refused() {
        for (base, bytes, text) in [(0, 64, ZONEINFO), (BASE + 64, 64, ZONEINFO), (BASE, 8, ZONEINFO), (BASE, 64, "Node 0, zone DMA")] {
            assert!(Frames::new(base, bytes, text).is_err(), "{base:#x} {bytes}");
        }
        let endless = ZONEINFO.replace("spanned  4095", "spanned  18446744073709551615");
        assert!(Frames::new(BASE, 64, &endless).is_err());
    }
}
