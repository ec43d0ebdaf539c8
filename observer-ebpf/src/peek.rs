//! Reads kernel memory on demand (run through BPF_PROG_TEST_RUN, never attached): static data that no file shows under
//! lockdown, such as the widths of the fields in a flags word.

use aya_ebpf::{
    cty::c_void,
    helpers::generated::bpf_probe_read_kernel,
    macros::{map, raw_tracepoint},
    maps::Array,
    programs::RawTracePointContext,
};

/// Bytes read at once.
const PEEK_LEN: usize = 256;

/// Address to read.
#[map]
static PEEK_ADDRESS: Array<u64> = Array::with_max_entries(1, 0);

/// What stood there.
#[map]
static PEEK_BYTES: Array<[u8; PEEK_LEN]> = Array::with_max_entries(1, 0);

/// 1 after a successful read.
#[map]
static PEEK_DONE: Array<u64> = Array::with_max_entries(1, 0);

#[raw_tracepoint(tracepoint = "sys_enter")]
fn peek(_ctx: RawTracePointContext) -> i32 {
    let Some(address) = PEEK_ADDRESS.get(0) else { return 0 };
    let Some(bytes) = PEEK_BYTES.get_ptr_mut(0) else { return 0 };
    let Some(done) = PEEK_DONE.get_ptr_mut(0) else { return 0 };
    // SAFETY: the map's value is PEEK_LEN bytes; the helper checks the kernel address.
    unsafe {
        *done = u64::from(bpf_probe_read_kernel(bytes.cast::<c_void>(), PEEK_LEN as u32, *address as *const c_void) == 0);
    }
    0
}
