//! What the user has chosen: everything on the screen that is not in the picture.

use super::theme::{Depth, Look, Theme};
use crate::report::known::{self, Known};
use crate::session::frame::{FileFrame, Frame, LruvecFrame, SourceKind};

/// Which pane the keys go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pane {
    #[default]
    Lruvecs,
    Files,
}

/// What a prompt asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    Filter(Pane),
    Jump,
}

/// A line being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Prompt {
    pub(super) ask: Ask,
    pub(super) text: String,
}

/// What lies over the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Popup {
    Help,
    Hooks,
    WhatIf,
    Cost,
    /// By key; None for all of them together.
    Lruvec(Option<u64>),
    File(u64),
}

/// Where keys go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Panes,
    Prompt(Prompt),
    Popup(Popup),
}

/// Order of lruvecs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LruvecSort {
    #[default]
    Pages,
    Refaults,
    Name,
}

impl LruvecSort {
    pub(super) fn next(self) -> Self {
        match self {
            Self::Pages => Self::Refaults,
            Self::Refaults => Self::Name,
            Self::Name => Self::Pages,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Pages => "pages",
            Self::Refaults => "refaults",
            Self::Name => "name",
        }
    }
}

/// Order of files. All but the name are largest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FileSort {
    /// All divergence of the rule set shown.
    #[default]
    Divergence,
    Avoidable,
    WouldKeep,
    OnlyPredicted,
    OnlyActual,
    Both,
    Pages,
    Accesses,
    Name,
}

impl FileSort {
    pub(super) fn next(self) -> Self {
        match self {
            Self::Divergence => Self::Avoidable,
            Self::Avoidable => Self::WouldKeep,
            Self::WouldKeep => Self::OnlyPredicted,
            Self::OnlyPredicted => Self::OnlyActual,
            Self::OnlyActual => Self::Both,
            Self::Both => Self::Pages,
            Self::Pages => Self::Accesses,
            Self::Accesses => Self::Name,
            Self::Name => Self::Divergence,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Divergence => "difference",
            Self::Avoidable => "avoidable",
            Self::WouldKeep => "keeps",
            Self::OnlyPredicted => "only it",
            Self::OnlyActual => "only kernel",
            Self::Both => "both",
            Self::Pages => "pages",
            Self::Accesses => "accesses",
            Self::Name => "name",
        }
    }
}

/// What the second table of the comparison counts by, where there is room for one only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Places {
    #[default]
    Tiers,
    Refs,
}

/// The user's choices.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) pane: Pane,
    pub(super) mode: Mode,
    /// First line shown of a popup.
    pub(super) scroll: usize,
    /// Name of the rule set compared with; None for the default.
    pub(super) rule: Option<String>,
    /// Key of the lruvec shown; None for all.
    pub(super) lruvec: Option<u64>,
    /// Key of the selected file; None for the first.
    pub(super) file: Option<u64>,
    pub(super) lruvec_sort: LruvecSort,
    pub(super) file_sort: FileSort,
    pub(super) lruvec_filter: String,
    pub(super) file_filter: String,
    pub(super) places: Places,
    pub(super) paused: bool,
    /// Of a replay; 1 is as recorded.
    pub(super) speed: f64,
    pub(super) look: Look,
    /// No colour whatever the look.
    pub(super) no_color: bool,
    pub(super) depth: Depth,
    /// A line for the user until the next key.
    pub(super) notice: String,
    /// Size of the screen.
    pub(super) size: (u16, u16),
}

/// Whether one can move in time.
pub(super) fn seekable(frame: &Frame) -> bool {
    matches!(frame.source.kind, SourceKind::Recording | SourceKind::Embedded)
}

impl State {
    /// The styles to draw with.
    pub(super) fn theme(&self) -> Theme {
        Theme::new(if self.no_color { Look::Mono } else { self.look }, self.depth)
    }

    /// Index of the rule set compared with: the user's choice, or the one shown first.
    pub(super) fn rule(&self, frame: &Frame) -> Option<usize> {
        let named = self.rule.as_deref().and_then(|name| frame.rules.iter().position(|r| r.name == name));
        named.or_else(|| known::featured(frame))
    }

    /// The lruvec shown; None for all.
    pub(super) fn lruvec<'a>(&self, frame: &'a Frame) -> Option<&'a LruvecFrame> {
        let key = self.lruvec?;
        frame.lruvecs.iter().find(|l| l.key == key)
    }

    /// Lruvecs as listed.
    pub(super) fn lruvecs<'a>(&self, frame: &'a Frame) -> Vec<&'a LruvecFrame> {
        let mut list: Vec<&LruvecFrame> = frame.lruvecs.iter().filter(|l| matches(&l.cgroup, &self.lruvec_filter)).collect();
        match self.lruvec_sort {
            LruvecSort::Pages => list.sort_by_key(|l| std::cmp::Reverse(sum(&l.pages.unwrap_or(l.actual.by_age)))),
            LruvecSort::Refaults => list.sort_by_key(|l| std::cmp::Reverse(l.refaults)),
            LruvecSort::Name => list.sort_by(|a, b| (&a.cgroup, a.node).cmp(&(&b.cgroup, b.node))),
        }
        list
    }

    /// Files as listed: those of the lruvec shown.
    pub(super) fn files<'a>(&self, frame: &'a Frame, known: &Known) -> Vec<&'a FileFrame> {
        let scope = self.lruvec(frame).map(|l| l.key);
        let mut list: Vec<&FileFrame> = frame
            .files
            .iter()
            .filter(|f| scope.is_none_or(|key| f.lruvec == key))
            .filter(|f| matches(&f.name, &self.file_filter) || matches(&f.cgroup, &self.file_filter))
            .collect();
        let rule = self.rule(frame).unwrap_or(0);
        // Numbers that are not shown do not order the table either.
        let sort = match self.file_sort {
            FileSort::Pages | FileSort::Accesses | FileSort::Name => self.file_sort,
            _ if !known.predictions() => FileSort::Accesses,
            other => other,
        };
        let of = |f: &FileFrame| {
            let d = f.by_rules.get(rule).copied().unwrap_or_default();
            match sort {
                FileSort::Divergence => known::divergence(f, rule),
                FileSort::Avoidable => d.avoidable,
                FileSort::WouldKeep => d.would_keep,
                FileSort::OnlyPredicted => d.only_predicted,
                FileSort::OnlyActual => d.only_actual,
                FileSort::Both => d.both,
                FileSort::Pages => f.pages,
                FileSort::Accesses => f.accesses,
                FileSort::Name => 0,
            }
        };
        match sort {
            FileSort::Name => list.sort_by(|a, b| a.name.cmp(&b.name)),
            _ => list.sort_by_key(|f| std::cmp::Reverse(of(f))),
        }
        list
    }
}

/// A filter is a part of the name; case counts only if the filter has capitals.
fn matches(name: &str, filter: &str) -> bool {
    if filter.is_empty() || name.contains(filter) {
        return true;
    }
    !filter.chars().any(char::is_uppercase) && name.to_lowercase().contains(filter)
}

/// All pages of a table.
pub(super) fn sum<const N: usize>(table: &[[u64; 2]; N]) -> u64 {
    table.iter().flatten().fold(0, |sum, n| sum.saturating_add(*n))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn filters_are_smart_about_case() {
        assert!(matches("/Data/hot.db", "data"));
        assert!(!matches("/data/hot.db", "Data"));
        assert!(matches("/Data/hot.db", "Data"));
        assert!(matches("x", ""));
    }
}
