//! The recording's columns, row kinds, metadata keys and limits: the one place that says what a recording looks like.
//!
//! `recording-format.md` beside this file explains them to people who read recordings with other tools.

use std::fmt;

use arrow_schema::{DataType, Field, Schema};
use observer_common::Kind;

use super::header::{FORMAT, Header};

/// Schema metadata: the whole [`Header`] as JSON.
pub const KEY_HEADER: &str = "observer.header";
/// Schema metadata: format version, decimal.
pub const KEY_FORMAT: &str = "observer.format";
/// Schema metadata: version of the tool that wrote the recording.
pub const KEY_TOOL: &str = "observer.tool";
/// Schema metadata: `uname -r` of the recorded kernel.
pub const KEY_KERNEL: &str = "observer.kernel";
/// Schema metadata: row kinds by number, JSON.
pub const KEY_KINDS: &str = "observer.kinds";
/// Any message: CRC-32 of the message's metadata with these eight hexadecimal digits read as `00000000`.
pub const KEY_CRC: &str = "observer.crc32";
/// Batch: CRC-32 of its body.
pub const KEY_BODY_CRC: &str = "observer.body_crc32";
/// Batch: its number, from 0.
pub const KEY_SEQUENCE: &str = "observer.sequence";
/// Batch: number of its first row in the recording, from 0.
pub const KEY_FIRST_ROW: &str = "observer.first_row";
/// Batch: smallest `ts` in it.
pub const KEY_FIRST_TS: &str = "observer.first_ts";
/// Batch: largest `ts` in it.
pub const KEY_LAST_TS: &str = "observer.last_ts";

/// Rows per batch at most.
pub const MAX_ROWS: usize = 1 << 16;
/// Bytes of a message's metadata that a reader believes.
pub const MAX_METADATA: usize = 1 << 20;
/// Bytes of a batch's body that a reader believes; the fixed columns of a full batch take half of it uncompressed.
pub const MAX_BODY: usize = 1 << 24;
/// Bytes of one name; Linux's PATH_MAX. The writer cuts longer ones.
pub const MAX_NAME: usize = 4096;
/// Bytes of all names of a batch, and entries of all its `values` lists.
pub const MAX_VARIABLE: usize = 1 << 20;
/// Bytes of the header's free texts (command, filter, reasons); the writer cuts longer ones.
pub const MAX_HEADER_TEXT: usize = 4096;

/// How a column's cells are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    /// Unsigned integers of so many bytes.
    Uint(usize),
    /// UTF-8 text.
    Utf8,
    /// A list of u64.
    List,
}

/// Declares the columns once: an enum to index them, and their Arrow definition.
macro_rules! columns {
    ($($id:ident $name:literal $cell:expr, $nullable:literal, $about:literal;)*) => {
        /// A column; the number is its position.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Col { $($id),* }

        impl Col {
            /// All of them, in order.
            pub(crate) const ALL: &[Col] = &[$(Col::$id),*];
            /// How many.
            pub(crate) const COUNT: usize = Col::ALL.len();

            /// Arrow name.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Col::$id => $name),* }
            }

            /// Storage.
            pub(crate) const fn cell(self) -> Cell {
                match self { $(Col::$id => $cell),* }
            }

            /// Whether a row may lack it.
            pub(crate) fn nullable(self) -> bool {
                match self { $(Col::$id => $nullable),* }
            }

            /// What it means, stored in the field's metadata.
            fn about(self) -> &'static str {
                match self { $(Col::$id => $about),* }
            }
        }
    };
}

