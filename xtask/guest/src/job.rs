//! What the guest is asked to do.

use serde::{Deserialize, Serialize};

/// Everything the guest does between power-on and power-off.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Job {
    /// Module files of the initramfs, in the order in which they load.
    pub modules: Vec<String>,
    /// Whether an ext4 disk is attached and belongs on `/data`.
    pub disk: bool,
    /// Size in bytes of the compressed swap in memory; none without it.
    pub zram: Option<u64>,
    /// What `lru_gen/enabled` is set to.
    pub mglru: bool,
    /// Seconds after which the running command is killed and the results are sent as they are.
    pub timeout_s: u64,
    /// The commands, one after another.
    pub steps: Vec<Step>,
}

/// One command: its words are passed on exactly, no shell reads them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Variables added to the guest's small environment.
    pub env: Vec<(String, String)>,
    /// Whether the steps after it run although this one failed.
    pub may_fail: bool,
}

impl Step {
    /// A step from its words.
    pub fn new<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Self {
        Self { argv: argv.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// The same step with one more environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// The same step, whose failure does not stop the ones after it.
    #[must_use]
    pub fn may_fail(mut self) -> Self {
        self.may_fail = true;
        self
    }
}
