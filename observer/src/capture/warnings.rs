//! Rare warnings of the programs themselves (aya-log), for the user to see.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use aya::Ebpf;
use aya_log::EbpfLogger;

/// Different warnings remembered; programs have a handful.
const MAX_KINDS: usize = 64;

/// Keeps each different line once.
#[derive(Clone, Debug, Default)]
struct Lines(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    told: HashSet<String>,
    new: Vec<String>,
}

impl Lines {
    fn add(&self, line: String) {
        // A panic elsewhere does not make the lines wrong.
        let mut kept = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if kept.told.len() < MAX_KINDS && kept.told.insert(line.clone()) {
            kept.new.push(line);
        }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).new)
    }
}

impl log::Log for Lines {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        self.add(format!("a program in the kernel warns: {}", record.args()));
    }

    fn flush(&self) {}
}

/// The programs' log and what came through it.
pub(super) struct Warnings {
    logger: Option<EbpfLogger<Lines>>,
    lines: Lines,
}

impl Warnings {
    /// Of a loaded object; one without a log is silent.
    pub(super) fn of(ebpf: &mut Ebpf) -> Self {
        let lines = Lines::default();
        let logger = EbpfLogger::init_with_logger(ebpf, lines.clone()).ok();
        Self { logger, lines }
    }

    /// Reads what the programs wrote.
    pub(super) fn collect(&mut self) {
        if let Some(logger) = &mut self.logger {
            logger.flush();
        }
    }

    /// New lines since the last call.
    pub(super) fn take(&self) -> Vec<String> {
        self.lines.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_told_once() {
        let lines = Lines::default();
        lines.add("one".into());
        lines.add("one".into());
        lines.add("two".into());
        assert_eq!(lines.take(), ["one", "two"]);
        lines.add("two".into());
        assert!(lines.take().is_empty());
    }
}
