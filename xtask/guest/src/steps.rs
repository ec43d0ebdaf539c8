//! Runs the job's commands and forwards what they print.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use std::{fs, process, thread};

use anyhow::Result;
use guest_init::{Frame, Job, Message, Step};
use rustix::process::{Pid, Signal, kill_process};

use crate::port::Port;

/// How long the outputs of an ended command are still read: what it left running in the background may hold them open.
const DRAIN: Duration = Duration::from_secs(2);

/// Runs the steps until one fails that may not.
pub(crate) fn run(job: &Job, port: &Port) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(job.timeout_s);
    for (index, step) in job.steps.iter().enumerate() {
        port.say(Message::StepStart { index })?;
        let started = Instant::now();
        let (status, timed_out) = run_one(step, port, deadline)?;
        let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        port.say(Message::StepEnd { index, status, millis, timed_out })?;
        if timed_out || (status != 0 && !step.may_fail) {
            break;
        }
    }
    Ok(())
}

fn run_one(step: &Step, port: &Port, deadline: Instant) -> Result<(i32, bool)> {
    let Some((program, args)) = step.argv.split_first() else {
        return refuse(port, "an empty command");
    };
    let mut command = Command::new(program);
    command.args(args).env_clear();
    command.envs([("PATH", "/bin"), ("HOME", "/tmp"), ("TERM", "linux"), ("RUST_BACKTRACE", "1")]);
    command.envs(step.env.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        // The file may be there: then what is missing is the dynamic loader, which no guest has.
        Err(error) if Path::new(program).exists() || Path::new("/bin").join(program).exists() => {
            return refuse(port, &format!("{program}: {error} (is it a static program for this machine?)"));
        }
        Err(error) => return refuse(port, &format!("{program}: {error}")),
    };
    let (drained, ended) = mpsc::channel();
    pump(child.stdout.take(), Frame::Stdout, port, drained.clone());
    pump(child.stderr.take(), Frame::Stderr, port, drained);

    let timed_out = Arc::new(AtomicBool::new(false));
    let (done, waits) = mpsc::channel::<()>();
    let watch = {
        let timed_out = Arc::clone(&timed_out);
        thread::spawn(move || {
            if waits.recv_timeout(deadline.saturating_duration_since(Instant::now())) == Err(mpsc::RecvTimeoutError::Timeout) {
                timed_out.store(true, Ordering::Relaxed);
                kill_everything();
            }
        })
    };
    let status = child.wait()?;
    drop(done);
    // The watch only kills and ends; a panic in it could not be told to anyone better than by the missing verdict.
    let _ = watch.join();
    for _ in 0..2 {
        // Late output of a background process is not worth the wait.
        let _ = ended.recv_timeout(DRAIN);
    }
    Ok((code(status), timed_out.load(Ordering::Relaxed)))
}

/// Reports a command that did not start the way a shell would.
fn refuse(port: &Port, why: &str) -> Result<(i32, bool)> {
    port.send(&Frame::Stderr(format!("guest-init: cannot start {why}\n").into_bytes()))?;
    Ok((127, false))
}

fn pump(source: Option<impl Read + Send + 'static>, frame: fn(Vec<u8>) -> Frame, port: &Port, drained: mpsc::Sender<()>) {
    let (Some(mut source), port) = (source, port.clone()) else {
        return;
    };
    thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(read @ 1..) = source.read(&mut buffer) {
            if port.send(&frame(buffer[..read].to_vec())).is_err() {
                break;
            }
        }
        // Nobody listens any more when the drain gave up.
        let _ = drained.send(());
    });
}

fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(255)
}

/// Kills every process but this one. Kernel threads do not mind.
fn kill_everything() {
    let own = i32::try_from(process::id()).unwrap_or(1);
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        if let Some(pid) = pid.filter(|pid| *pid != own).and_then(Pid::from_raw) {
            // It may have ended by itself in the meantime.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}
