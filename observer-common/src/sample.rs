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

/// Whether a range of a file may touch a folio that a sample of one in `n` keeps. A folio is chosen by its first page, and how
/// large the folios of a file are is not known here: every page of the range counts, and every place where a folio that
/// reaches into it may begin. Long ranges are kept: they tell of many pages at once.
#[inline(always)]
pub fn keeps_range(ino: u64, first: u64, last: u64, n: u32) -> bool {
    if n <= 1 || last.wrapping_sub(first) >= RANGE_MAX {
        return true;
    }
    let mut kept = false;
    for page in 0..RANGE_MAX {
        kept |= page <= last - first && keeps(of_file(ino, first + page), n);
    }
    for order in 1..=ORDER_MAX {
        kept |= keeps(of_file(ino, first >> order << order), n);
    }
    kept
}

/// Pages of a range that are asked about one by one.
const RANGE_MAX: u64 = 4;

/// A folio of the page cache is no larger than what one page table maps: 2^9 pages of 4 KiB.
const ORDER_MAX: u32 = 9;

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

    #[test]
    fn a_range_is_kept_with_any_folio_that_it_may_touch() {
        for (first, last) in [(0, 0), (5, 5), (1023, 1024), (4, 7), (77, 90)] {
            for order in 0..=9 {
                let folios = (first >> order)..=(last >> order);
                let kept = |n| folios.clone().any(|folio| keeps(of_file(42, folio << order), n));
                for n in [2, 8, 64] {
                    assert!(!kept(n) || keeps_range(42, first, last, n), "{first}-{last} in folios of order {order}, 1/{n}");
                }
            }
        }
        let single = (0..10_000).filter(|page| keeps_range(42, page * 1021, page * 1021, 64)).count();
        assert!((300..2000).contains(&single), "{single} of 10,000 ranges of one page");
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
