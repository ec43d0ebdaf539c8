//! Which rule set the running kernel has: by what it contains, since distributions backport (spec 1.3, 14).

use super::btf::Btf;
use crate::stream::header::{Lru, OwnRules};

/// The rule set and the finding that decided.
pub fn find(btf: &Btf, lru: Lru) -> (OwnRules, &'static str) {
    if !btf.has_member("lruvec", "lrugen.max_seq") {
        return (OwnRules::Classical, "struct lruvec has no lrugen");
    }
    if lru == Lru::Classical {
        return (OwnRules::Classical, "lru_gen is not enabled");
    }
    if btf.has_function("folio_inc_lru_refs") {
        return (OwnRules::FgV3, "folio_inc_lru_refs exists");
    }
    if btf.takes("lru_gen_set_refs", "vm_area_struct") || btf.takes("walk_update_folio", "vm_area_struct") {
        return (OwnRules::V7_3, "walk_update_folio takes the VMA");
    }
    let evicted = btf.member_size("lruvec", "lrugen.evicted");
    let protected = btf.member_size("lruvec", "lrugen.protected");
    match (evicted, protected) {
        (Ok(evicted), Ok(protected)) if evicted == protected => (OwnRules::V6_18, "lrugen.protected counts all four tiers"),
        _ => (OwnRules::V6_12, "lrugen.protected does not count tier 0"),
    }
}

/// The LRU in use, from the text of /sys/kernel/mm/lru_gen/enabled (a hexadecimal mask; bit 0 is the main switch).
pub fn parse_enabled(text: &str) -> Lru {
    let digits = text.trim().trim_start_matches("0x");
    match u32::from_str_radix(digits, 16) {
        Ok(mask) if mask & 1 == 1 => Lru::Mglru,
        _ => Lru::Classical,
    }
}

/// The LRU this machine uses now.
pub fn running_lru() -> Lru {
    std::fs::read_to_string("/sys/kernel/mm/lru_gen/enabled").map_or(Lru::Classical, |text| parse_enabled(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_main_switch_turns_mglru_on() {
        assert_eq!(parse_enabled("0x0007\n"), Lru::Mglru);
        assert_eq!(parse_enabled("0x0001\n"), Lru::Mglru);
        assert_eq!(parse_enabled("0x0006\n"), Lru::Classical);
        assert_eq!(parse_enabled("0x0000\n"), Lru::Classical);
        assert_eq!(parse_enabled("garbage"), Lru::Classical);
    }
}
