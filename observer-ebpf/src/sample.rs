//! Whether this stream keeps a folio ([`observer_common::sample`]). Global state is never asked about here.

use aya_ebpf::{macros::map, maps::Array};
use observer_common::sample;

use crate::{config::layout, read};

/// One in this many folios is kept. A map, since user space lowers the rate while the programs run.
#[map]
static SAMPLE: Array<u32> = Array::with_max_entries(1, 0);

/// Whether a folio belongs to the sample.
#[inline(always)]
pub(crate) fn kept(folio: u64, flags: u64) -> bool {
    let n = match SAMPLE.get(0) {
        Some(n) => *n,
        None => 1,
    };
    n <= 1 || sample::keeps(hash(folio, flags), n)
}

#[inline(always)]
fn hash(folio: u64, flags: u64) -> u32 {
    let mapping: u64 = read::member(folio, layout!(folio_mapping)).unwrap_or(0);
    // The address holds for what is anonymous in any way, lazily freed memory included.
    if mapping == 0 || mapping & 3 != 0 || read::is_set(flags, layout!(swapbacked_bit)) {
        return sample::of_address(read::number(folio));
    }
    let inode: u64 = read::member(mapping, layout!(mapping_host)).unwrap_or(0);
    let ino: u64 = read::member(inode, layout!(inode_ino)).unwrap_or(0);
    let index: u64 = read::member(folio, layout!(folio_index)).unwrap_or(0);
    sample::of_file(ino, index)
}
