//! The files of a recording that begins a new one from time to time: their names, which are there, which go.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::exit::{Code, Failure, say};
use crate::stream::{Header, Writer};

/// Digits of a file's number, so that names sort as they were written.
const DIGITS: usize = 6;

/// Files `run-000001.arrows`, `run-000002.arrows`, … for the output `run.arrows`.
///
/// A number is never used again while a higher one is there, and a file never changes its name: whoever reads one while
/// others are written is not disturbed.
#[derive(Debug)]
pub struct Parts {
    folder: PathBuf,
    stem: OsString,
    extension: Option<OsString>,
    /// Numbers of the files that are there, in order.
    there: VecDeque<u32>,
    keep: Option<u32>,
    /// Number of the file that is written.
    current: u32,
    told: bool,
}

impl Parts {
    /// Looks at what is there of that name; files of earlier recordings count and go first.
    ///
    /// # Errors
    /// When the folder cannot be read, or `output` cannot be more than one file.
    pub fn new(output: &Path, keep: Option<u32>) -> Result<Parts> {
        let Some(stem) = output.file_stem().filter(|_| output.as_os_str() != "-") else {
            return Err(Failure::new(Code::Usage, "--rotate needs a file's name (-o run.arrows)").into());
        };
        if fs::metadata(output).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(Failure::new(Code::Usage, format!("--rotate needs a file's name, {} is none", output.display())).into());
        }
        let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut parts = Parts {
            folder: parent.to_owned(),
            stem: stem.to_owned(),
            extension: output.extension().map(OsStr::to_owned),
            there: VecDeque::new(),
            keep,
            current: 0,
            told: false,
        };
        let entries = fs::read_dir(parent).with_context(|| format!("cannot look into {}", parent.display()))?;
        let mut there: Vec<u32> = entries.flatten().filter_map(|entry| parts.number(&entry.file_name())).collect();
        there.sort_unstable();
        parts.current = there.last().copied().unwrap_or(0);
        parts.there = there.into();
        Ok(parts)
    }

    /// The number in a name that is one of ours.
    fn number(&self, name: &OsStr) -> Option<u32> {
        let name = Path::new(name);
        let stem = name.file_stem()?.to_str()?;
        let digits = stem.strip_prefix(self.stem.to_str()?)?.strip_prefix('-')?;
        let ours = digits.len() >= DIGITS && digits.bytes().all(|digit| digit.is_ascii_digit());
        if ours && name.extension() == self.extension.as_deref() { digits.parse().ok() } else { None }
    }

    fn path(&self, number: u32) -> PathBuf {
        let mut name = self.stem.clone();
        name.push(format!("-{number:0DIGITS$}"));
        let mut path = self.folder.join(name);
        if let Some(extension) = &self.extension {
            path.as_mut_os_string().push(".");
            path.as_mut_os_string().push(extension);
        }
        path
    }

    /// What the files are called, for people.
    pub fn pattern(&self) -> String {
        self.path(1).display().to_string().replace("-000001", "-*")
    }

    /// The file that is written.
    pub fn current(&self) -> PathBuf {
        self.path(self.current)
    }

    /// Begins the next file, and removes those that are too many. It appears with its header in it: whatever happens to the
    /// recorder, no file is there that cannot be read.
    pub(super) fn begin(&mut self, header: &Header) -> io::Result<Writer<Box<dyn Write>>> {
        let number = self.current.checked_add(1).ok_or(io::ErrorKind::FileTooLarge)?;
        let path = self.path(number);
        let hidden = self.folder.join(format!(".{}.{}", self.stem.display(), std::process::id()));
        let begun = File::create(&hidden)
            .and_then(|file| Writer::new(Box::new(file) as Box<dyn Write>, header))
            .and_then(|writer| rename(&hidden, &path).map(|()| writer));
        if begun.is_err() {
            // What could not become a file is no use to anyone; the error itself is told.
            let _ = fs::remove_file(&hidden);
        }
        let writer = begun?;
        self.current = number;
        self.there.push_back(number);
        self.remove_oldest();
        Ok(writer)
    }

    fn remove_oldest(&mut self) {
        let keep = self.keep.map_or(usize::MAX, |keep| keep as usize);
        while self.there.len() > keep {
            let Some(number) = self.there.pop_front() else { return };
            let path = self.path(number);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound && !self.told => {
                    self.told = true;
                    say(format_args!("cannot remove {}: {error}", path.display()));
                }
                _ => {}
            }
        }
    }
}

/// Gives a file its name, unless another has it.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems cannot promise that.
        Err(Errno::INVAL | Errno::NOSYS) => fs::rename(from, to),
        other => other.map_err(io::Error::from),
    }
}

/// When a new file is begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Once the file has so many bytes.
    pub bytes: Option<u64>,
    /// Once its events span so many nanoseconds.
    pub nanoseconds: Option<u64>,
}

impl Limits {
    /// As given on the command line.
    ///
    /// # Errors
    /// When there are two of a kind.
    pub fn new(limits: &[crate::units::Limit]) -> Result<Option<Limits>> {
        use crate::units::Limit;
        let mut all = Limits::default();
        for limit in limits {
            let before = match *limit {
                Limit::Bytes(bytes) => all.bytes.replace(bytes),
                Limit::Time(time) => all.nanoseconds.replace(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
            };
            if before.is_some() {
                return Err(Failure::new(Code::Usage, "--rotate takes one size and one time").into());
            }
        }
        Ok((!limits.is_empty()).then_some(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::tests::header;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_oldest_go_and_numbers_go_on() {
        let folder = tempfile::tempdir().unwrap();
        for other in ["run-7.arrows", "run-0000x1.arrows", "run-000009.csv", "other-000001.arrows", "run.arrows"] {
            fs::write(folder.path().join(other), "").unwrap();
        }
        let begin = |times: usize, keep| {
            let mut parts = Parts::new(&folder.path().join("run.arrows"), keep).unwrap();
            for _ in 0..times {
                parts.begin(&header()).unwrap().finish().unwrap();
            }
        };
        begin(3, Some(2));
        let ours = |names: Vec<String>| names.into_iter().filter(|name| name.starts_with("run-00000") && name.ends_with(".arrows"));
        assert_eq!(ours(names(folder.path())).collect::<Vec<_>>(), ["run-000002.arrows", "run-000003.arrows"]);
        begin(1, Some(2));
        assert_eq!(
            names(folder.path()),
            [
                "other-000001.arrows",
                "run-000003.arrows",
                "run-000004.arrows",
                "run-000009.csv",
                "run-0000x1.arrows",
                "run-7.arrows",
                "run.arrows"
            ]
        );
        begin(1, None);
        assert_eq!(ours(names(folder.path())).count(), 3);
    }

    #[test]
    fn another_recorder_s_file_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("run");
        let mut parts = Parts::new(&output, None).unwrap();
        fs::write(folder.path().join("run-000001"), "theirs").unwrap();
        assert_eq!(parts.begin(&header()).err().unwrap().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(names(folder.path()), ["run-000001"]);
        assert!(Parts::new(Path::new("-"), None).is_err() && Parts::new(Path::new("/dev/null"), None).is_err());
    }
}
