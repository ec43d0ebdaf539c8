//! Runs the emulator and decides when it is over: by the guest's word, the kernel's last words, or the clock.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use guest_init::{Frame, Step, read_frame};

use super::collect::{Collector, Stage};
use super::{Output, Verdict, Vm, VmResult, without_stamp};
use crate::qemu::{self, Accel, Machine};

/// How long the guest's first process may take to speak. A guest that KVM cannot run is often silent, not dead.
const BOOT_KVM: Duration = Duration::from_secs(20);
const BOOT_TCG: Duration = Duration::from_secs(120);

/// How much longer than the commands' own time the host waits: the guest kills them itself and sends what it has.
const GRACE: Duration = Duration::from_secs(30);

/// How long a kernel that stumbled may go on printing.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How long a guest may take to power off.
const POWER_OFF: Duration = Duration::from_secs(10);

/// Bytes of the kernel's console that are kept.
const CONSOLE_KEPT: usize = 4 << 20;

/// What the threads that listen to the emulator report.
enum Heard {
    Frame(Frame),
    Console(String),
    Emulator(String),
    PortClosed,
}

/// Runs the machine to its end.
pub(super) fn watch(machine: &Machine<'_>, vm: &Vm, steps: &[Step], output: &mut Output<'_>) -> Result<VmResult> {
    let started = Instant::now();
    let (child, port) = qemu::start(machine)?;
    let mut emulator = Emulator(child);
    let heard = listen(&mut emulator.0, port);
    let mut collector = Collector::new(steps, output, vm.out.as_deref());
    let mut console = String::new();
    let verdict = decide(&heard, &mut collector, &mut console, machine.accel, vm.timeout)?;
    if collector.stage == Stage::Done {
        emulator.wait(POWER_OFF);
    }
    drop(emulator);
    Ok(VmResult {
        verdict,
        release: collector.release,
        accel: machine.accel,
        boot: collector.boot,
        total: started.elapsed(),
        steps: collector.steps,
        notes: collector.notes,
        console,
        out: vm.out.clone(),
    })
}

fn decide(
    heard: &Receiver<Heard>,
    collector: &mut Collector<'_, '_>,
    console: &mut String,
    accel: Accel,
    timeout: Duration,
) -> Result<Verdict> {
    let boot = if accel == Accel::Kvm { BOOT_KVM } else { BOOT_TCG };
    let mut deadline = Instant::now() + boot;
    let mut stage = Stage::Dark;
    let mut complaint = None;
    let mut gone = false;
    let mut emulator = String::new();
    loop {
        match heard.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Heard::Frame(frame)) => {
                // Results on their way are a sign of life, however large they are.
                if matches!(frame, Frame::Data(_)) && complaint.is_none() {
                    deadline = deadline.max(Instant::now() + GRACE);
                }
                collector.take(frame)?;
            }
            Ok(Heard::Console(line)) => {
                if complaint.is_none() && is_complaint(&line) {
                    complaint = Some(without_stamp(&line).to_owned());
                    deadline = Instant::now() + LAST_WORDS;
                }
                if console.len() < CONSOLE_KEPT {
                    console.push_str(&line);
                    console.push('\n');
                }
            }
            Ok(Heard::Emulator(line)) => {
                if line.starts_with("KVM internal error") {
                    return Ok(Verdict::Failed(line));
                }
                emulator.push_str(&line);
                emulator.push(' ');
            }
            Ok(Heard::PortClosed) if collector.stage != Stage::Done => {
                // The emulator ended: its console may still be on the way.
                deadline = deadline.min(Instant::now() + LAST_WORDS);
                gone = true;
            }
            Ok(Heard::PortClosed) => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                return Ok(match complaint {
                    Some(line) => Verdict::Kernel(line),
                    None if gone => Verdict::Failed(format!("the machine went away {}", emulator.trim()).trim_end().to_owned()),
                    None if stage == Stage::Dark => Verdict::Failed(format!("no sign of life for {} s", boot.as_secs())),
                    None => Verdict::Timeout(format!("the guest fell silent for {} s", (timeout + GRACE).as_secs())),
                });
            }
        }
        if collector.stage != stage && complaint.is_none() && !gone {
            stage = collector.stage;
            deadline = Instant::now() + timeout + GRACE;
        }
        if let Some(why) = collector.failed.take() {
            return Ok(Verdict::Failed(why));
        }
        if stage == Stage::Done {
            return Ok(if collector.timed_out {
                Verdict::Timeout(format!("the command ran longer than {} s", timeout.as_secs()))
            } else {
                Verdict::Exit(collector.status())
            });
        }
    }
}

/// Whether a line of the kernel's console means that what follows cannot be trusted.
fn is_complaint(line: &str) -> bool {
    let line = without_stamp(line);
    ["Kernel panic", "BUG:", "Oops", "kernel BUG at", "general protection fault", "Internal error"]
        .iter()
        .any(|start| line.starts_with(start))
        || line.contains("soft lockup")
}

fn listen(child: &mut Child, port: UnixStream) -> Receiver<Heard> {
    let (send, heard) = mpsc::channel();
    lines(child.stdout.take(), Heard::Console, send.clone());
    lines(child.stderr.take(), Heard::Emulator, send.clone());
    thread::spawn(move || {
        let mut port = BufReader::with_capacity(64 << 10, port);
        while let Ok(Some(frame)) = read_frame(&mut port) {
            if send.send(Heard::Frame(frame)).is_err() {
                return;
            }
        }
        // The receiver is gone when the run is already over.
        let _ = send.send(Heard::PortClosed);
    });
    heard
}

fn lines(source: Option<impl Read + Send + 'static>, heard: fn(String) -> Heard, send: Sender<Heard>) {
    let Some(source) = source else { return };
    thread::spawn(move || {
        for line in BufReader::new(source).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if send.send(heard(line)).is_err() {
                return;
            }
        }
    });
}

/// The emulator's process, which does not outlive its run.
struct Emulator(Child);

impl Emulator {
    fn wait(&mut self, within: Duration) {
        let deadline = Instant::now() + within;
        while Instant::now() < deadline && matches!(self.0.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        // It has often ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_complaints_are_told_from_chatter() {
        for line in [
            "[    1.868314] Kernel panic - not syncing: VFS: Unable to mount root fs",
            "[    9.0] BUG: kernel NULL pointer dereference, address: 0000000000000000",
            "[    9.0] watchdog: BUG: soft lockup - CPU#0 stuck for 60s!",
            "[    9.0] Oops: Oops: 0000 [#1] SMP NOPTI",
        ] {
            assert!(is_complaint(line), "{line}");
        }
        for line in ["[    0.1] x86/cpu: no BUG: here", "vm: exit 0", "Run /init as init process"] {
            assert!(!is_complaint(line), "{line}");
        }
    }
}
