//! Cuts a kernel's BTF down to what observer may ask of it, small enough to be stored beside the tests.
//!
//! `cargo xtask kernel-types` runs it on what a kernel shows of itself. The structs that matter keep all their members, with
//! offsets and sizes; what a member's type is made of goes, unless a member in it is asked for too. Before anything is
//! written, the reduced types must give the same layout, flags and hooks as the whole.

use std::collections::{BTreeMap, HashMap};
use std::fs;

use anyhow::{Context, Result, bail, ensure};
use observer::kernel::{btf::Btf, hooks, layout, own_rules, symbols::Symbols};
use observer::stream::header::Lru;

/// Structs that keep all their members.
const WHOLE: [&str; 21] = [
    "folio",
    "page",
    "lruvec",
    "lru_gen_folio",
    "lru_gen_mm_walk",
    "mem_cgroup",
    "mem_cgroup_per_node",
    "mem_cgroup_id",
    "obj_cgroup",
    "cgroup_subsys_state",
    "cgroup",
    "kernfs_node",
    "scan_control",
    "address_space",
    "inode",
    "dentry",
    "qstr",
    "page_vma_mapped_walk",
    "anon_vma",
    "swap_info_struct",
    "swap_entry",
];

/// Members kept of structs that have hundreds.
const SOME: [(&str, &[&str]); 4] = [
    ("task_struct", &["flags", "in_lru_fault", "mm", "pid", "tgid"]),
    ("super_block", &["s_dev", "s_magic", "s_id", "s_type"]),
    ("pglist_data", &["node_id", "node_start_pfn", "node_spanned_pages", "node_present_pages", "__lruvec", "mm_walk", "memcg_lru"]),
    ("mm_struct", &["pgd", "lru_gen"]),
];

/// Named members whose own members are asked for.
const NESTED: [&str; 8] = ["lrugen", "css", "id", "d_name", "d_u", "flags", "swap", "page"];

/// Beginnings of the names of functions that are kept.
const FUNCTIONS: [&str; 15] = [
    "lru_gen_",
    "lru_add",
    "workingset_",
    "folio_add_lru",
    "folio_mark_accessed",
    "folio_activate",
    "folio_inc_",
    "folio_update_gen",
    "walk_",
    "try_to_shrink_lruvec",
    "inc_max_seq",
    "try_to_inc_max_seq",
    "shrink_one",
    "evict_folios",
    "swap_read_folio",
];

const INT: u32 = 1;
const PTR: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const TYPEDEF: u32 = 8;
const FUNC: u32 = 12;
const FUNC_PROTO: u32 = 13;

/// A type as stored: three words, and those that follow.
#[derive(Clone, Debug)]
struct Type {
    name: String,
    info: u32,
    size: u32,
    more: Vec<u32>,
}

impl Type {
    fn kind(&self) -> u32 {
        self.info >> 24 & 31
    }

    /// Name, type and offset of each member.
    fn members<'a>(&'a self, names: &'a Names<'a>) -> impl Iterator<Item = (String, u32, u32)> + 'a {
        self.more.chunks_exact(3).map(|member| (names.at(member[0]), member[1], member[2]))
    }
}

/// The string section.
struct Names<'a>(&'a [u8]);

impl Names<'_> {
    fn at(&self, offset: u32) -> String {
        let bytes = &self.0[offset as usize..];
        String::from_utf8_lossy(&bytes[..bytes.iter().position(|byte| *byte == 0).unwrap_or(0)]).into_owned()
    }
}

fn word(bytes: &[u8], at: usize) -> Result<u32> {
    Ok(u32::from_le_bytes(bytes.get(at..at + 4).context("BTF ends early")?.try_into()?))
}

fn parse(bytes: &[u8]) -> Result<(Vec<Type>, Names<'_>)> {
    ensure!(word(bytes, 0)? & 0xffff == 0xeb9f, "no BTF");
    let header = word(bytes, 4)? as usize;
    let [types, types_len, strings, strings_len] = [8, 12, 16, 20].map(|at| word(bytes, at).map(|word| word as usize));
    let types = &bytes[header + types?..][..types_len?];
    let names = Names(&bytes[header + strings?..][..strings_len?]);
    let mut all = vec![Type { name: "void".to_owned(), info: 0, size: 0, more: Vec::new() }];
    let mut at = 0;
    while at < types.len() {
        let (name, info, size) = (word(types, at)?, word(types, at + 4)?, word(types, at + 8)?);
        let vlen = (info & 0xffff) as usize;
        let words = match info >> 24 & 31 {
            INT | 14 | 17 => 1,
            ARRAY => 3,
            STRUCT | UNION | 15 | 19 => 3 * vlen,
            ENUM | FUNC_PROTO => 2 * vlen,
            2 | 7..=12 | 16 | 18 => 0,
            kind => bail!("unknown kind {kind} of type"),
        };
        let more = (0..words).map(|index| word(types, at + 12 + 4 * index)).collect::<Result<_>>()?;
        all.push(Type { name: names.at(name), info, size, more });
        at += 12 + 4 * words;
    }
    Ok((all, names))
}

