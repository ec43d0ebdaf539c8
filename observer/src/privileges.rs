//! What this process may do, given up once it is no longer needed.
//!
//! Loading and attaching programs needs capabilities; reading rings and maps that are open needs none. What comes after is
//! parsing and drawing, of data that others made, and that is done with nothing to lose.

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs,
};

/// Before 5.19 every `bpf` call wanted the capability where unprivileged eBPF is off, reading a map included.
const MAPS_NEED_NOTHING: (u32, u32) = (5, 19);

/// Gives up all capabilities of this thread and of those it starts from now on, except `keep`. With nothing to keep, no
/// program started later gets them back either.
///
/// What cannot be given up stays: whoever has no capabilities may not drop any, and loses nothing.
pub fn drop_except(keep: CapabilitySet) {
    let Ok(now) = capabilities(None) else { return };
    if keep.is_empty() {
        // While CAP_SETPCAP is still there; without it the set stays, and `no_new_privs` closes the way to it.
        for bit in now.permitted.iter() {
            let _ = remove_capability_from_bounding_set(bit);
        }
        let _ = set_no_new_privs(true);
    }
    let _ = clear_ambient_capability_set();
    let left = CapabilitySets { effective: now.effective & keep, permitted: now.permitted & keep, inheritable: now.inheritable & keep };
    let _ = set_capabilities(None, left);
}

/// Gives up everything.
pub fn drop_all() {
    drop_except(CapabilitySet::empty());
}

/// What reading open maps needs on a kernel of that release.
pub fn for_maps(release: &str) -> CapabilitySet {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version < MAPS_NEED_NOTHING { CapabilitySet::BPF } else { CapabilitySet::empty() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_kernels_want_a_capability_for_maps() {
        assert_eq!(for_maps("5.15.0-91-generic"), CapabilitySet::BPF);
        assert_eq!(for_maps("5.19.0"), CapabilitySet::empty());
        assert_eq!(for_maps("6.1.0-50-cloud-amd64"), CapabilitySet::empty());
        assert_eq!(for_maps("7.3.4+deb13"), CapabilitySet::empty());
    }

    #[test]
    fn nothing_is_left_but_what_is_kept() {
        // Capabilities are a thread's own: those of the other tests stay.
        std::thread::spawn(|| {
            let before = capabilities(None).unwrap().permitted;
            drop_except(CapabilitySet::KILL);
            assert_eq!(capabilities(None).unwrap().permitted, before & CapabilitySet::KILL);
            drop_all();
            let sets = capabilities(None).unwrap();
            assert!(sets.permitted.is_empty() && sets.effective.is_empty() && sets.inheritable.is_empty());
            assert!(rustix::thread::no_new_privs().unwrap());
        })
        .join()
        .unwrap();
    }
}
