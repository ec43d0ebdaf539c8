//! Function names of the running kernel, as the compiler left them.

use std::{collections::HashMap, fs, io::BufRead};

use anyhow::{Context, Result};

/// The symbols observer may ask for, with their addresses (0 when the kernel hides them).
#[derive(Debug, Default)]
pub struct Symbols {
    addresses: HashMap<String, Vec<u64>>,
}

impl Symbols {
    /// Reads /proc/kallsyms, keeping names whose part before the first dot is wanted.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn running(wanted: &[&str]) -> Result<Self> {
        let file = fs::File::open("/proc/kallsyms").context("cannot read /proc/kallsyms")?;
        let mut symbols = Self::default();
        for line in std::io::BufReader::new(file).lines() {
            symbols.line(&line?, wanted);
        }
        Ok(symbols)
    }

    /// The same from text in kallsyms' format.
    pub fn parse(text: &str, wanted: &[&str]) -> Self {
        let mut symbols = Self::default();
        for line in text.lines() {
            symbols.line(line, wanted);
        }
        symbols
    }

    fn line(&mut self, line: &str, wanted: &[&str]) {
        let mut fields = line.split_ascii_whitespace();
        let (Some(address), Some(_), Some(name)) = (fields.next(), fields.next(), fields.next()) else { return };
        // A fourth field names a module: observer hooks the kernel itself.
        if fields.next().is_some() {
            return;
        }
        let stem = name.split('.').next().unwrap_or(name);
        if wanted.contains(&stem) {
            let address = u64::from_str_radix(address, 16).unwrap_or(0);
            self.addresses.entry(name.to_owned()).or_default().push(address);
        }
    }

    /// Whether exactly one symbol has this very name (fentry and kprobe want one).
    pub fn unique(&self, name: &str) -> bool {
        self.addresses.get(name).is_some_and(|addresses| addresses.len() == 1)
    }

    /// How many symbols have this very name.
    pub fn count(&self, name: &str) -> usize {
        self.addresses.get(name).map_or(0, Vec::len)
    }

    /// The address, unless hidden or ambiguous.
    pub fn address(&self, name: &str) -> Option<u64> {
        match self.addresses.get(name)?.as_slice() {
            [address] if *address != 0 => Some(*address),
            _ => None,
        }
    }

    /// Compiler-made clones of a function (`name.constprop.0`, `name.isra.0`) whose arguments observer can use.
    pub fn clone_of(&self, name: &str) -> Option<&str> {
        let mut clones = self.addresses.iter().filter(|(symbol, addresses)| {
            addresses.len() == 1
                && symbol.strip_prefix(name).is_some_and(|rest| rest.starts_with(".constprop.") || rest.starts_with(".isra."))
                && !symbol.ends_with(".cold")
        });
        let (symbol, _) = clones.next()?;
        if clones.next().is_some() { None } else { Some(symbol) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
ffffffff81000000 t folio_inc_gen.constprop.0
ffffffff81000100 T folio_add_lru
ffffffff81000200 t lru_add
ffffffff81000300 t lru_add
ffffffff81000400 t inc_max_seq.isra.0.cold
ffffffffc0000000 t folio_add_lru_vma\t[module]
0000000000000000 d pff
";

    #[test]
    fn clones_doubles_modules_and_hidden_addresses_are_told_apart() {
        let symbols = Symbols::parse(TEXT, &["folio_inc_gen", "folio_add_lru", "lru_add", "inc_max_seq", "folio_add_lru_vma", "pff"]);
        assert_eq!(symbols.clone_of("folio_inc_gen"), Some("folio_inc_gen.constprop.0"));
        assert!(symbols.unique("folio_add_lru") && !symbols.unique("folio_inc_gen"));
        assert_eq!((symbols.count("lru_add"), symbols.unique("lru_add")), (2, false));
        assert_eq!(symbols.clone_of("inc_max_seq"), None);
        assert_eq!(symbols.count("folio_add_lru_vma"), 0);
        assert_eq!(symbols.address("pff"), None);
        assert_eq!(symbols.address("folio_add_lru"), Some(0xffff_ffff_8100_0100));
    }
}
