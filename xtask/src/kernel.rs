//! Which kernel to boot: a name becomes a Debian package, a package becomes an image and its modules in the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::apt::{Package, Suite};
use crate::cache;
use crate::shell::say;

/// The suite whose kernel metapackage follows the newest kernel.
const NEWEST: &str = "trixie-backports";

/// Suites searched for a kernel by version, in this order.
const SUITES: [&str; 3] = ["trixie", "trixie-backports", "bookworm"];

/// The package that depends on a suite's current kernel for virtual machines.
const METAPACKAGE: &str = "linux-image-cloud-amd64";

/// How long a name keeps the package it was resolved to.
const RESOLVED_LASTS: Duration = Duration::from_secs(24 * 3600);

/// A kernel ready to boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// Name for messages: the package's, or the path as given.
    pub name: String,
    /// The image QEMU loads.
    pub image: PathBuf,
    /// Folder of its modules, if it has one.
    pub modules: Option<PathBuf>,
}

impl Kernel {
    /// Finds `newest`, a version such as `6.12`, or the path of an image; downloads what the cache lacks.
    pub fn resolve(name: &str) -> Result<Self> {
        if name.contains('/') {
            return Self::at(Path::new(name));
        }
        if name != "newest" && !name.starts_with(|first: char| first.is_ascii_digit()) {
            bail!("{name:?} is no kernel: give `newest`, a version such as 6.12, or the path of an image with a / in it");
        }
        let _lock = cache::lock("kernels")?;
        let folder = cache::subfolder(&cache::folder()?, "kernels")?;
        let memo = folder.join(format!("{name}.json"));
        let known = read_memo(&memo);
        if let Some(kernel) = &known
            && cache::is_younger(&memo, RESOLVED_LASTS)
        {
            return Ok(kernel.clone());
        }
        match (download(name, &folder), known) {
            (Ok(kernel), _) => {
                fs::write(&memo, serde_json::to_vec(&kernel)?).with_context(|| memo.display().to_string())?;
                Ok(kernel)
            }
            (Err(error), Some(kernel)) => {
                say(format_args!("could not ask for the current {name} kernel, using {}: {error:#}", kernel.name));
                Ok(kernel)
            }
            (Err(error), None) => Err(error),
        }
    }

    /// A kernel image of the user's own, with the modules beside it or installed for it.
    fn at(path: &Path) -> Result<Self> {
        let image = if path.is_dir() { path.join("arch/x86/boot/bzImage") } else { path.to_owned() };
        if !image.is_file() {
            bail!("there is no kernel image at {}", image.display());
        }
        let image = image.canonicalize()?;
        let beside = image.parent().filter(|folder| folder.join("kernel").is_dir()).map(Path::to_owned);
        let release = image.file_name().and_then(|name| name.to_str()?.strip_prefix("vmlinuz-"));
        let installed = release.map(|release| Path::new("/lib/modules").join(release)).filter(|folder| folder.is_dir());
        Ok(Self { name: path.display().to_string(), modules: beside.or(installed), image })
    }

    /// The kernel inside a folder of unpacked packages.
    fn unpacked(name: &str, root: &Path) -> Result<Self> {
        let modules = ["usr/lib/modules", "lib/modules"].iter().find_map(|folder| only_entry(&root.join(folder), ""));
        // Newer packages keep the image beside the modules, older ones in boot.
        let beside = modules.as_ref().map(|folder| folder.join("vmlinuz")).filter(|image| image.is_file());
        let image = beside.or_else(|| only_entry(&root.join("boot"), "vmlinuz-"));
        let image = image.with_context(|| format!("the packages of {name} hold no kernel image"))?;
        Ok(Self { name: name.to_owned(), image, modules })
    }
}

fn read_memo(path: &Path) -> Option<Kernel> {
    let kernel: Kernel = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    kernel.image.is_file().then_some(kernel)
}

fn only_entry(folder: &Path, prefix: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    entries.map(|entry| entry.path()).find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)))
}

fn download(name: &str, folder: &Path) -> Result<Kernel> {
    let (suite, package) = find_package(name)?;
    let target = folder.join(format!("{}_{}", package.name, package.version.replace([':', '~'], "-")));
    if !target.exists() {
        let packages = suite.closure(&package.name, is_kernel_part)?;
        say(format_args!("kernel {name}: {} {}", package.name, package.version));
        suite.unpack(&packages, None, &target)?;
    }
    Kernel::unpacked(&package.name, &target)
}

/// Whether a dependency of a kernel package holds a part of the kernel, rather than tools around it.
fn is_kernel_part(name: &str) -> bool {
    ["linux-image-", "linux-binary-", "linux-modules-"].iter().any(|prefix| name.starts_with(prefix))
}

fn find_package(name: &str) -> Result<(Suite, Package)> {
    if name == "newest" {
        let suite = Suite::open(NEWEST)?;
        let package = current(&suite)?.with_context(|| format!("{NEWEST} has no {METAPACKAGE}"))?;
        return Ok((suite, package));
    }
    for suite in SUITES {
        let suite = Suite::open(suite)?;
        if let Some(package) = current(&suite)?.filter(|package| is_version(&package.name, name)) {
            return Ok((suite, package));
        }
        let named = suite.names(&format!("linux-image-{name}"))?;
        let cloud = named.into_iter().filter(|package| is_version(package, name) && package.ends_with("-cloud-amd64"));
        if let Some(newest) = cloud.max_by_key(|package| version_key(package)) {
            let package = suite.show(&newest)?;
            return Ok((suite, package));
        }
    }
    bail!("no suite of {} has a cloud kernel {name}", SUITES.join(", "))
}

/// The kernel package a suite's metapackage stands for today.
fn current(suite: &Suite) -> Result<Option<Package>> {
    let meta = suite.show(METAPACKAGE)?;
    meta.depends.iter().find(|name| name.starts_with("linux-image-")).map(|name| suite.show(name)).transpose()
}

/// Whether a package is of that version: 6.1 is not 6.12.
fn is_version(package: &str, version: &str) -> bool {
    let rest = package.strip_prefix("linux-image-").and_then(|rest| rest.strip_prefix(version));
    rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
}

/// Orders package names by the numbers in them.
fn version_key(package: &str) -> Vec<u64> {
    package.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_matches_whole_numbers() {
        assert!(is_version("linux-image-6.12.117+deb13-cloud-amd64", "6.12"));
        assert!(!is_version("linux-image-6.12.117+deb13-cloud-amd64", "6.1"));
        assert!(!is_version("linux-headers-6.12", "6.12"));
    }

    #[test]
    fn versions_order_by_number() {
        assert!(version_key("linux-image-6.18.10+deb13-cloud-amd64") > version_key("linux-image-6.18.9+deb13-cloud-amd64"));
    }

    #[test]
    fn other_words_are_no_kernels() {
        let error = Kernel::resolve("oldest").unwrap_err().to_string();
        assert!(error.contains("newest"), "{error}");
        let error = Kernel::resolve("./no/such/image").unwrap_err().to_string();
        assert!(error.contains("no kernel image"), "{error}");
    }
}
