//! The programs that watch the multi-gen LRU, a file per family of hooks.
//!
//! Nothing here decides or interprets: programs copy raw flags words, clocks and identities into the ring buffer, and
//! count what did not fit. Offsets arrive as constants in [`config::LAYOUT`].
#![no_std]
#![no_main]
#![feature(asm_experimental_arch)]

mod census;
mod config;
mod emit;
mod folio;
mod mapped;
mod memcg;
mod names;
mod page_cache;
mod peek;
mod read;
mod reclaim;
mod sample;
mod struct_page;
mod workingset;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
