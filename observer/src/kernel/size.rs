//! How much memory this machine has, and how much of it is worth following.

/// Folios followed on any machine: what a gigabyte of single pages has.
const LEAST: u64 = 1 << 18;

/// Folios of this machine that are followed at once: a quarter as many as it has pages.
///
/// A folio costs about 170 bytes with six rule sets (session/memory.md), so that they take one per cent of the machine at most. Where caches hold
/// large folios that is all of them; where single pages fill more than a quarter of the memory, `--sample` follows a part that is
/// chosen fairly.
pub fn folios_to_follow() -> usize {
    let info = rustix::system::sysinfo();
    let bytes = info.totalram as u64 * u64::from(info.mem_unit);
    of_pages(bytes / rustix::param::page_size() as u64)
}

fn of_pages(pages: u64) -> usize {
    usize::try_from((pages / 4).max(LEAST)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_the_machine_and_is_not_too_small() {
        assert_eq!(of_pages(1 << 18), 1 << 18);
        assert_eq!(of_pages(6 << 20), 3 << 19);
        assert!(folios_to_follow() >= 1 << 18);
    }
}
