//! The eBPF object: built from `observer-ebpf` with a nightly compiler, committed so that everyone else needs none.

mod sources;
pub mod toolchain;
pub mod wrapper;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::programs::workspace;
use crate::shell::{self, say};
use sources::Stamp;
use toolchain::Toolchain;

/// Where the object is committed.
const OBJECT: &str = "observer/ebpf/observer.bpf.o";

/// Where the hash of its sources is committed.
const STAMP: &str = "observer/ebpf/observer.bpf.o.sources";

/// The target the programs are compiled for.
const TARGET: &str = "bpfel-unknown-none";

/// Name of the built file.
const BINARY: &str = "observer";

/// Builds the object and records what it was built from. Brings the parts of the toolchain that are missing.
pub fn build() -> Result<()> {
    let root = workspace();
    let toolchain = Toolchain::bring()?;
    let object = compile(&root, &toolchain)?;
    let stamp = Stamp { sources: sources::hash(&root)?, built_by: toolchain.version.clone() };
    let path = root.join(OBJECT);
    fs::create_dir_all(path.parent().unwrap_or(&root))?;
    let same = fs::read(&path).is_ok_and(|before| before == object);
    fs::write(&path, &object).with_context(|| path.display().to_string())?;
    fs::write(root.join(STAMP), stamp.to_string()).context(STAMP)?;
    say(format_args!("{OBJECT}: {} bytes, {}", object.len(), if same { "as before" } else { "changed" }));
    Ok(())
}

/// Checks that the committed object belongs to the sources: by their recorded hash, and where the toolchain that built
/// it is here, by building it again.
pub fn check() -> Result<()> {
    let root = workspace();
    let text = fs::read_to_string(root.join(STAMP)).with_context(|| format!("{STAMP}: run `cargo xtask ebpf`"))?;
    let stamp = Stamp::parse(&text).with_context(|| format!("{STAMP} is damaged: run `cargo xtask ebpf`"))?;
    if stamp.sources != sources::hash(&root)? {
        bail!("{OBJECT} is stale: its sources have changed since it was built; run `cargo xtask ebpf` and commit what it wrote");
    }
    say(format_args!("{OBJECT}: its sources are the ones it was built from"));
    let toolchain = match Toolchain::find() {
        Ok(toolchain) => toolchain,
        Err(missing) => {
            say(format_args!("not built again for comparison: {missing:#}"));
            return Ok(());
        }
    };
    let object = compile(&root, &toolchain)?;
    if toolchain.version != stamp.built_by {
        say(format_args!(
            "it builds here too; bytes are not compared, since {} built it and here is {}",
            stamp.built_by, toolchain.version
        ));
    } else if object == fs::read(root.join(OBJECT)).context(OBJECT)? {
        say("building it again gives the same bytes");
    } else {
        bail!("{OBJECT} is not what its sources give: run `cargo xtask ebpf` and commit what it wrote");
    }
    Ok(())
}

/// Compiles the programs; the result is the same in every folder.
fn compile(root: &Path, toolchain: &Toolchain) -> Result<Vec<u8>> {
    say(format_args!("building the eBPF programs with {}", toolchain.version));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from).join("ebpf");
    let mut cargo = toolchain.cargo()?;
    cargo.current_dir(root.join("observer-ebpf")).arg("build").args(["--release", "--locked", "--target", TARGET]);
    cargo.args(["-Z", "build-std=core"]).arg("--target-dir").arg(&target);
    // Names of this machine's folders would end up in messages and debug information.
    let mut flags = vec![format!("--remap-path-prefix={}=/observer", root.display())];
    if let Some(home) = cargo_home() {
        flags.push(format!("--remap-path-prefix={}=/cargo", home.display()));
    }
    flags.push(format!("--remap-path-prefix={}=/rust", toolchain.sysroot.display()));
    // Callbacks (bpf_loop) are only accepted with type information of the program.
    flags.extend(["-C".to_owned(), "link-arg=--btf".to_owned()]);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    wrapper::wrap(&mut cargo)?;
    shell::run(&mut cargo).context("the eBPF programs did not build")?;
    let built = target.join(TARGET).join("release").join(BINARY);
    strip(toolchain, &built)?;
    fs::read(&built).with_context(|| built.display().to_string())
}

/// Takes the debug information out that the linker needed to describe types: nobody reads it any more.
fn strip(toolchain: &Toolchain, object: &Path) -> Result<()> {
    let tools = fs::read_dir(toolchain.sysroot.join("lib/rustlib"))?.flatten().map(|entry| entry.path().join("bin/rust-objcopy"));
    let tool = tools.into_iter().find(|tool| tool.is_file()).context("this compiler comes without rust-objcopy")?;
    let libraries = toolchain.sysroot.join("lib");
    shell::run(Command::new(tool).env("LD_LIBRARY_PATH", libraries).arg("--strip-debug").arg(object)).context("rust-objcopy")
}

fn cargo_home() -> Option<PathBuf> {
    let own = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    own.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo")))
}
