//! Writes an initramfs: the `newc` cpio format, which the kernel unpacks at boot.

use std::collections::BTreeSet;

/// What an entry is, as the upper bits of its mode.
const DIRECTORY: u32 = 0o040_000;
const CHARACTER_DEVICE: u32 = 0o020_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;

/// An archive in memory. Everything in it belongs to root; folders on the way to an entry are made.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    folders: BTreeSet<String>,
}

impl Archive {
    /// An empty archive.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a folder and the ones above it.
    pub fn folder(&mut self, path: &str) {
        let path = path.trim_matches('/');
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for end in ends {
            let folder = &path[..end];
            if !folder.is_empty() && self.folders.insert(folder.to_owned()) {
                self.entry(folder, DIRECTORY | 0o755, (0, 0), &[]);
            }
        }
    }

    /// Adds a regular file.
    pub fn file(&mut self, path: &str, mode: u32, contents: &[u8]) {
        self.parent(path);
        self.entry(path, REGULAR | mode, (0, 0), contents);
    }

    /// Adds a symbolic link.
    pub fn symlink(&mut self, path: &str, target: &str) {
        self.parent(path);
        self.entry(path, SYMLINK | 0o777, (0, 0), target.as_bytes());
    }

    /// Adds a character device.
    pub fn device(&mut self, path: &str, major: u32, minor: u32) {
        self.parent(path);
        self.entry(path, CHARACTER_DEVICE | 0o600, (major, minor), &[]);
    }

    /// The finished archive.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn parent(&mut self, path: &str) {
        if let Some((folder, _)) = path.trim_start_matches('/').rsplit_once('/') {
            self.folder(folder);
        }
    }

    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), contents: &[u8]) {
        self.entries += 1;
        let path = path.trim_start_matches('/');
        let links = if mode & DIRECTORY == DIRECTORY { 2 } else { 1 };
        // Sizes above 4 GiB have no place in the format; the kernel's memory would not hold such a file either.
        let (size, name) = (contents.len() as u64, path.len() as u64 + 1);
        let fields = [self.entries.into(), mode.into(), 0, 0, links, 0, size, 0, 0, device.0.into(), device.1.into(), name, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(contents);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_aligned_and_folders_come_first() {
        let mut archive = Archive::new();
        archive.file("/a/b/c", 0o644, b"xyz");
        archive.file("a/b/d", 0o755, b"");
        let bytes = archive.finish();
        let names: Vec<_> = walk(&bytes).into_iter().map(|(name, mode, _)| (name, mode)).collect();
        let expected = [("a", 0o040_755), ("a/b", 0o040_755), ("a/b/c", 0o100_644), ("a/b/d", 0o100_755), ("TRAILER!!!", 0)];
        assert_eq!(names, expected.map(|(name, mode)| (name.to_owned(), mode)));
        assert_eq!(walk(&bytes)[2].2, b"xyz");
    }

    /// A reader written from the format's description, not from the writer.
    fn walk(mut bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut entries = Vec::new();
        while !bytes.is_empty() {
            assert_eq!(&bytes[..6], b"070701");
            let field = |index: usize| {
                let digits = std::str::from_utf8(&bytes[6 + 8 * index..14 + 8 * index]).unwrap();
                u32::from_str_radix(digits, 16).unwrap()
            };
            let (mode, size, name) = (field(1), field(6) as usize, field(11) as usize);
            let data = (110 + name).next_multiple_of(4);
            let text = String::from_utf8(bytes[110..110 + name - 1].to_vec()).unwrap();
            entries.push((text, mode, bytes[data..data + size].to_vec()));
            bytes = &bytes[(data + size).next_multiple_of(4)..];
        }
        entries
    }
}
