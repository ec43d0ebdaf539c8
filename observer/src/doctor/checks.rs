//! Requirements: pure judgements over facts, so that every answer can be tested.

use std::{fs, path::Path};

use serde::Serialize;

use crate::{
    kernel::{btf, cgroup, own_rules},
    stream::header::Lru,
};

const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYSLOG: u32 = 34;

/// How a requirement stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As wanted.
    Ok,
    /// Observer works, with less.
    Less,
    /// Live observation fails.
    Missing,
}

/// One row.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What is looked at.
    pub name: &'static str,
    /// How it stands.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What to change; empty when nothing.
    pub change: String,
}

/// What was read off the machine.
#[derive(Clone, Debug)]
pub struct Facts {
    /// `uname -r`.
    pub release: String,
    /// LRU in use.
    pub lru: Lru,
    /// Text of lru_gen/enabled, `None` when there is no such file.
    pub lru_gen_enabled: Option<String>,
    /// The kernel shows its BTF.
    pub btf: bool,
    /// Effective capabilities.
    pub capabilities: u64,
    /// Kernel symbols have addresses.
    pub symbol_addresses: bool,
    /// Text of the lockdown file, `None` when there is none.
    pub lockdown: Option<String>,
    /// Mount with the memory controller.
    pub cgroup_mount: Option<String>,
}

impl Facts {
    /// Reads them.
    pub fn of_this_machine() -> Self {
        let read = |path: &str| fs::read_to_string(path).ok();
        let status = read("/proc/self/status").unwrap_or_default();
        Self {
            release: rustix::system::uname().release().to_string_lossy().into_owned(),
            lru: own_rules::running_lru(),
            lru_gen_enabled: read("/sys/kernel/mm/lru_gen/enabled"),
            btf: Path::new(btf::RUNNING).exists(),
            capabilities: effective_capabilities(&status),
            symbol_addresses: addresses_shown(&read("/proc/kallsyms").unwrap_or_default()),
            lockdown: read("/sys/kernel/security/lockdown"),
            cgroup_mount: cgroup::running_memory_mount().map(|path| path.display().to_string()),
        }
    }

    fn has(&self, capability: u32) -> bool {
        self.capabilities & (1 << capability) != 0
    }

    /// May load and attach eBPF programs.
    pub fn privileged(&self) -> bool {
        self.has(CAP_SYS_ADMIN) || (self.has(CAP_BPF) && self.has(CAP_PERFMON))
    }
}

/// CapEff of /proc/PID/status.
fn effective_capabilities(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0)
}

/// kptr_restrict shows zeros to those who may not see.
fn addresses_shown(kallsyms: &str) -> bool {
    kallsyms.lines().take(100).any(|line| line.split_ascii_whitespace().next().is_some_and(|address| address.bytes().any(|b| b != b'0')))
}

/// All rows.
pub(super) fn all(facts: &Facts) -> Vec<Check> {
    vec![type_information(facts), privileges(facts), symbols(facts), lockdown(facts), mglru(facts), cgroups(facts)]
}

fn row(name: &'static str, state: State, found: impl Into<String>, change: &str) -> Check {
    Check { name, state, found: found.into(), change: change.to_owned() }
}

fn type_information(facts: &Facts) -> Check {
    if facts.btf {
        row("kernel type information", State::Ok, btf::RUNNING, "")
    } else {
        row("kernel type information", State::Missing, "none", "a kernel built with CONFIG_DEBUG_INFO_BTF=y")
    }
}

fn privileges(facts: &Facts) -> Check {
    match (facts.privileged(), facts.has(CAP_SYS_ADMIN)) {
        (true, true) => row("privileges", State::Ok, "CAP_SYS_ADMIN; given up once attached", ""),
        (true, false) => row("privileges", State::Ok, "CAP_BPF and CAP_PERFMON; given up once attached", ""),
        (false, _) => row(
            "privileges",
            State::Missing,
            "may not load eBPF programs",
            "run as root, or give the binary CAP_BPF, CAP_PERFMON and CAP_SYSLOG (setcap cap_bpf,cap_perfmon,cap_syslog+ep)",
        ),
    }
}

