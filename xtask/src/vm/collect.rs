//! Puts what the guest says together: outputs of the commands, results, how far it came.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use guest_init::{Frame, Message, Step};

use super::{Output, StepResult};
use crate::shell::say;

/// How far the guest came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Nothing was heard of it.
    Dark,
    /// Its first process runs.
    Up,
    /// Its commands run.
    Ready,
    /// Everything was sent.
    Done,
}

/// What was heard so far.
pub(super) struct Collector<'a, 'b> {
    pub(super) stage: Stage,
    pub(super) release: String,
    pub(super) boot: Duration,
    pub(super) steps: Vec<StepResult>,
    pub(super) notes: Vec<String>,
    pub(super) failed: Option<String>,
    pub(super) timed_out: bool,
    started: Instant,
    wanted: &'a [Step],
    output: &'a mut Output<'b>,
    out: Option<&'a Path>,
    file: Option<File>,
}

impl<'a, 'b> Collector<'a, 'b> {
    pub(super) fn new(wanted: &'a [Step], output: &'a mut Output<'b>, out: Option<&'a Path>) -> Self {
        Self {
            stage: Stage::Dark,
            release: String::new(),
            boot: Duration::ZERO,
            steps: Vec::new(),
            notes: Vec::new(),
            failed: None,
            timed_out: false,
            started: Instant::now(),
            wanted,
            output,
            out,
            file: None,
        }
    }

    /// The status of the first step that failed though it may not; 0 without one.
    pub(super) fn status(&self) -> i32 {
        let ended = self.steps.iter().zip(self.wanted);
        ended.filter(|(_, wanted)| !wanted.may_fail).map(|(step, _)| step.status).find(|status| *status != 0).unwrap_or(0)
    }

    /// Takes one frame. An error is the host's: its disk is full, its standard output closed.
    pub(super) fn take(&mut self, frame: Frame) -> Result<()> {
        match frame {
            Frame::Message(message) => self.message(message)?,
            Frame::Stdout(bytes) => match self.output {
                Output::Keep => self.current().stdout.extend_from_slice(&bytes),
                Output::Stream(stdout, _) => stdout.write_all(&bytes).and_then(|()| stdout.flush())?,
            },
            Frame::Stderr(bytes) => match self.output {
                Output::Keep => self.current().stderr.extend_from_slice(&bytes),
                Output::Stream(_, stderr) => stderr.write_all(&bytes).and_then(|()| stderr.flush())?,
            },
            Frame::Data(bytes) => {
                if let Some(file) = &mut self.file {
                    file.write_all(&bytes).context("write a result")?;
                }
            }
        }
        Ok(())
    }

    fn message(&mut self, message: Message) -> Result<()> {
        match message {
            Message::Hello { release } => {
                self.stage = Stage::Up;
                self.release = release;
            }
            Message::Ready => {
                self.stage = Stage::Ready;
                self.boot = self.started.elapsed();
                say(format_args!("{} is ready after {:.1} s", self.release, self.boot.as_secs_f64()));
            }
            Message::Note { text } => {
                say(format_args!("guest: {text}"));
                self.notes.push(text);
            }
            Message::Failed { text } => self.failed = Some(text),
            Message::StepStart { index } => {
                let argv = self.wanted.get(index).map(|step| step.argv.clone()).unwrap_or_default();
                self.steps.push(StepResult { argv, ..unstarted() });
            }
            Message::StepEnd { status, millis, timed_out, .. } => {
                let step = self.current();
                step.status = status;
                step.elapsed = Duration::from_millis(millis);
                self.timed_out |= timed_out;
            }
            Message::Directory { path } => {
                if let Some(path) = self.place(&path)? {
                    fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
                }
            }
            Message::File { path, mode, .. } => {
                self.file = match self.place(&path)? {
                    None => None,
                    Some(path) => {
                        let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(mode | 0o600).open(&path);
                        Some(opened.with_context(|| path.display().to_string())?)
                    }
                };
            }
            Message::Done => self.stage = Stage::Done,
        }
        Ok(())
    }

    /// The step that runs, or ran last.
    fn current(&mut self) -> &mut StepResult {
        if self.steps.is_empty() {
            self.steps.push(unstarted());
        }
        let last = self.steps.len() - 1;
        &mut self.steps[last]
    }

    /// Where a result goes on the host; a path that leaves the folder is an error.
    fn place(&self, relative: &str) -> Result<Option<PathBuf>> {
        let relative = Path::new(relative);
        if !relative.components().all(|part| matches!(part, Component::Normal(_))) {
            bail!("the guest sent a result named {}", relative.display());
        }
        Ok(self.out.map(|out| out.join(relative)))
    }
}

/// A step nothing is known of; the status is the shell's for "never ran".
fn unstarted() -> StepResult {
    StepResult { argv: Vec::new(), status: 255, elapsed: Duration::ZERO, stdout: Vec::new(), stderr: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_cannot_write_outside_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let mut output = Output::Keep;
        let mut collector = Collector::new(&[], &mut output, Some(folder.path()));
        let file = |path: &str| Frame::Message(Message::File { path: path.into(), mode: 0o644, len: 2 });
        assert!(collector.take(file("../a")).is_err());
        assert!(collector.take(file("/a")).is_err());
        collector.take(file("a")).unwrap();
        collector.take(Frame::Data(b"hi".to_vec())).unwrap();
        assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"hi");
    }

    #[test]
    fn outputs_belong_to_their_step() {
        let steps = [Step::new(["first"]), Step::new(["second"])];
        let mut output = Output::Keep;
        let mut collector = Collector::new(&steps, &mut output, None);
        for (index, text) in ["one", "two"].into_iter().enumerate() {
            collector.take(Frame::Message(Message::StepStart { index })).unwrap();
            collector.take(Frame::Stdout(text.into())).unwrap();
            let status = i32::try_from(index).unwrap();
            collector.take(Frame::Message(Message::StepEnd { index, status, millis: 5, timed_out: false })).unwrap();
        }
        let seen: Vec<_> = collector.steps.iter().map(|step| (step.argv[0].as_str(), step.status, step.stdout.as_slice())).collect();
        assert_eq!(seen, [("first", 0, b"one".as_slice()), ("second", 1, b"two")]);
        assert_eq!(collector.status(), 1);
    }

    #[test]
    fn a_step_that_may_fail_does_not_decide() {
        let steps = [Step::new(["first"]).may_fail(), Step::new(["second"])];
        let mut output = Output::Keep;
        let mut collector = Collector::new(&steps, &mut output, None);
        for (index, status) in [(0, 9), (1, 0)] {
            collector.take(Frame::Message(Message::StepStart { index })).unwrap();
            collector.take(Frame::Message(Message::StepEnd { index, status, millis: 5, timed_out: false })).unwrap();
        }
        assert_eq!(collector.status(), 0);
    }
}
