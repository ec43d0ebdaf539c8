//! A folio as a program finds it. One that a hook passed is read member by member without a helper call, since the hook tells the
//! verifier what it points to; of any other, what is asked of it lies side by side in memory and is read at once.

use observer_common::{
    layout::ABSENT,
    sample::{of_address, of_file},
};

use crate::{
    config::layout,
    read::{self, Identity},
    sample,
};

/// Words of a struct page that are read at once. Members beyond them are read one by one.
const WORDS: usize = 8;

/// A folio; `HOOKED` where a hook passed it. No member, since the compiler must not merge what it does with both.
#[derive(Clone, Copy)]
pub(crate) struct Folio<const HOOKED: bool> {
    /// Where it is.
    pub(crate) address: u64,
    /// Whether anything could be read there; if not, all of it is zero.
    pub(crate) readable: bool,
    /// Its flags word, read once: what follows from it must not change on the way.
    flags: u64,
    /// Of one that no hook passed.
    words: [u64; WORDS],
}

impl Folio<false> {
    /// Reads it.
    #[inline(always)]
    pub(crate) fn read(address: u64) -> Self {
        let mut words = [0; WORDS];
        let readable = read::copy(&raw mut words, address);
        Self { address, readable, flags: words[0], words }
    }

    /// By which it is sampled.
    #[inline(always)]
    fn hash(&self) -> u32 {
        let mapping = self.mapping();
        if is_by_address(mapping, mapping as u32, self.flags) {
            return of_address(self.address);
        }
        let inode: u64 = read::member(mapping, layout!(mapping_host)).unwrap_or(0);
        of_file(read::member(inode, layout!(inode_ino)).unwrap_or(0), self.index())
    }

    /// Whether it belongs to the sample.
    #[inline(always)]
    pub(crate) fn is_kept(&self) -> bool {
        sample::keeps(|| self.hash())
    }
}

/// Whether a folio is sampled by its address: what is anonymous in any way, lazily freed memory included.
#[inline(always)]
fn is_by_address(mapping: u64, tag: u32, flags: u64) -> bool {
    mapping == 0 || tag & 3 != 0 || read::is_set(flags, layout!(swapbacked_bit))
}

impl Folio<true> {
    /// One that a hook passed as a pointer to a folio, if it belongs to the sample.
    #[inline(always)]
    pub(crate) fn of_hook(address: u64) -> Option<Self> {
        if !sample::keeps(|| Self::hash_of_hook(address)) {
            return None;
        }
        // SAFETY: a hook's folio; flags are the first member on every kernel (the loader checks that).
        let flags = unsafe { read::directly(address, 0) };
        Some(Self { address, readable: true, flags, words: [0; WORDS] })
    }

    /// By which it is sampled. Without a helper call where it is of a file: most of what is left out costs no more.
    #[inline(always)]
    fn hash_of_hook(address: u64) -> u32 {
        // SAFETY: a hook's folio, and from it on what the one before points to.
        unsafe {
            let mapping: u64 = read::directly(address, layout!(folio_mapping));
            let flags: u64 = read::directly(address, 0);
            if is_by_address(mapping, read::low(mapping), flags) {
                return of_address(read::number(address));
            }
            let inode: u64 = read::directly(mapping, layout!(mapping_host));
            of_file(read::directly(inode, layout!(inode_ino)), read::directly(address, layout!(folio_index)))
        }
    }
}

impl<const HOOKED: bool> Folio<HOOKED> {
    /// Its flags word.
    #[inline(always)]
    pub(crate) fn flags(&self) -> u64 {
        self.flags
    }

    /// A member of eight bytes that is a number to the verifier, 0 where this kernel has none.
    #[inline(always)]
    fn word(&self, offset: u32) -> u64 {
        if offset == ABSENT {
            return 0;
        }
        if HOOKED {
            // SAFETY: a hook's folio.
            return unsafe { read::directly(self.address, offset) };
        }
        let at = offset as usize / 8;
        // Decided by the verifier, to which offsets are constants.
        if offset % 8 == 0 && at < WORDS {
            self.words[at & (WORDS - 1)]
        } else {
            read::value(self.address + u64::from(offset)).unwrap_or(0)
        }
    }

