//! Which folios a sampled stream keeps: by a hash of what stays the same for a whole residency, so that a kept folio
//! keeps all of its events. The sets are nested: what 1/64 keeps, 1/16 keeps too.

/// Hash of a page of a file: survives eviction, so that refaults belong to the same sample.
#[inline(always)]
pub fn of_file(ino: u64, index: u64) -> u32 {
    mix(ino.rotate_left(32) ^ index)
}

/// Hash of a folio that is no page of a file: by where it is, which holds for a residency only.
#[inline(always)]
pub fn of_address(folio: u64) -> u32 {
    // A struct page is 64 bytes: the lowest bits say nothing.
    mix(folio >> 6)
}

/// Whether a sample of one in `n` keeps it; 0 and 1 keep all.
#[inline(always)]
pub fn keeps(hash: u32, n: u32) -> bool {
    n <= 1 || (hash as u64 * n as u64) >> 32 == 0
}

/// Whether a range of a file may touch a folio that a sample of one in `n` keeps, where the folios that reach into the block
/// of its first page ([`block_of`]) are of these orders, a bit for each. A folio is chosen by its first page: one that begins
/// within the range counts, and every place where one that reaches into it may begin. Long ranges are kept: they tell of
/// many pages at once.
#[inline(always)]
pub fn keeps_range(ino: u64, first: u64, last: u64, n: u32, orders: u32) -> bool {
    let more = last.wrapping_sub(first);
    if n <= 1 || more >= RANGE_MAX {
        return true;
    }
    for page in 1..RANGE_MAX {
        if page <= more && keeps(of_file(ino, first + page), n) {
            return true;
        }
    }
    for order in 0..=ORDER_MAX {
        if orders >> order & 1 != 0 && keeps(of_file(ino, first >> order << order), n) {
            return true;
        }
    }
    false
}

/// Pages of a range that are asked about one by one.
const RANGE_MAX: u64 = 4;

/// A folio of the page cache is no larger than what one page table maps: 2^9 pages of 4 KiB.
pub const ORDER_MAX: u32 = 9;

/// Hash of the block that a page of a file lies in: as large as the largest folio, so that each folio lies in one.
#[inline(always)]
pub fn block_of(ino: u64, index: u64) -> u32 {
    of_file(ino, index >> ORDER_MAX)
}

/// Every bit of the value moves about half of the result's (a multiply and shift mix, twice).
#[inline(always)]
fn mix(value: u64) -> u32 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let once = (value.wrapping_mul(ODD) ^ (value >> 29)).wrapping_mul(ODD | 0x10_0000);
    let twice = (once ^ (once >> 32)).wrapping_mul(ODD);
    (twice >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_n_is_kept_whatever_the_pattern() {
        for n in [2, 7, 64, 100] {
            for pattern in [1_u64, 8, 512] {
                let kept = (0..100_000_u64).filter(|page| keeps(of_file(42, page * pattern), n)).count() as f64;
                let expected = 100_000.0 / f64::from(n);
                assert!((kept - expected).abs() < 5.0 * expected.sqrt(), "{kept} of {expected} for 1/{n}, every {pattern}");
                let kept = (0..100_000_u64).filter(|page| keeps(of_address(0xffff_ea00_0000_0000 + page * 64 * pattern), n)).count() as f64;
                assert!((kept - expected).abs() < 5.0 * expected.sqrt(), "{kept} of {expected} folios for 1/{n}, every {pattern}");
            }
        }
    }

    /// Folios of any size.
    const ANY: u32 = (1 << (ORDER_MAX + 1)) - 1;

    #[test]
    fn a_range_is_kept_with_any_folio_that_it_may_touch() {
        for (first, last) in [(0, 0), (5, 5), (1023, 1024), (4, 7), (77, 90), (511, 512)] {
            for order in 0..=ORDER_MAX {
                let folios = (first >> order)..=(last >> order);
                let kept = |n| folios.clone().any(|folio| keeps(of_file(42, folio << order), n));
                for orders in [ANY, 1 << order, 1 << order | 1] {
                    for n in [2, 8, 64] {
                        let keeps = keeps_range(42, first, last, n, orders);
                        assert!(!kept(n) || keeps, "{first}-{last} in folios of order {order} of {orders:b}, 1/{n}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_fewer_sizes_folios_have_the_fewer_ranges_are_kept() {
        let kept = |orders| (0..10_000).filter(|page| keeps_range(42, page * 1021, page * 1021, 64, orders)).count();
        // Ten places, of which every other one is that of the next smaller size.
        assert!((700..1000).contains(&kept(ANY)), "{} of 10,000 ranges of one page", kept(ANY));
        for order in [0, 2, 5] {
            assert!((100..220).contains(&kept(1 << order)), "{} of 10,000 in folios of order {order}", kept(1 << order));
        }
        assert_eq!(kept(0), 0);
    }

    #[test]
    fn a_folio_lies_in_one_block() {
        for order in 0..=ORDER_MAX {
            for first in (0..4096_u64).step_by(1 << order) {
                assert_eq!(block_of(7, first), block_of(7, first + (1 << order) - 1));
            }
        }
    }

    #[test]
    fn files_do_not_share_their_sample() {
        let both = (0..100_000_u64).filter(|page| keeps(of_file(42, *page), 8) && keeps(of_file(43, *page), 8)).count();
        assert!((1300..1850).contains(&both), "{both} pages kept in both files, an 64th expected");
    }

    #[test]
    fn samples_are_nested_and_one_in_one_is_all() {
        for page in 0..10_000_u64 {
            let hash = of_file(7, page);
            assert!(keeps(hash, 1) && keeps(hash, 0));
            assert!(!keeps(hash, 64) || keeps(hash, 16));
        }
    }
}
