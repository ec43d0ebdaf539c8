//! Where generation, references and node sit in a folio's flags word (spec 1.3): from the widths of the fields above
//! them, which the kernel keeps in the table that prints flags. Calibration on real insertions checks the result.

use anyhow::{Result, ensure};

use crate::stream::header::{FlagLayout, OwnRules};

/// Bytes of the table `pff` of lib/vsprintf.c: five records of 32 bytes (section, node, zone, lastcpupid, kasantag).
pub const TABLE_LEN: usize = 160;

/// Bits of LRU_GEN.
const LRU_GEN_WIDTH: u32 = 3;

/// Field widths above LRU_GEN, from the most significant bit down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widths {
    /// section, node, zone, last cpupid, KASAN tag.
    pub width: [u32; 5],
    /// Shift of the node field.
    pub node_shift: u32,
}

/// Reads the kernel's table.
///
/// # Errors
/// When the bytes cannot be such a table: a guess would be worse than none.
pub fn parse_table(bytes: &[u8]) -> Result<Widths> {
    ensure!(bytes.len() >= TABLE_LEN, "the table of flag fields is cut short");
    let int = |at: usize| i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let mut width = [0; 5];
    let mut used = 0;
    for (field, width) in width.iter_mut().enumerate() {
        let (bits, shift, mask) = (int(field * 32), int(field * 32 + 4), int(field * 32 + 8));
        ensure!((0..=32).contains(&bits) && (0..64).contains(&shift), "the table of flag fields holds a width of {bits} at {shift}");
        ensure!(i64::from(mask) == (1_i64 << bits) - 1, "the table of flag fields holds the mask {mask:#x} for {bits} bits");
        *width = bits.unsigned_abs();
        used += *width;
    }
    ensure!(used <= 48, "the table of flag fields uses {used} bits");
    Ok(Widths { width, node_shift: int(32 + 4).unsigned_abs() })
}

/// Bits that a variant asks for its reference count (spec 1.1); it gets fewer where the word is full.
pub fn requested_refs_width(own: OwnRules) -> u32 {
    match own {
        OwnRules::FgV3 => 1,
        OwnRules::Classical | OwnRules::V6_12 | OwnRules::V6_18 | OwnRules::V7_3 => 2,
    }
}

/// Fills the positions that follow from the widths.
pub fn derive(layout: &mut FlagLayout, widths: &Widths, own: OwnRules) {
    let above: u32 = widths.width.iter().sum();
    let gen_pgoff = 64 - above - LRU_GEN_WIDTH;
    let free = gen_pgoff.saturating_sub(u32::from(layout.nr_pageflags));
    let refs_width = requested_refs_width(own).min(free);
    let small = |value: u32| u8::try_from(value).ok();
    layout.gen_pgoff = small(gen_pgoff);
    layout.refs_width = small(refs_width);
    layout.refs_pgoff = small(gen_pgoff - refs_width);
    layout.nodes_shift = small(widths.width[1]);
    layout.derived_from = "pff".to_owned();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(widths: [i32; 5]) -> Vec<u8> {
        let mut bytes = vec![0; TABLE_LEN];
        let mut shift = 64;
        for (field, width) in widths.into_iter().enumerate() {
            shift -= width;
            bytes[field * 32..][..4].copy_from_slice(&width.to_ne_bytes());
            bytes[field * 32 + 4..][..4].copy_from_slice(&(shift % 64).to_ne_bytes());
            let mask = ((1_i64 << width) - 1) as i32;
            bytes[field * 32 + 8..][..4].copy_from_slice(&mask.to_ne_bytes());
        }
        bytes
    }

    fn debian() -> FlagLayout {
        crate::stream::header::tests::layout()
    }

    #[test]
    fn debian_cloud_kernels_have_gen_at_27_and_two_bits_of_refs_at_25() {
        // Spec 1.3, measured: NODES_SHIFT 10, 5 zones, NR_CPUS 8192 with NUMA balancing.
        let widths = parse_table(&table([0, 10, 3, 21, 0])).unwrap();
        let mut layout = debian();
        derive(&mut layout, &widths, OwnRules::V7_3);
        assert_eq!((layout.gen_pgoff, layout.refs_pgoff, layout.refs_width), (Some(27), Some(25), Some(2)));
        derive(&mut layout, &widths, OwnRules::FgV3);
        assert_eq!((layout.gen_pgoff, layout.refs_pgoff, layout.refs_width), (Some(27), Some(26), Some(1)));
        assert_eq!(widths.node_shift, 54);
    }

    #[test]
    fn refs_get_only_the_bits_that_are_left() {
        let mut layout = debian();
        derive(&mut layout, &parse_table(&table([0, 10, 3, 22, 0])).unwrap(), OwnRules::V7_3);
        assert_eq!((layout.gen_pgoff, layout.refs_width), (Some(26), Some(1)));
    }

    #[test]
    fn what_is_no_such_table_is_refused() {
        assert!(parse_table(&[0; 100]).is_err());
        let mut bytes = table([0, 10, 3, 21, 0]);
        bytes[32 + 8] = 0;
        assert!(parse_table(&bytes).is_err());
        assert!(parse_table(&[0xff; TABLE_LEN]).is_err());
    }
}
