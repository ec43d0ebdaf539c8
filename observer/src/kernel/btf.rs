//! The running kernel's BTF: member offsets, function prototypes, enumerators.

use std::collections::HashMap;

use anyhow::{Context, Result, anyhow, bail};
use btfparse::{Offset, Readable, TypeInformation, TypeVariant};

/// Where a kernel shows its own BTF.
pub const RUNNING: &str = "/sys/kernel/btf/vmlinux";

/// A kernel's type information, indexed for what observer asks.
pub struct Btf {
    types: TypeInformation,
    structs: HashMap<String, u32>,
    functions: HashMap<String, u32>,
    typedefs: HashMap<String, u32>,
    enumerators: HashMap<String, u32>,
}

/// BTF bytes in memory.
struct Bytes<'a>(&'a [u8]);

impl Readable for Bytes<'_> {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> btfparse::Result<()> {
        let missing = || btfparse::Error::new(btfparse::ErrorKind::IOError, "BTF ends early");
        let start = usize::try_from(offset).map_err(|_| missing())?;
        let end = start.checked_add(buffer.len()).ok_or_else(missing)?;
        buffer.copy_from_slice(self.0.get(start..end).ok_or_else(missing)?);
        Ok(())
    }
}

impl Btf {
    /// The running kernel's.
    ///
    /// # Errors
    /// When the kernel shows none (no `CONFIG_DEBUG_INFO_BTF`) or it cannot be read.
    pub fn running() -> Result<Self> {
        let bytes = std::fs::read(RUNNING).with_context(|| {
            format!("this kernel shows no type information ({RUNNING}): observer needs a kernel built with CONFIG_DEBUG_INFO_BTF=y")
        })?;
        Self::parse(&bytes)
    }

    /// Raw BTF.
    ///
    /// # Errors
    /// When the bytes are no BTF.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let types = TypeInformation::new(&Bytes(bytes)).map_err(|error| anyhow!("cannot parse the kernel's BTF: {error:?}"))?;
        let mut btf =
            Self { structs: HashMap::new(), functions: HashMap::new(), typedefs: HashMap::new(), enumerators: HashMap::new(), types };
        for (id, kind) in btf.types.get() {
            match kind {
                TypeVariant::Struct(data) => {
                    if let Some(name) = data.name() {
                        btf.structs.entry(name.clone()).or_insert(*id);
                    }
                }
                TypeVariant::Func(data) => {
                    if let Some(name) = data.name() {
                        btf.functions.entry(name.clone()).or_insert(*data.prototype_tid());
                    }
                }
                TypeVariant::Typedef(data) => {
                    if let Some(name) = data.name() {
                        btf.typedefs.entry(name.clone()).or_insert(*id);
                    }
                }
                TypeVariant::Enum(data) => {
                    for value in data.named_value_list() {
                        if let Ok(number) = u32::try_from(enumerator(&value.value)) {
                            btf.enumerators.entry(value.name.clone()).or_insert(number);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(btf)
    }

    /// Bit offset of `struct.path`, anonymous members included.
    ///
    /// # Errors
    /// Names the struct and member that this kernel lacks.
    pub fn bit_offset(&self, structure: &str, path: &str) -> Result<u32> {
        let id = *self.structs.get(structure).with_context(|| format!("this kernel has no struct {structure}"))?;
        let (_, offset) = self.types.offset_of(id, path).map_err(|_| anyhow!("this kernel has no member {path} in struct {structure}"))?;
        match offset {
            Offset::ByteOffset(bytes) => Ok(bytes * 8),
            Offset::BitOffsetAndSize(bits, _) => Ok(bits),
        }
    }

    /// Byte offset of `struct.path`.
    ///
    /// # Errors
    /// As [`Self::bit_offset`], or when the member is a bit-field that starts inside a byte.
    pub fn offset(&self, structure: &str, path: &str) -> Result<u32> {
        let bits = self.bit_offset(structure, path)?;
        if bits % 8 != 0 {
            bail!("member {path} of struct {structure} does not start at a byte");
        }
        Ok(bits / 8)
    }

    /// Size in bytes of `struct.path`.
    ///
    /// # Errors
    /// As [`Self::bit_offset`].
    pub fn member_size(&self, structure: &str, path: &str) -> Result<u32> {
        let id = *self.structs.get(structure).with_context(|| format!("this kernel has no struct {structure}"))?;
        let (member, _) = self.types.offset_of(id, path).map_err(|_| anyhow!("this kernel has no member {path} in struct {structure}"))?;
        let size = self.types.size_of(member).map_err(|_| anyhow!("member {path} of struct {structure} has no size"))?;
        Ok(u32::try_from(size)?)
    }

    /// Size in bytes of a struct.
    ///
    /// # Errors
    /// Names the struct that this kernel lacks.
    pub fn size(&self, structure: &str) -> Result<u32> {
        let id = *self.structs.get(structure).with_context(|| format!("this kernel has no struct {structure}"))?;
        let size = self.types.size_of(id).map_err(|_| anyhow!("struct {structure} has no size"))?;
        Ok(u32::try_from(size)?)
    }

    /// Whether the struct has the member.
    pub fn has_member(&self, structure: &str, path: &str) -> bool {
        self.bit_offset(structure, path).is_ok()
    }

    /// An enumerator's value.
    pub fn enumerator(&self, name: &str) -> Option<u32> {
        self.enumerators.get(name).copied()
    }

    /// Whether the kernel has a function of that name that fentry could name.
    pub fn has_function(&self, name: &str) -> bool {
        self.functions.contains_key(name)
    }

    /// Whether the kernel has a BTF-typed tracepoint of that name.
    pub fn has_tracepoint(&self, name: &str) -> bool {
        self.typedefs.contains_key(&format!("btf_trace_{name}"))
    }

    /// What each argument of `function` points to: the name of the struct, empty where it is something else.
    pub fn arguments(&self, function: &str) -> Option<Vec<String>> {
        let TypeVariant::FuncProto(prototype) = self.types.from_id(*self.functions.get(function)?)? else { return None };
        let pointee = |tid| self.types.pointee_tid(tid).ok().and_then(|pointee| self.types.name_of(pointee));
        Some(prototype.parameter_list().iter().map(|parameter| pointee(parameter.tid()).unwrap_or_default()).collect())
    }

    /// Whether `function` takes a pointer to `struct structure`.
    pub fn takes(&self, function: &str, structure: &str) -> bool {
        self.arguments(function).is_some_and(|arguments| arguments.iter().any(|argument| argument == structure))
    }
}

fn enumerator(value: &btfparse::Integer32Value) -> i64 {
    match value {
        btfparse::Integer32Value::Signed(value) => i64::from(*value),
        btfparse::Integer32Value::Unsigned(value) => i64::from(*value),
    }
}
