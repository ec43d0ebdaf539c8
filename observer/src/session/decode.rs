//! A raw flags word, read with the layout of the kernel that wrote it.

use crate::{
    model::{FolioFlags, Traits},
    stream::header::FlagLayout,
};

/// What a flags word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Value of the generation field: 0 off the MGLRU lists, else seq % 4 + 1 (spec 1.3).
    pub gen_field: u8,
    /// The LRU bits.
    pub flags: FolioFlags,
    /// What the rules ask of the folio.
    pub traits: Traits,
    /// PG_lru.
    pub lru: bool,
    /// PG_uptodate: it holds data. None where a recording does not tell its position.
    pub uptodate: Option<bool>,
}

/// Reads flags words of one kernel.
#[derive(Clone, Copy, Debug)]
pub struct Decoder {
    layout: Bits,
}

/// [`FlagLayout`] as masks.
#[derive(Clone, Copy, Debug)]
struct Bits {
    referenced: u64,
    active: u64,
    workingset: u64,
    swapbacked: u64,
    swapcache: u64,
    unevictable: u64,
    reclaim: u64,
    dirty: u64,
    writeback: u64,
    dropbehind: u64,
    lru: u64,
    uptodate: Option<u64>,
    gen_shift: u8,
    gen_mask: u64,
    refs_shift: u8,
    refs_mask: u64,
}

impl Decoder {
    /// For a layout; without generation positions every folio reads as off the MGLRU lists.
    pub fn new(layout: &FlagLayout) -> Self {
        let bit = |number: u8| 1_u64 << (number & 63);
        Self {
            layout: Bits {
                referenced: bit(layout.referenced),
                active: bit(layout.active),
                workingset: bit(layout.workingset),
                swapbacked: bit(layout.swapbacked),
                swapcache: bit(layout.swapcache),
                unevictable: bit(layout.unevictable),
                reclaim: bit(layout.reclaim),
                dirty: bit(layout.dirty),
                writeback: bit(layout.writeback),
                dropbehind: layout.dropbehind.map_or(0, bit),
                lru: bit(layout.lru),
                uptodate: layout.uptodate.map(bit),
                gen_shift: layout.gen_pgoff.unwrap_or(0) & 63,
                gen_mask: if layout.gen_pgoff.is_some() { 7 } else { 0 },
                refs_shift: layout.refs_pgoff.unwrap_or(0) & 63,
                refs_mask: layout.refs_width.filter(|_| layout.refs_pgoff.is_some()).map_or(0, |width| (1 << width.min(4)) - 1),
            },
        }
    }

    /// Reads a word of a folio of `pages` base pages.
    #[inline]
    pub fn read(&self, word: u64, pages: u32) -> Seen {
        let bits = &self.layout;
        let on = |mask: u64| word & mask != 0;
        let field = |shift: u8, mask: u64| u8::try_from((word >> shift) & mask).unwrap_or(0);
        let swapcache = on(bits.swapcache) && on(bits.swapbacked);
        Seen {
            gen_field: field(bits.gen_shift, bits.gen_mask),
            flags: FolioFlags::new(field(bits.refs_shift, bits.refs_mask), on(bits.referenced), on(bits.workingset), on(bits.active)),
            traits: Traits {
                file: !on(bits.swapbacked),
                swapcache,
                reclaim: on(bits.reclaim),
                dirty: on(bits.dirty),
                writeback: on(bits.writeback),
                unevictable: on(bits.unevictable),
                dropbehind: on(bits.dropbehind),
                exec: false,
                mapped: false,
                pages,
            },
            lru: on(bits.lru),
            uptodate: bits.uptodate.map(on),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::header::tests::layout;

    #[test]
    fn fields_are_found_where_the_layout_says() {
        let decoder = Decoder::new(&layout());
        let seen = decoder.read((3 << 27) | (2 << 25) | (1 << 2) | (1 << 9) | (1 << 5) | (1 << 4), 1);
        assert_eq!(seen.gen_field, 3);
        assert_eq!(seen.flags, FolioFlags::new(2, true, true, false));
        assert!(seen.lru && seen.traits.dirty && seen.traits.file && !seen.traits.writeback);
    }

    #[test]
    fn swapbacked_is_anon_and_only_then_the_shared_bit_is_swapcache() {
        let decoder = Decoder::new(&layout());
        assert!(!decoder.read(1 << 10, 1).traits.swapcache, "owner_priv_1 of a file folio");
        let seen = decoder.read((1 << 10) | (1 << 17), 1);
        assert!(seen.traits.swapcache && !seen.traits.file);
    }

    #[test]
    fn an_unknown_position_reads_as_off_list() {
        let decoder = Decoder::new(&FlagLayout { gen_pgoff: None, refs_pgoff: None, refs_width: None, ..layout() });
        assert_eq!(decoder.read(u64::MAX, 1).gen_field, 0);
    }
}