/// The types that are kept.
struct Kept<'a> {
    all: &'a [Type],
    names: &'a Names<'a>,
    types: Vec<u8>,
    strings: Vec<u8>,
    string_offsets: HashMap<String, u32>,
    count: u32,
    /// Leaves that were made already, by what makes them the same.
    leaves: HashMap<(u32, u32, u32, u32), u32>,
    structs: BTreeMap<String, u32>,
}

impl Kept<'_> {
    fn string(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        if let Some(offset) = self.string_offsets.get(text) {
            return *offset;
        }
        let offset = u32::try_from(self.strings.len()).expect("a small section");
        self.strings.extend_from_slice(text.as_bytes());
        self.strings.push(0);
        self.string_offsets.insert(text.to_owned(), offset);
        offset
    }

    fn put(&mut self, name: &str, info: u32, size: u32, more: &[u32]) -> u32 {
        let name = self.string(name);
        for word in [name, info, size].iter().chain(more) {
            self.types.extend_from_slice(&word.to_le_bytes());
        }
        self.count += 1;
        self.count
    }

    /// The same, unless it is there already.
    fn leaf(&mut self, kind: u32, size: u32, first: u32, second: u32, more: &[u32]) -> u32 {
        if let Some(id) = self.leaves.get(&(kind, size, first, second)) {
            return *id;
        }
        // The parser wants a name for an integer.
        let id = self.put(if kind == INT { "int" } else { "" }, kind << 24, size, more);
        self.leaves.insert((kind, size, first, second), id);
        id
    }

    /// Behind typedefs and qualifiers.
    fn plain(&self, mut id: u32) -> u32 {
        while matches!(self.all[id as usize].kind(), TYPEDEF | 9 | 10 | 11 | 18) {
            id = self.all[id as usize].size;
        }
        id
    }

    /// A member's type with its size and nothing else.
    fn opaque(&mut self, id: u32) -> u32 {
        let plain = self.plain(id);
        let found = self.all[plain as usize].clone();
        match found.kind() {
            0 => 0,
            PTR => self.leaf(PTR, 0, 0, 0, &[]),
            ARRAY => {
                let (element, index) = (self.opaque(found.more[0]), self.integer(4, 32));
                self.leaf(ARRAY, 0, element, found.more[2], &[element, index, found.more[2]])
            }
            INT => self.integer(found.size, found.more[0] & 0xff),
            ENUM | 19 => self.integer(found.size, found.size * 8),
            _ => self.leaf(STRUCT, found.size, 0, 0, &[]),
        }
    }

    fn integer(&mut self, size: u32, bits: u32) -> u32 {
        self.leaf(INT, size, bits, 0, &[bits])
    }

    /// A struct or union with the members that `keep` wants, and all its nameless ones.
    fn members(&mut self, id: u32, name: &str, keep: &dyn Fn(&str) -> bool) -> u32 {
        let found = self.all[self.plain(id) as usize].clone();
        let members: Vec<_> = found.members(self.names).collect();
        let mut more = Vec::new();
        for (name, id, offset) in members {
            if !name.is_empty() && !keep(&name) {
                continue;
            }
            let compound = matches!(self.all[self.plain(id) as usize].kind(), STRUCT | UNION);
            let nested = compound && (name.is_empty() || NESTED.contains(&name.as_str()));
            // Below a nameless or nested member everything is kept.
            let id = if nested { self.members(id, "", &|_| true) } else { self.opaque(id) };
            more.extend([self.string(&name), id, offset]);
        }
        let vlen = u32::try_from(more.len() / 3).expect("few members");
        self.put(name, found.info & 0x9f00_0000 | vlen, found.size, &more)
    }

    fn function(&mut self, function: &Type) {
        let prototype = self.all[function.size as usize].clone();
        let mut more = Vec::new();
        for parameter in prototype.more.chunks_exact(2) {
            let plain = self.plain(parameter[1]);
            let id = if self.all[plain as usize].kind() == PTR {
                let pointee = self.all[self.plain(self.all[plain as usize].size) as usize].clone();
                let target = if pointee.kind() == STRUCT && !pointee.name.is_empty() { self.named(&pointee.name) } else { 0 };
                self.leaf(PTR, target, 0, 0, &[])
            } else {
                self.opaque(plain)
            };
            more.extend([0, id]);
        }
        let vlen = u32::try_from(more.len() / 2).expect("few parameters");
        let prototype = self.put("", FUNC_PROTO << 24 | vlen, 0, &more);
        self.put(&function.name, FUNC << 24, prototype, &[]);
    }

    /// A struct that is only pointed to.
    fn named(&mut self, name: &str) -> u32 {
        if let Some(id) = self.structs.get(name) {
            return *id;
        }
        let id = self.put(name, STRUCT << 24, 0, &[]);
        self.structs.insert(name.to_owned(), id);
        id
    }

    fn finish(self) -> Vec<u8> {
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).expect("a small section");
        let header = [0x0001_eb9f, 24, 0, length(&self.types), length(&self.types), length(&self.strings)];
        [header.iter().flat_map(|word| word.to_le_bytes()).collect(), self.types, self.strings].concat()
    }
}

