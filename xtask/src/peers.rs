//! Other tracers to measure beside: bpftrace and trace-cmd from Debian's packages, unpacked into the cache with the
//! libraries they load, to be run from any folder by the loader among them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::apt::{Package, Suite};
use crate::shell;
use crate::{cache, guest::Copied};

/// The suite they are taken from.
const SUITE: &str = "trixie";

/// Packages and programs of the same name.
const PROGRAMS: [&str; 2] = ["bpftrace", "trace-cmd"];

/// Where the packages have the loader that runs their programs, and the libraries.
const LOADER: &str = "usr/lib64/ld-linux-x86-64.so.2";
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// The peers' programs with their libraries, as they belong into a folder: `bin/PROGRAM`, `lib/SONAME`.
#[derive(Clone, Debug)]
pub struct Peers {
    /// Files in the cache, and their places in the folder.
    pub files: Vec<Copied>,
    /// What they are, for the table.
    pub versions: String,
}

/// Brings them into the cache.
pub fn fetch() -> Result<Peers> {
    let _lock = cache::lock("peers")?;
    let suite = Suite::open(SUITE)?;
    let mut packages: Vec<Package> = Vec::new();
    for name in PROGRAMS {
        for package in suite.closure(name, is_library)? {
            if packages.iter().all(|other| other.name != package.name) {
                packages.push(package);
            }
        }
    }
    let named = packages.iter().filter(|package| PROGRAMS.contains(&package.name.as_str()));
    let versions: Vec<String> = named.map(|package| format!("{} {}", package.name, package.version)).collect();
    let root = cache::subfolder(&cache::folder()?, "peers")?.join(versions.join("_").replace([':', '~', ' '], "-"));
    if !root.exists() {
        suite.unpack(&packages, None, &root)?;
    }
    let mut files: Vec<Copied> = Vec::new();
    for program in PROGRAMS {
        let path = root.join("usr/bin").join(program);
        let list = shell::output(Command::new(root.join(LOADER)).arg("--library-path").arg(root.join(LIBRARIES)).arg("--list").arg(&path))?;
        files.push(Copied { host: path, guest: format!("bin/{program}") });
        for file in libraries(&list)? {
            if files.iter().all(|other| other.guest != file.guest) {
                files.push(file);
            }
        }
    }
    Ok(Peers { files, versions: versions.join(", ") })
}

/// Whether a dependency holds libraries, rather than tools around them.
fn is_library(name: &str) -> bool {
    name.starts_with("lib") || name.starts_with("zlib")
}

/// What the loader says a program loads: `SONAME => FILE (ADDRESS)`. The loader itself is one of them.
fn libraries(list: &str) -> Result<Vec<Copied>> {
    let mut files = Vec::new();
    for (name, found) in list.lines().filter_map(|line| line.trim().split_once(" => ")) {
        let file = found.rsplit_once(" (").map_or(found, |(file, _)| file);
        let name = Path::new(name).file_name().with_context(|| format!("no name in {name:?}"))?.to_string_lossy();
        if !file.starts_with('/') {
            bail!("the packages hold no {name}");
        }
        files.push(Copied { host: PathBuf::from(file), guest: format!("lib/{name}") });
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_s_list_is_read() {
        let list =
            "\tlinux-vdso.so.1 (0x00007f)\n\tlibz.so.1 => /c/libz.so.1 (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 => /c/ld.so (0x1)\n";
        let files = libraries(list).unwrap();
        let places: Vec<_> = files.iter().map(|file| (file.host.to_str().unwrap(), file.guest.as_str())).collect();
        assert_eq!(places, [("/c/libz.so.1", "lib/libz.so.1"), ("/c/ld.so", "lib/ld-linux-x86-64.so.2")]);
        let error = libraries("\tlibz.so.1 => not found\n").unwrap_err().to_string();
        assert!(error.contains("libz.so.1"), "{error}");
    }
}
