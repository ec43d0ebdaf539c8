//! Kernel modules the guest needs, in the order in which they load.
//!
//! Debian's packages come without `modules.dep` (their installation makes it), so dependencies are read from the modules themselves.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// What the machine needs; a kernel has each built in or as a module. Older zram asks for its compressor, `lzo_rle`, by
/// name, when it is too late to load it.
const WANTED: [&str; 6] = ["virtio_pci", "virtio_console", "virtio_blk", "ext4", "lzo_rle", "zram"];

/// One module file.
#[derive(Clone, Debug)]
pub struct Module {
    /// File name, such as `zram.ko`.
    pub file: String,
    /// The decompressed module.
    pub bytes: Vec<u8>,
}

/// The wanted modules below `folder` and everything they depend on, dependencies first.
pub fn collect(folder: &Path) -> Result<Vec<Module>> {
    let mut files = BTreeMap::new();
    index(&folder.join("kernel"), &mut files)?;
    let mut ordered = Vec::new();
    for name in WANTED {
        add(name, &files, &mut ordered)?;
    }
    Ok(ordered.into_iter().map(|(name, bytes)| Module { file: format!("{name}.ko"), bytes }).collect())
}

fn index(folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            index(&entry.path(), files)?;
        } else if let Some((name, _)) = entry.file_name().to_string_lossy().split_once(".ko") {
            files.insert(canonical(name), entry.path());
        }
    }
    Ok(())
}

/// Module names use - and _ for the same.
fn canonical(name: &str) -> String {
    name.replace('-', "_")
}

fn add(name: &str, files: &BTreeMap<String, PathBuf>, ordered: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    let name = canonical(name);
    // What is not a file is built in, or missing: then the guest says which device did not appear.
    let Some(path) = files.get(&name) else { return Ok(()) };
    if ordered.iter().any(|(done, _)| *done == name) {
        return Ok(());
    }
    let bytes = read(path)?;
    for needed in depends(&bytes) {
        add(&needed, files, ordered)?;
    }
    ordered.push((name, bytes));
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("ko") => Ok(bytes),
        Some("xz") => {
            let mut module = Vec::new();
            let read = lzma_rs::xz_decompress(&mut bytes.as_slice(), &mut module);
            read.map_err(|error| anyhow::anyhow!("{error:?}")).with_context(|| path.display().to_string())?;
            Ok(module)
        }
        _ => bail!("{}: only .ko and .ko.xz modules can be read", path.display()),
    }
}

/// The `depends=` entry of the module's information section.
fn depends(module: &[u8]) -> Vec<String> {
    let text = module.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(b"depends="));
    let text = String::from_utf8_lossy(text.unwrap_or_default());
    text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_read_from_the_module() {
        assert_eq!(depends(b"\x7fELF\0license=GPL\0depends=zsmalloc,lz4_compress\0name=zram\0"), ["zsmalloc", "lz4_compress"]);
        assert!(depends(b"\0depends=\0").is_empty());
    }
}
