//! Debian packages of any suite, through a private apt configuration: no root, nothing installed, signatures checked by apt.
//!
//! The mirror is the one this machine's apt already uses, so the project names no host.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::cache;
use crate::shell::{self, say};

/// How long a suite's package lists are believed before they are fetched again.
const LISTS_LAST: Duration = Duration::from_secs(24 * 3600);

/// Variable that names a Debian mirror where apt's own configuration has none (other distributions).
pub const MIRROR_VARIABLE: &str = "OBSERVER_DEBIAN_MIRROR";

/// One suite of the mirror, with package lists of its own.
#[derive(Debug)]
pub struct Suite {
    name: String,
    folder: PathBuf,
}

impl Suite {
    /// Opens a suite, fetching its package lists when they are missing or older than a day.
    pub fn open(name: &str) -> Result<Self> {
        let _lock = cache::lock("apt")?;
        let folder = cache::subfolder(&cache::subfolder(&cache::folder()?, "apt")?, name)?;
        let suite = Self { name: name.to_owned(), folder };
        suite.refresh()?;
        Ok(suite)
    }

    fn refresh(&self) -> Result<()> {
        let stamp = self.folder.join("fetched");
        if cache::is_younger(&stamp, LISTS_LAST) {
            return Ok(());
        }
        say(format_args!("fetching the package lists of {}", self.name));
        for part in ["state/lists/partial", "cache/archives/partial"] {
            cache::subfolder(&self.folder, part)?;
        }
        fs::write(self.folder.join("status"), "")?;
        let keyring = Path::new("/usr/share/keyrings/debian-archive-keyring.gpg");
        let signed = if keyring.exists() { format!("[signed-by={}] ", keyring.display()) } else { String::new() };
        fs::write(self.folder.join("sources.list"), format!("deb {signed}{} {} main\n", mirror()?, self.name))?;
        match shell::run(self.apt("apt-get")?.arg("update")) {
            Ok(()) => fs::write(&stamp, "").with_context(|| stamp.display().to_string()),
            Err(error) if stamp.exists() => {
                say(format_args!("could not refresh the lists of {}, using the ones from before: {error:#}", self.name));
                Ok(())
            }
            Err(error) => Err(error).with_context(|| format!("the package lists of {} could not be fetched", self.name)),
        }
    }

    /// An apt program that sees this suite and nothing of the machine's own state.
    fn apt(&self, program: &str) -> Result<Command> {
        let mut command = shell::command(program, "apt")?;
        let folder = self.folder.display();
        let options = [
            format!("Dir::Etc::SourceList={folder}/sources.list"),
            "Dir::Etc::SourceParts=/dev/null".to_owned(),
            "Dir::Etc::Preferences=/dev/null".to_owned(),
            "Dir::Etc::PreferencesParts=/dev/null".to_owned(),
            format!("Dir::State={folder}/state"),
            format!("Dir::State::Lists={folder}/state/lists"),
            format!("Dir::State::Status={folder}/status"),
            format!("Dir::Cache={folder}/cache"),
            "Acquire::Languages=none".to_owned(),
            "Acquire::Retries=3".to_owned(),
            // As root apt would download as another user, who may not see the cache folder.
            "APT::Sandbox::User=root".to_owned(),
            "Debug::NoLocking=true".to_owned(),
            "APT::Architecture=amd64".to_owned(),
        ];
        for option in options {
            command.arg("-o").arg(option);
        }
        Ok(command)
    }

    /// Names of the packages that begin with `prefix`.
    pub fn names(&self, prefix: &str) -> Result<Vec<String>> {
        let list = shell::output(self.apt("apt-cache")?.args(["pkgnames", prefix]))?;
        Ok(list.lines().map(str::to_owned).collect())
    }

    /// The newest version of a package, with the names it depends on.
    pub fn show(&self, package: &str) -> Result<Package> {
        let text = shell::output(self.apt("apt-cache")?.args(["show", "--no-all-versions", package]))?;
        Package::parse(&text).with_context(|| format!("{} says nothing of the package {package}", self.name))
    }

    /// The package and what it depends on, as far as the names satisfy `wanted`.
    pub fn closure(&self, package: &str, wanted: impl Fn(&str) -> bool) -> Result<Vec<Package>> {
        let mut seen = BTreeSet::from([package.to_owned()]);
        let mut queue = VecDeque::from([package.to_owned()]);
        let mut found = Vec::new();
        while let Some(name) = queue.pop_front() {
            let package = self.show(&name)?;
            for name in &package.depends {
                if wanted(name) && seen.insert(name.clone()) {
                    queue.push_back(name.clone());
                }
            }
            found.push(package);
        }
        Ok(found)
    }

