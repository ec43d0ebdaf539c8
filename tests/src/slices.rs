//! How long accesses took while they went on, for those who change something beside them.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};

/// Accesses of a slice: asking for the time is a thousandth of it.
pub const SLICE: u64 = 1024;

/// A file with a line for every [`SLICE`] accesses: when they began and ended (nanoseconds since boot), and the processor time
/// that this process took for them (nanoseconds).
#[derive(Debug)]
pub struct Slices {
    file: File,
    accesses: u64,
    begun: u64,
    cpu: u64,
}

impl Slices {
    /// Begins the first one.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self { file, accesses: 0, begun: read(ClockId::Boottime), cpu: read(ClockId::ProcessCPUTime) })
    }

    /// Counts an access.
    pub fn count(&mut self) -> Result<()> {
        self.accesses += 1;
        if self.accesses < SLICE {
            return Ok(());
        }
        let (ended, cpu) = (read(ClockId::Boottime), read(ClockId::ProcessCPUTime));
        writeln!(self.file, "{} {ended} {}", self.begun, cpu - self.cpu)?;
        // What writing takes belongs to none.
        (self.accesses, self.begun, self.cpu) = (0, read(ClockId::Boottime), read(ClockId::ProcessCPUTime));
        Ok(())
    }
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}