fn reduce(bytes: &[u8]) -> Result<Vec<u8>> {
    let (all, names) = parse(bytes)?;
    let mut kept = Kept {
        all: &all,
        names: &names,
        types: Vec::new(),
        strings: vec![0],
        string_offsets: HashMap::new(),
        count: 0,
        leaves: HashMap::new(),
        structs: BTreeMap::new(),
    };
    for (id, found) in (0..).zip(&all) {
        let some = SOME.iter().find(|(name, _)| *name == found.name).map(|(_, members)| *members);
        let wanted = some.is_some() || WHOLE.contains(&found.name.as_str());
        if found.kind() == STRUCT && wanted && !kept.structs.contains_key(&found.name) {
            let id = kept.members(id, &found.name, &|name| some.is_none_or(|members| members.contains(&name)));
            kept.structs.insert(found.name.clone(), id);
        }
    }
    for found in &all {
        match found.kind() {
            FUNC if FUNCTIONS.iter().any(|beginning| found.name.starts_with(beginning)) => kept.function(found),
            TYPEDEF if found.name.starts_with("btf_trace_mm_") => {
                let nothing = kept.leaf(PTR, 0, 0, 0, &[]);
                kept.put(&found.name, TYPEDEF << 24, nothing, &[]);
            }
            ENUM if found.more.chunks_exact(2).any(|value| names.at(value[0]) == "PG_locked") => {
                let more: Vec<u32> = found.more.chunks_exact(2).flat_map(|value| [kept.string(&names.at(value[0])), value[1]]).collect();
                kept.put(&found.name, found.info, found.size, &more);
            }
            _ => {}
        }
    }
    Ok(kept.finish())
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [btf, kallsyms, out] = words.as_slice() else { bail!("reduce_btf BTF KALLSYMS OUT-FOLDER") };
    let whole = fs::read(btf).with_context(|| btf.clone())?;
    let reduced = reduce(&whole)?;
    let text: String = fs::read_to_string(kallsyms)
        .with_context(|| kallsyms.clone())?
        .lines()
        .filter(|line| {
            let name = line.split_ascii_whitespace().nth(2).unwrap_or_default();
            name == "pff" || FUNCTIONS.iter().any(|beginning| name.starts_with(beginning))
        })
        .map(|line| format!("{line}\n"))
        .collect();
    let symbols = Symbols::parse(&text, &hooks::symbols_wanted());
    let facts = |bytes: &[u8]| -> Result<String> {
        let btf = Btf::parse(bytes)?;
        let plans = (hooks::plan(&btf, &symbols, hooks::Tier::All), hooks::plan_tracepoints(&btf, &symbols));
        let rules = own_rules::find(&btf, Lru::Mglru);
        Ok(format!("{:#?} {:#?} {plans:#?} {rules:?}", layout::offsets(&btf), layout::flag_bits(&btf)))
    };
    ensure!(
        facts(&whole)? == facts(&reduced)?,
        "the reduced types do not say what the whole says:\n{}\n{}",
        facts(&whole)?,
        facts(&reduced)?
    );
    fs::create_dir_all(out)?;
    fs::write(format!("{out}/btf"), &reduced)?;
    fs::write(format!("{out}/kallsyms"), text)?;
    println!("{out}: {} of {} bytes of BTF", reduced.len(), whole.len());
    Ok(())
}
