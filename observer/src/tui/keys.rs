//! Which key does what: one table behind the input, the footer and the help screen.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::action::Action;
use super::state::Mode;

/// One key and what it does while no prompt is open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Binding {
    /// Keys that do it.
    pub(super) codes: &'static [KeyCode],
    /// How they are written.
    pub(super) label: &'static str,
    /// What they do, for the help screen.
    pub(super) what: &'static str,
    /// Only where the source can be moved in.
    pub(super) replay: bool,
    /// The action.
    pub(super) action: Action,
}

const fn key(codes: &'static [KeyCode], label: &'static str, what: &'static str, action: Action) -> Binding {
    Binding { codes, label, what, replay: false, action }
}

const fn replay(codes: &'static [KeyCode], label: &'static str, what: &'static str, action: Action) -> Binding {
    Binding { codes, label, what, replay: true, action }
}

use KeyCode::{BackTab, Char, Down, End, Enter, Esc, Home, Left, PageDown, PageUp, Right, Tab, Up};

/// Seconds that one seek goes.
pub(super) const SEEK_S: i64 = 5;

/// All of them.
pub(super) const BINDINGS: &[Binding] = &[
    key(&[Char('?'), KeyCode::F(1)], "?", "this help", Action::Help),
    key(&[Char('q')], "q", "quit (also Ctrl-C)", Action::Quit),
    key(&[Char(' ')], "space", "pause, continue", Action::TogglePause),
    key(&[Char('r')], "r", "next rule set to compare with", Action::NextRule),
    key(&[Char('R')], "R", "previous rule set", Action::PrevRule),
    key(&[Tab], "tab", "next pane", Action::NextPane),
    key(&[BackTab], "shift-tab", "previous pane", Action::NextPane),
    key(&[Char('j'), Down], "j ↓", "down", Action::Move(1)),
    key(&[Char('k'), Up], "k ↑", "up", Action::Move(-1)),
    key(&[PageDown], "pgdn", "ten down", Action::Move(10)),
    key(&[PageUp], "pgup", "ten up", Action::Move(-10)),
    key(&[Char('g'), Home], "g home", "first", Action::First),
    key(&[Char('G'), End], "G end", "last", Action::Last),
    key(&[Enter], "enter", "open the selected lruvec or file", Action::Open),
    key(&[Esc], "esc", "close; clear the filter", Action::Back),
    key(&[Char('s')], "s", "sort the pane by the next column", Action::Sort),
    key(&[Char('/')], "/", "filter the pane by name", Action::Filter),
    key(&[Char('v')], "v", "tiers or references (short screens)", Action::NextPlaces),
    key(&[Char('h')], "h", "source and hooks: seen and unknown", Action::Hooks),
    key(&[Char('w')], "w", "what if: refaults of each rule set alone", Action::WhatIf),
    key(&[Char('c')], "c", "cost: what observing takes from the machine", Action::Cost),
    key(&[Char('T')], "T", "next theme", Action::NextTheme),
    replay(&[Char('+'), Char('=')], "+", "faster", Action::Faster),
    replay(&[Char('-')], "-", "slower", Action::Slower),
    replay(&[Char('['), Left], "[ ←", "back five seconds", Action::SeekBy(-SEEK_S)),
    replay(&[Char(']'), Right], "] →", "on five seconds", Action::SeekBy(SEEK_S)),
    replay(&[Char(',')], ",", "back one window", Action::Step(-1)),
    replay(&[Char('.')], ".", "on one window", Action::Step(1)),
    replay(&[Char('t')], "t", "jump to a time: 90, 1:30, +5, -5, 50%", Action::Jump),
];

/// Keys for the footer, and whether only a replay has them; the first ones survive on a narrow screen.
pub(super) const FOOTER: &[(&str, &str, bool)] = &[
    ("?", "help", false),
    ("q", "quit", false),
    ("space", "pause", false),
    ("r", "rules", false),
    ("tab", "pane", false),
    ("/", "filter", false),
    ("+ -", "speed", true),
    ("[ ]", "seek", true),
    ("enter", "open", false),
    ("s", "sort", false),
    ("w", "what if", false),
    ("h", "hooks", false),
    ("t", "jump", true),
    ("v", "tiers/refs", false),
    ("T", "theme", false),
];

/// What a key press means in this mode.
pub(super) fn action(event: KeyEvent, mode: &Mode) -> Option<Action> {
    let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
    if ctrl {
        return match event.code {
            Char('c') => Some(Action::Quit),
            Char('z') => Some(Action::Suspend),
            Char('l') => Some(Action::Redraw),
            Char('u') if matches!(mode, Mode::Prompt(_)) => Some(Action::ClearLine),
            _ => None,
        };
    }
    if event.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SUPER) {
        return None;
    }
    if let Mode::Prompt(_) = mode {
        return match event.code {
            Enter => Some(Action::Accept),
            Esc => Some(Action::Back),
            KeyCode::Backspace => Some(Action::Erase),
            Char(c) => Some(Action::Type(c)),
            _ => None,
        };
    }
    BINDINGS.iter().find(|b| b.codes.contains(&event.code)).map(|b| b.action)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_bound_twice() {
        let mut seen = Vec::new();
        for code in BINDINGS.iter().flat_map(|b| b.codes) {
            assert!(!seen.contains(&code), "{code:?}");
            seen.push(code);
        }
    }

    #[test]
    fn the_footer_names_keys_that_exist() {
        for (label, _, replay) in FOOTER {
            for key in label.split(' ') {
                let found = BINDINGS.iter().any(|b| b.replay == *replay && b.label.split(' ').any(|l| l == key));
                assert!(found, "{key}");
            }
        }
    }
}