fn symbols(facts: &Facts) -> Check {
    if facts.symbol_addresses {
        row("kernel symbols", State::Ok, "addresses visible", "")
    } else if facts.has(CAP_SYSLOG) {
        row("kernel symbols", State::Less, "addresses hidden", "sysctl kernel.kptr_restrict=1, or the flag positions cannot be derived")
    } else {
        row("kernel symbols", State::Less, "addresses hidden", "CAP_SYSLOG, or the flag positions cannot be derived")
    }
}

fn lockdown(facts: &Facts) -> Check {
    let text = facts.lockdown.as_deref().unwrap_or("");
    // The mode in force stands in brackets.
    let mode = text.split('[').nth(1).and_then(|rest| rest.split(']').next()).unwrap_or("none");
    match mode {
        "confidentiality" => {
            row("lockdown", State::Missing, mode, "boot without lockdown=confidentiality: it forbids programs to read kernel memory")
        }
        _ => row("lockdown", State::Ok, mode, ""),
    }
}

fn mglru(facts: &Facts) -> Check {
    match (&facts.lru_gen_enabled, facts.lru) {
        (Some(text), Lru::Mglru) => row("multi-gen LRU", State::Ok, format!("enabled ({})", text.trim()), ""),
        (Some(text), Lru::Classical) => {
            row("multi-gen LRU", State::Less, format!("off ({})", text.trim()), "echo y > /sys/kernel/mm/lru_gen/enabled")
        }
        (None, _) => row("multi-gen LRU", State::Less, "not in this kernel", "a kernel built with CONFIG_LRU_GEN=y"),
    }
}

fn cgroups(facts: &Facts) -> Check {
    match &facts.cgroup_mount {
        Some(mount) => row("memory cgroups", State::Ok, mount.clone(), ""),
        None => row("memory cgroups", State::Less, "no mount with the memory controller", "mount cgroup2, or cgroups stay nameless"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            release: "7.3.4".to_owned(),
            lru: Lru::Mglru,
            lru_gen_enabled: Some("0x0007\n".to_owned()),
            btf: true,
            capabilities: u64::MAX,
            symbol_addresses: true,
            lockdown: Some("none [integrity] confidentiality\n".to_owned()),
            cgroup_mount: Some("/sys/fs/cgroup".to_owned()),
        }
    }

    fn state(facts: &Facts, name: &str) -> State {
        all(facts).into_iter().find(|check| check.name == name).unwrap().state
    }

    #[test]
    fn a_good_machine_has_nothing_to_change() {
        assert!(all(&facts()).iter().all(|check| check.state == State::Ok && check.change.is_empty()));
    }

    #[test]
    fn every_lack_says_what_to_change() {
        let lacking = Facts {
            lru: Lru::Classical,
            lru_gen_enabled: None,
            btf: false,
            capabilities: 0,
            symbol_addresses: false,
            lockdown: Some("none integrity [confidentiality]".to_owned()),
            cgroup_mount: None,
            ..facts()
        };
        assert!(all(&lacking).iter().all(|check| check.state != State::Ok && !check.change.is_empty()));
    }

    #[test]
    fn two_capabilities_do_instead_of_root() {
        let some = Facts { capabilities: 1 << CAP_BPF | 1 << CAP_PERFMON, ..facts() };
        assert_eq!(state(&some, "privileges"), State::Ok);
        assert_eq!(state(&Facts { capabilities: 1 << CAP_BPF, ..facts() }, "privileges"), State::Missing);
    }

    #[test]
    fn proc_texts_are_read() {
        assert_eq!(effective_capabilities("Name:\tx\nCapEff:\t000001ffffffffff\n"), 0x1ff_ffff_ffff);
        assert_eq!(effective_capabilities("garbage"), 0);
        assert!(!addresses_shown("0000000000000000 T _text\n0000000000000000 T x\n"));
        assert!(addresses_shown("0000000000000000 A fixed\nffffffff81000000 T _text\n"));
        assert!(!addresses_shown(""));
    }
}
