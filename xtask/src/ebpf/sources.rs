//! Which sources the object was built from, as one hash.

use std::fmt::{self, Write};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

/// The folders whose contents decide the object.
const FOLDERS: [&str; 2] = ["observer-ebpf", "observer-common"];

/// The file beside the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The hash of the sources.
    pub(super) sources: String,
    /// The compiler and linker.
    pub(super) built_by: String,
}

impl Stamp {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let built_by = text.lines().find_map(|line| line.strip_prefix("# built by "))?;
        let sources = text.lines().find(|line| !line.starts_with('#'))?;
        Some(Self { sources: sources.trim().to_owned(), built_by: built_by.to_owned() })
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(to, "# SHA-256 over the paths and contents of the sources that observer.bpf.o was built from (`cargo xtask ebpf`)")?;
        writeln!(to, "# built by {}", self.built_by)?;
        writeln!(to, "{}", self.sources)
    }
}

/// The hash of the sources below `root`: of each file, in the order of the paths, path, length and contents.
pub(super) fn hash(root: &Path) -> Result<String> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        collect(&root.join(folder), &mut files)?;
    }
    let mut named = Vec::new();
    for file in files {
        named.push((file.strip_prefix(root)?.to_string_lossy().into_owned(), file));
    }
    named.sort();
    let mut hash = Sha256::new();
    for (name, file) in named {
        let contents = fs::read(&file).with_context(|| file.display().to_string())?;
        hash.update(format!("{name}\0{}\0", contents.len()));
        hash.update(&contents);
    }
    Ok(hash.finalize().iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type()?.is_dir() {
            // The compiler's own output is no source.
            if name != "target" {
                collect(&entry.path(), files)?;
            }
        } else if entry.path().extension().is_some_and(|extension| extension == "rs" || extension == "toml" || extension == "lock") {
            files.push(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_counts_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("observer-ebpf/src/main.rs", "a");
        write("observer-common/src/lib.rs", "b");
        let first = hash(root.path()).unwrap();
        write("observer-ebpf/target/debug/x.rs", "output");
        write("observer-ebpf/src/main.rs.swp", "an editor's");
        assert_eq!(hash(root.path()).unwrap(), first);
        write("observer-common/src/lib.rs", "c");
        assert_ne!(hash(root.path()).unwrap(), first);
        write("observer-common/src/lib.rs", "b");
        write("observer-ebpf/Cargo.lock", "");
        assert_ne!(hash(root.path()).unwrap(), first);
    }

    #[test]
    fn a_stamp_survives_the_file() {
        let stamp = Stamp { sources: "ab12".into(), built_by: "rustc 1.97, bpf-linker 0.10".into() };
        assert_eq!(Stamp::parse(&stamp.to_string()), Some(stamp));
        assert_eq!(Stamp::parse("ab12\n"), None);
    }
}
