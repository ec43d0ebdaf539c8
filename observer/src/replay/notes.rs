//! The one line of notes that a picture has room for.

/// Notes kept in full; a damaged recording has as many flaws as it likes.
const KEPT: usize = 3;

/// Notes so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    kept: Vec<String>,
    more: u64,
}

impl Notes {
    /// With a first one, unless that is empty.
    pub(super) fn new(first: &str) -> Notes {
        Notes { kept: Some(first).filter(|first| !first.is_empty()).map(str::to_owned).into_iter().collect(), more: 0 }
    }

    /// Adds one.
    pub(super) fn add(&mut self, note: String) {
        if self.kept.len() < KEPT {
            self.kept.push(note);
        } else {
            self.more += 1;
        }
    }

    /// All of them in a line.
    pub(super) fn line(&self) -> String {
        let mut line = self.kept.join("; ");
        if self.more > 0 {
            line.push_str(&format!("; and {} more", self.more));
        }
        line
    }
}
