//! `with-capabilities cap_bpf,cap_perfmon CMD…`: runs a command as an ordinary user that has these capabilities and no more.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use rustix::process::{Gid, Uid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, configure_capability_in_ambient_set, set_capabilities, set_keep_capabilities, set_thread_res_gid,
    set_thread_res_uid,
};

/// Nobody's.
const USER: u32 = 65_534;

fn main() -> ExitCode {
    let error = match become_user() {
        Ok(never) => match never {},
        Err(error) => error,
    };
    eprintln!("with-capabilities: {error:#}");
    ExitCode::FAILURE
}

fn become_user() -> Result<std::convert::Infallible> {
    let mut words = std::env::args().skip(1);
    let (Some(list), Some(program)) = (words.next(), words.next()) else { bail!("with-capabilities cap_a,cap_b CMD…") };
    let mut wanted = CapabilitySet::empty();
    for name in list.split(',').filter(|name| !name.is_empty()) {
        wanted |= match name {
            "cap_bpf" => CapabilitySet::BPF,
            "cap_perfmon" => CapabilitySet::PERFMON,
            "cap_syslog" => CapabilitySet::SYSLOG,
            "cap_dac_read_search" => CapabilitySet::DAC_READ_SEARCH,
            "cap_sys_admin" => CapabilitySet::SYS_ADMIN,
            _ => bail!("{name} is not known here"),
        };
    }
    set_keep_capabilities(true).context("keep capabilities")?;
    let (user, group) = (Uid::from_raw(USER), Gid::from_raw(USER));
    set_thread_res_gid(group, group, group).context("another group")?;
    set_thread_res_uid(user, user, user).context("another user")?;
    set_capabilities(None, CapabilitySets { effective: wanted, permitted: wanted, inheritable: wanted }).context("set capabilities")?;
    for one in wanted.iter() {
        configure_capability_in_ambient_set(one, true).context("ambient capabilities")?;
    }
    Err(Command::new(&program).args(words).exec()).with_context(|| program)
}