columns! {
    Ts "ts" Cell::Uint(8), false, "CLOCK_BOOTTIME, nanoseconds";
    Kind "kind" Cell::Uint(1), false, "what happened, see observer.kinds in the schema metadata";
    Cpu "cpu" Cell::Uint(2), false, "CPU that reported";
    Folio "folio" Cell::Uint(8), true, "address of the folio: an identity while it lives";
    Flags "flags" Cell::Uint(8), true, "raw folio flags word, see layout in observer.header";
    MaxSeq "max_seq" Cell::Uint(8), true, "max_seq of the lruvec: the low 24 bits in folio rows, whole in lruvec rows";
    WindowAnon "window_anon" Cell::Uint(1), true, "folio rows: max_seq - min_seq of anon";
    WindowFile "window_file" Cell::Uint(1), true, "folio rows: max_seq - min_seq of file";
    Aux "aux" Cell::Uint(1), false, "bits by kind; add: 1 in_lru_fault, 2 PF_MEMALLOC, 4 unknown; lruvec rows: 1 MGLRU enabled";
    Dev "dev" Cell::Uint(4), true, "device of the file (major << 20 | minor), null for anon";
    Ino "ino" Cell::Uint(8), true, "inode number (anon: the anon_vma's address | 1)";
    Index "index" Cell::Uint(8), true, "index in pages; range rows: first page";
    Cgroup "cgroup" Cell::Uint(8), true, "memory cgroup (kernfs node id), null when unknown";
    MemcgId "memcg_id" Cell::Uint(2), true, "the memory cgroup's id in shadow entries, null when unknown";
    Node "node" Cell::Uint(1), true, "NUMA node";
    Order "order" Cell::Uint(1), true, "log2 of the folio's pages";
    Shadow "shadow" Cell::Uint(8), true, "raw shadow entry of refault and evict";
    Lruvec "lruvec" Cell::Uint(8), true, "address of the lruvec in lruvec and controller rows";
    MinSeqAnon "min_seq_anon" Cell::Uint(8), true, "lruvec rows: min_seq of anon";
    MinSeqFile "min_seq_file" Cell::Uint(8), true, "lruvec rows: min_seq of file";
    Priority "priority" Cell::Uint(1), true, "lruvec rows: reclaim priority, 12 (gentle) to 0";
    NrReclaimed "nr_reclaimed" Cell::Uint(8), true, "lruvec rows: pages reclaimed so far";
    Value "value" Cell::Uint(8), true, "range rows: last page; lost: events; counter: its value";
    Name "name" Cell::Utf8, true, "file, cgroup or counter name";
    Values "values" Cell::List, true, "lists by kind, see recording-format.md";
}

/// A row's kind: the kernel's records and the recorder's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// From a hook.
    Hook(Kind),
    /// A cgroup's path.
    CgroupName,
    /// Events lost.
    Lost,
    /// Clocks read together.
    Clocks,
    /// A counter of the kernel's own.
    Counter,
}

/// First number of the recorder's own kinds; the hooks' stay below.
const OWN_KINDS: u8 = 200;

impl RowKind {
    /// The number in column `kind`; never reused.
    pub(crate) fn number(self) -> u8 {
        match self {
            RowKind::Hook(kind) => kind as u8,
            RowKind::CgroupName => OWN_KINDS,
            RowKind::Lost => OWN_KINDS + 1,
            RowKind::Clocks => OWN_KINDS + 2,
            RowKind::Counter => OWN_KINDS + 3,
        }
    }

    /// The kind with that number, if this version knows it.
    pub(crate) fn from_number(number: u8) -> Option<RowKind> {
        match number {
            200 => Some(RowKind::CgroupName),
            201 => Some(RowKind::Lost),
            202 => Some(RowKind::Clocks),
            203 => Some(RowKind::Counter),
            _ => observer_common::kind(number).map(RowKind::Hook),
        }
    }

    /// Its name in the schema metadata.
    fn name(self) -> &'static str {
        match self {
            RowKind::Hook(kind) => match kind {
                Kind::Add => "add",
                Kind::Insert => "insert",
                Kind::Mark => "mark",
                Kind::Refault => "refault",
                Kind::Evict => "evict",
                Kind::Delete => "delete",
                Kind::IncGen => "inc_gen",
                Kind::Activate => "activate",
                Kind::Walk => "walk",
                Kind::SetRefs => "set_refs",
                Kind::LookAround => "look_around",
                Kind::ShrinkEnter => "shrink_enter",
                Kind::ShrinkExit => "shrink_exit",
                Kind::Age => "age",
                Kind::Controller => "controller",
                Kind::FileName => "file_name",
                Kind::ReadRange => "read_range",
                Kind::FaultRange => "fault_range",
                Kind::MapRange => "map_range",
                Kind::CacheAdd => "cache_add",
                Kind::Census => "census",
                Kind::Sweep => "sweep",
                Kind::SwapRead => "swap_read",
            },
            RowKind::CgroupName => "cgroup_name",
            RowKind::Lost => "lost",
            RowKind::Clocks => "clocks",
            RowKind::Counter => "counter",
        }
    }
}

