//! The user's cache folder: everything downloaded or learned lives there, nothing is installed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};

/// The folder `observer` in the user's cache, made on first use.
pub fn folder() -> Result<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = match (base, std::env::var_os("HOME")) {
        (Some(base), _) => base,
        (None, Some(home)) => PathBuf::from(home).join(".cache"),
        (None, None) => bail!("neither XDG_CACHE_HOME nor HOME is set: there is no folder for downloads"),
    };
    subfolder(&base, "observer")
}

/// A subfolder, made when missing.
pub fn subfolder(parent: &Path, name: &str) -> Result<PathBuf> {
    let path = parent.join(name);
    fs::create_dir_all(&path).with_context(|| format!("make the folder {}", path.display()))?;
    Ok(path)
}

/// Waits for the cache's lock of that name; tests that run side by side download once. Released when dropped.
pub fn lock(name: &str) -> Result<File> {
    let path = folder()?.join(format!("{name}.lock"));
    let file = File::create(&path).with_context(|| path.display().to_string())?;
    file.lock().with_context(|| format!("lock {}", path.display()))?;
    Ok(file)
}

/// Whether a file was written within the last `age`.
pub fn is_younger(path: &Path, age: Duration) -> bool {
    let modified = fs::metadata(path).and_then(|meta| meta.modified());
    modified.is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|passed| passed < age))
}