    /// `folio.mapping` of one that no hook passed: there it is a pointer, with which nothing can be computed.
    #[inline(always)]
    pub(crate) fn mapping(&self) -> u64 {
        self.word(layout!(folio_mapping))
    }

    /// `folio.index`.
    #[inline(always)]
    pub(crate) fn index(&self) -> u64 {
        self.word(layout!(folio_index))
    }

    /// The memory cgroup it is charged to. The compiler would keep what stands for none in a register that nobody filled,
    /// which the verifier refuses to see saved across a call: so it is a number on the way.
    #[inline(always)]
    pub(crate) fn memcg(&self) -> Option<u64> {
        let memcg = core::hint::black_box(self.charged().unwrap_or(0));
        if memcg == 0 { None } else { Some(memcg) }
    }

    #[inline(always)]
    fn charged(&self) -> Option<u64> {
        let data = self.word(layout!(folio_memcg_data));
        let pointer = data & !3;
        if pointer == 0 {
            return None;
        }
        if layout!(memcg_data_is_objcg) != 0 {
            return read::member::<u64>(pointer, layout!(objcg_memcg)).filter(|memcg| *memcg != 0);
        }
        // Bit 1 marks kernel memory, which never is on an LRU.
        if data & 2 != 0 { None } else { Some(pointer) }
    }

    /// What it holds, as its mapping tells.
    #[inline(always)]
    pub(crate) fn identity(&self) -> Identity {
        if HOOKED {
            return self.identity_hooked();
        }
        let (mapping, index) = (self.mapping(), self.index());
        // Bit 0 marks an anon_vma; what is no file has no inode.
        if mapping != 0
            && mapping & 3 == 0
            && let Some((dev, ino, inode)) = read::file(mapping)
        {
            return Identity { dev, ino, index, inode };
        }
        Identity { dev: 0, ino: mapping, index, inode: 0 }
    }

    #[inline(always)]
    fn identity_hooked(&self) -> Identity {
        let index = self.index();
        // SAFETY: from a hook's folio on, each is a pointer that the one before it holds.
        unsafe {
            let mapping: u64 = read::directly(self.address, layout!(folio_mapping));
            if mapping == 0 {
                return Identity { dev: 0, ino: 0, index, inode: 0 };
            }
            if read::low(mapping) & 3 == 0 {
                let inode: u64 = read::directly(mapping, layout!(mapping_host));
                if inode != 0 {
                    let sb: u64 = read::directly(inode, layout!(inode_sb));
                    let (dev, ino) = (read::directly(sb, layout!(sb_dev)), read::directly(inode, layout!(inode_ino)));
                    return Identity { dev, ino, index, inode };
                }
            }
            Identity { dev: 0, ino: read::number(mapping), index, inode: 0 }
        }
    }

    /// Whether nobody holds it: it is no folio any more.
    #[inline(always)]
    pub(crate) fn is_free(&self) -> bool {
        let offset = layout!(folio_refcount);
        if offset == ABSENT || !self.readable {
            return false;
        }
        let holding = self.word(offset & !7);
        (holding >> ((offset & 4) * 8)) as u32 == 0
    }

    /// Its swap entry, when it is in the swap cache or is being read from swap (`reading`).
    #[inline(always)]
    pub(crate) fn swap_entry(&self, reading: bool) -> Option<u64> {
        // The swap cache's bit has another meaning for file folios.
        let cached = read::is_set(self.flags(), layout!(swapcache_bit)) && read::is_set(self.flags(), layout!(swapbacked_bit));
        let entry = self.word(layout!(folio_swap));
        if (cached || reading) && entry != 0 { Some(entry) } else { None }
    }

    /// Its pages.
    #[inline(always)]
    pub(crate) fn pages(&self) -> u64 {
        if !read::is_set(self.flags(), layout!(head_bit)) {
            return 1;
        }
        match read::member::<u32>(self.address, layout!(folio_nr_pages)) {
            Some(pages) if pages != 0 => u64::from(pages),
            _ => 1,
        }
    }

    /// log2 of its pages.
    #[inline(always)]
    pub(crate) fn order(&self) -> u8 {
        // Of a power of two, without branches: the verifier would follow each.
        (self.pages() as u32).wrapping_sub(1).count_ones() as u8
    }
}