/// Which columns a hook's rows fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `Body::Folio`.
    Folio,
    /// `Body::Lruvec`.
    Lruvec,
    /// `Body::Controller`.
    Controller,
    /// `Body::Range`.
    Range,
    /// `Body::FileName`.
    FileName,
}

/// The shape of a hook's rows; no wildcard, so that a new kind is decided here.
pub(crate) fn shape(kind: Kind) -> Shape {
    match kind {
        Kind::Add
        | Kind::Insert
        | Kind::Mark
        | Kind::Refault
        | Kind::Evict
        | Kind::Delete
        | Kind::IncGen
        | Kind::Activate
        | Kind::Walk
        | Kind::SetRefs
        | Kind::LookAround
        | Kind::CacheAdd
        | Kind::Census
        | Kind::Sweep
        | Kind::SwapRead => Shape::Folio,
        Kind::ShrinkEnter | Kind::ShrinkExit | Kind::Age => Shape::Lruvec,
        Kind::Controller => Shape::Controller,
        Kind::ReadRange | Kind::FaultRange | Kind::MapRange => Shape::Range,
        Kind::FileName => Shape::FileName,
    }
}

/// A hook's kind as recordings and summaries call it.
pub(crate) fn kind_name(kind: Kind) -> &'static str {
    RowKind::Hook(kind).name()
}

/// All row kinds as a JSON object, number to name.
fn kinds_json() -> String {
    let names: serde_json::Map<String, serde_json::Value> =
        (0..=u8::MAX).filter_map(RowKind::from_number).map(|kind| (kind.number().to_string(), kind.name().into())).collect();
    serde_json::Value::Object(names).to_string()
}

/// Cuts a text to so many bytes, at a character.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// The header as stored: its free texts bounded, so that the schema message fits [`MAX_METADATA`].
pub(crate) fn header_json(header: &Header) -> serde_json::Result<String> {
    let mut header = Header { format: FORMAT, ..header.clone() };
    let Header { tool, kernel, machine, host, own_rules_because, filter, command, hooks, .. } = &mut header;
    let hook_texts = hooks.iter_mut().flat_map(|hook| [&mut hook.name, &mut hook.target, &mut hook.why, &mut hook.without]);
    for text in [tool, kernel, machine, host, own_rules_because, filter, command].into_iter().chain(hook_texts) {
        text.truncate(text.floor_char_boundary(MAX_HEADER_TEXT));
    }
    serde_json::to_string(&header)
}

/// The Arrow schema of a recording; the checksum's digits are zeros.
pub(crate) fn schema(header: &Header, header_json: &str) -> Schema {
    let fields: Vec<Field> = Col::ALL
        .iter()
        .map(|col| {
            let data_type = match col.cell() {
                Cell::Uint(1) => DataType::UInt8,
                Cell::Uint(2) => DataType::UInt16,
                Cell::Uint(4) => DataType::UInt32,
                Cell::Uint(_) => DataType::UInt64,
                Cell::Utf8 => DataType::Utf8,
                Cell::List => DataType::new_list(DataType::UInt64, false),
            };
            Field::new(col.name(), data_type, col.nullable()).with_metadata([("description".to_owned(), col.about().to_owned())])
        })
        .collect();
    let metadata = [
        (KEY_HEADER, header_json),
        (KEY_FORMAT, &FORMAT.to_string()),
        (KEY_TOOL, cut(&header.tool, MAX_HEADER_TEXT)),
        (KEY_KERNEL, cut(&header.kernel, MAX_HEADER_TEXT)),
        (KEY_KINDS, &kinds_json()),
        (KEY_CRC, NO_CRC),
    ];
    Schema::new_with_metadata(fields, metadata.map(|(key, value)| (key.to_owned(), value.to_owned())))
}

/// The checksum's digits before they are known, and as they are read when it is checked.
pub(crate) const NO_CRC: &str = "00000000";

impl fmt::Display for Col {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
