//! A folio as one read of its struct page finds it: what is asked of it lies side by side in memory.

use observer_common::layout::ABSENT;

use crate::{
    config::layout,
    read::{self, Identity},
    sample,
};

/// Words of a struct page that are read. Members beyond them are read one by one.
const WORDS: usize = 8;

/// A folio's first words.
#[derive(Clone, Copy)]
pub(crate) struct Folio {
    /// Where it is.
    pub(crate) address: u64,
    /// Whether anything could be read there; if not, all of it is zero.
    pub(crate) readable: bool,
    /// Whether a hook passed it, so that the verifier knows what it points to. Known to the compiler.
    hooked: bool,
    words: [u64; WORDS],
}

impl Folio {
    /// Reads it.
    #[inline(always)]
    pub(crate) fn read(address: u64) -> Self {
        let mut words = [0; WORDS];
        let readable = read::copy(&raw mut words, address);
        Self { address, readable, hooked: false, words }
    }

    /// Reads one that a hook passed as a pointer to a folio, if it belongs to the sample.
    #[inline(always)]
    pub(crate) fn of_hook(address: u64) -> Option<Self> {
        if !sample::keeps_hooked(address) {
            return None;
        }
        Some(Self { hooked: true, ..Self::read(address) })
    }

    /// Whether it was only read because it belongs to the sample.
    #[inline(always)]
    pub(crate) fn is_chosen(&self) -> bool {
        self.hooked
    }

    /// Its flags word, the first member on every kernel (the loader checks that).
    #[inline(always)]
    pub(crate) fn flags(&self) -> u64 {
        self.words[0]
    }

    /// A member of eight bytes, 0 where this kernel has none.
    #[inline(always)]
    fn word(&self, offset: u32) -> u64 {
        if offset == ABSENT {
            return 0;
        }
        let at = offset as usize / 8;
        // Decided by the verifier, to which offsets are constants.
        if offset % 8 == 0 && at < WORDS {
            self.words[at & (WORDS - 1)]
        } else {
            read::value(self.address + u64::from(offset)).unwrap_or(0)
        }
    }

    /// `folio.mapping`.
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
        let (mapping, index) = (self.mapping(), self.index());
        // Bit 0 marks an anon_vma; what is no file has no inode.
        if mapping != 0
            && mapping & 3 == 0
            && let Some((dev, ino, inode)) = self.file(mapping)
        {
            return Identity { dev, ino, index, inode };
        }
        Identity { dev: 0, ino: mapping, index, inode: 0 }
    }

    #[inline(always)]
    fn file(&self, mapping: u64) -> Option<(u32, u64, u64)> {
        if !self.hooked {
            return read::file(mapping);
        }
        // SAFETY: from a hook's folio on, each is a pointer that the one before it holds.
        unsafe {
            let inode = self.inode();
            if inode == 0 {
                return None;
            }
            let sb: u64 = read::directly(inode, layout!(inode_sb));
            Some((read::directly(sb, layout!(sb_dev)), read::directly(inode, layout!(inode_ino)), inode))
        }
    }

    /// The inode of a hook's folio of a file.
    ///
    /// # Safety
    /// Only of a hook's folio.
    #[inline(always)]
    unsafe fn inode(&self) -> u64 {
        // SAFETY: the caller's.
        unsafe { read::directly(read::directly(self.address, layout!(folio_mapping)), layout!(mapping_host)) }
    }

    /// The inode's number, 0 when unknown, of a folio of a file.
    #[inline(always)]
    pub(crate) fn ino(&self) -> u64 {
        if self.hooked {
            // SAFETY: a hook's folio.
            return unsafe { read::directly(self.inode(), layout!(inode_ino)) };
        }
        let inode: u64 = read::member(self.mapping(), layout!(mapping_host)).unwrap_or(0);
        read::member(inode, layout!(inode_ino)).unwrap_or(0)
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
        // Powers of two only; not a loop, so that the verifier need not follow it.
        log2(self.pages() as u32)
    }
}

#[inline(always)]
fn log2(value: u32) -> u8 {
    let mut value = value;
    let mut log = 0;
    if value >= 1 << 16 {
        value >>= 16;
        log += 16;
    }
    if value >= 1 << 8 {
        value >>= 8;
        log += 8;
    }
    if value >= 1 << 4 {
        value >>= 4;
        log += 4;
    }
    if value >= 1 << 2 {
        value >>= 2;
        log += 2;
    }
    if value >= 2 { log + 1 } else { log }
}