    /// Downloads packages and unpacks them, or the part of them that `only` names as a pattern for tar, into `target`,
    /// which appears complete or not at all.
    pub fn unpack(&self, packages: &[Package], only: Option<&str>, target: &Path) -> Result<()> {
        let parent = target.parent().context("a folder to unpack into")?;
        fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
        let work = tempfile::Builder::new().prefix(".unpack-").tempdir_in(parent)?;
        let (debs, root) = (cache::subfolder(work.path(), "debs")?, cache::subfolder(work.path(), "root")?);
        for package in packages {
            say(format_args!(
                "downloading {} {} ({} MiB) from {}",
                package.name,
                package.version,
                package.size.div_ceil(1 << 20),
                self.name
            ));
            let name = format!("{}={}", package.name, package.version);
            shell::run(self.apt("apt-get")?.args(["download", &name]).current_dir(&debs))?;
        }
        for entry in fs::read_dir(&debs)? {
            let deb = entry?.path();
            unpack(&deb, only, &root)?;
        }
        fs::rename(&root, target).with_context(|| format!("put the packages into {}", target.display()))
    }
}

fn unpack(deb: &Path, only: Option<&str>, root: &Path) -> Result<()> {
    let mut dpkg = shell::command("dpkg-deb", "dpkg")?;
    let Some(pattern) = only else {
        return shell::output(dpkg.arg("-x").arg(deb).arg(root)).map(drop);
    };
    let mut whole = dpkg.arg("--fsys-tarfile").arg(deb).stdout(Stdio::piped()).spawn().context("dpkg-deb")?;
    let mut tar = shell::command("tar", "tar")?;
    tar.args(["-x", "--wildcards", "-C"]).arg(root).arg(pattern);
    let part = tar.stdin(whole.stdout.take().context("dpkg-deb's output")?).status().context("tar")?;
    let whole = whole.wait().context("dpkg-deb")?;
    if !part.success() || !whole.success() {
        bail!("{} could not be unpacked (tar: {part}, dpkg-deb: {whole})", deb.display());
    }
    Ok(())
}

/// What the package lists say of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Bytes to download.
    pub size: u64,
    /// Names of the packages it needs.
    pub depends: Vec<String>,
}

impl Package {
    fn parse(text: &str) -> Option<Self> {
        let field =
            |name: &str| text.lines().take_while(|line| !line.is_empty()).find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        let depends = [field("Depends"), field("Pre-Depends")].into_iter().flatten().flat_map(|list| list.split([',', '|']));
        Some(Self {
            name: field("Package")?.to_owned(),
            version: field("Version")?.to_owned(),
            size: field("Size")?.parse().ok()?,
            depends: depends.filter_map(|item| Some(item.split_whitespace().next()?.to_owned())).collect(),
        })
    }
}

/// The Debian mirror of this machine's own apt configuration.
fn mirror() -> Result<String> {
    if let Ok(mirror) = std::env::var(MIRROR_VARIABLE) {
        return Ok(mirror);
    }
    let format = "$(REPO_URI)|$(RELEASE)|$(ORIGIN)";
    let list = shell::output(shell::command("apt-get", "apt")?.args(["indextargets", "--format", format, "Created-By: Packages"]))?;
    choose_mirror(&list).with_context(|| {
        format!("apt's sources name no Debian mirror; set {MIRROR_VARIABLE} to the address of one (the part before `dists/`)")
    })
}

/// Picks the main archive: security and updates suites live elsewhere or beside it.
fn choose_mirror(list: &str) -> Option<String> {
    list.lines().find_map(|line| {
        let mut fields = line.split('|');
        let (uri, release, origin) = (fields.next()?, fields.next()?, fields.next()?);
        // Without downloaded lists apt does not know the origin and repeats the word.
        let debian = origin == "Debian" || (!origin.starts_with(char::is_alphabetic) && uri.trim_end_matches('/').ends_with("/debian"));
        (debian && !release.contains("security")).then(|| uri.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_archive_is_chosen() {
        let list = "http://m/debian-security/|bookworm-security|Debian\nhttp://m/debian/|bookworm|Debian\n";
        assert_eq!(choose_mirror(list).as_deref(), Some("http://m/debian/"));
        assert_eq!(choose_mirror("http://m/debian/|bookworm|$(ORIGIN)\n").as_deref(), Some("http://m/debian/"));
        assert_eq!(choose_mirror("http://m/ubuntu/|noble|Ubuntu\n"), None);
    }

    #[test]
    fn a_package_stanza_is_read() {
        let text = "Package: linux-image-7\nVersion: 7.3.4-1\nDepends: linux-binary-7 (= 7.3.4-1), kmod | x\nPre-Depends: a\nSize: 12\n\nPackage: other\n";
        let package = Package::parse(text).unwrap();
        assert_eq!((package.name.as_str(), package.version.as_str(), package.size), ("linux-image-7", "7.3.4-1", 12));
        assert_eq!(package.depends, ["linux-binary-7", "kmod", "x", "a"]);
    }
}
