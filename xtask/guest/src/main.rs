//! First process of a test machine: prepares it, runs the job's commands, sends what they left in `/out`, powers off.

mod machine;
mod port;
mod results;
mod steps;

use std::fs;

use anyhow::{Context, Result};
use guest_init::{JOB_PATH, Job, Message};
use port::Port;
use rustix::system::{RebootCommand, reboot};

fn main() {
    // Returning from the first process is a kernel panic, which the host sees: so errors before the port exists only print.
    let outcome = run();
    if let Err(error) = &outcome {
        eprintln!("guest-init: {error:#}");
    }
    rustix::fs::sync();
    if let Err(error) = reboot(RebootCommand::PowerOff) {
        eprintln!("guest-init: power off: {error}");
    }
}

fn run() -> Result<()> {
    machine::early_mounts()?;
    let job = fs::read(JOB_PATH).context(JOB_PATH)?;
    let job: Job = serde_json::from_slice(&job).context(JOB_PATH)?;
    let modules = machine::load_modules(&job.modules);
    let port = Port::open()?;
    port.say(Message::Hello { release: rustix::system::uname().release().to_string_lossy().into_owned() })?;
    if let Err(error) = modules.and_then(|()| machine::prepare(&job, &port)) {
        port.say(Message::Failed { text: format!("{error:#}") })?;
        return Err(error);
    }
    port.say(Message::Ready)?;
    steps::run(&job, &port)?;
    results::send(&port)?;
    port.say(Message::Done)
}
