//! What an action does to the state, and what it asks of the world.

use super::action::Action;
use super::state::{Ask, Mode, Pane, Places, Popup, Prompt, State, seekable};
use super::{Control, Seek};
use crate::report::known::Known;
use crate::session::frame::Frame;

/// What the loop has to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Effect {
    /// Tell the session.
    Control(Control),
    /// Give the terminal back to the shell until continued.
    Suspend,
    /// Draw everything anew.
    Redraw,
}

/// Speeds of a replay.
const SPEEDS: [f64; 13] = [0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0];

/// Carries out an action.
pub(super) fn update(state: &mut State, frame: &Frame, action: Action) -> Option<Effect> {
    state.notice.clear();
    if action == Action::Quit {
        return Some(Effect::Control(Control::Quit));
    }
    match action {
        Action::Suspend => return Some(Effect::Suspend),
        Action::Redraw => return Some(Effect::Redraw),
        _ => (),
    }
    match &mut state.mode {
        Mode::Prompt(_) => return in_prompt(state, frame, action),
        Mode::Popup(popup) => match action {
            Action::Back | Action::Open => return close(state),
            Action::Help if *popup == Popup::Help => return close(state),
            Action::Hooks if *popup == Popup::Hooks => return close(state),
            Action::WhatIf if *popup == Popup::WhatIf => return close(state),
            Action::Cost if *popup == Popup::Cost => return close(state),
            Action::Move(n) => {
                scroll(state, frame, n);
                return None;
            }
            Action::First => {
                state.scroll = 0;
                return None;
            }
            Action::Last => {
                scroll(state, frame, i64::from(u16::MAX));
                return None;
            }
            // What lies below is out of sight, and stays as it is.
            Action::NextPane | Action::Sort | Action::Filter | Action::NextPlaces => return None,
            _ => (),
        },
        Mode::Panes => (),
    }
    in_panes(state, frame, action)
}

fn close(state: &mut State) -> Option<Effect> {
    state.mode = Mode::Panes;
    state.scroll = 0;
    None
}

fn open(state: &mut State, popup: Popup) {
    state.mode = Mode::Popup(popup);
    state.scroll = 0;
}

fn scroll(state: &mut State, frame: &Frame, by: i64) {
    let last = super::view::popup::max_scroll(state, frame);
    state.scroll = moved(state.scroll, by, last);
}

/// `at + by` within `0..=last`.
fn moved(at: usize, by: i64, last: usize) -> usize {
    let step = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
    if by < 0 { at.saturating_sub(step) } else { at.saturating_add(step).min(last) }
}

fn in_prompt(state: &mut State, frame: &Frame, action: Action) -> Option<Effect> {
    let Mode::Prompt(prompt) = &mut state.mode else { return None };
    match action {
        // A path is no longer than this, and a time is much shorter.
        Action::Type(c) if prompt.text.len() < 4096 => prompt.text.push(c),
        Action::Erase => {
            prompt.text.pop();
        }
        Action::ClearLine => prompt.text.clear(),
        Action::Back => {
            if let Ask::Filter(_) = prompt.ask {
                prompt.text.clear();
            }
            let ask = prompt.ask;
            state.mode = Mode::Panes;
            set_filter(state, ask, String::new());
            return None;
        }
        Action::Accept => {
            let Prompt { ask, text } = prompt.clone();
            state.mode = Mode::Panes;
            if ask == Ask::Jump {
                return jump(state, frame, &text);
            }
        }
        _ => (),
    }
    // A filter acts while it is typed.
    if let Mode::Prompt(Prompt { ask, text }) = &state.mode {
        let (ask, text) = (*ask, text.clone());
        set_filter(state, ask, text);
    }
    None
}

fn set_filter(state: &mut State, ask: Ask, text: String) {
    match ask {
        Ask::Filter(Pane::Lruvecs) => state.lruvec_filter = text,
        Ask::Filter(Pane::Files) => state.file_filter = text,
        Ask::Jump => (),
    }
}

fn jump(state: &mut State, frame: &Frame, text: &str) -> Option<Effect> {
    match parse_time(text, frame.source.total_ns) {
        Some(seek) => Some(Effect::Control(Control::Seek(seek))),
        None => {
            state.notice = format!("\"{text}\" is not a time: 90, 1:30, +5, -5, 50%");
            None
        }
    }
}

/// `90`, `1:30`, `1:02:03.5`, `+5`, `-5`, `50%`.
fn parse_time(text: &str, total_ns: Option<u64>) -> Option<Seek> {
    let text = text.trim();
    if let Some(percent) = text.strip_suffix('%') {
        let share: f64 = percent.trim().parse().ok().filter(|p| (0.0..=100.0).contains(p))?;
        let total = total_ns?;
        return Some(Seek::To(crate::report::num::to_u64(total as f64 * share / 100.0)));
    }
    if let Some(forward) = text.strip_prefix('+') {
        return Some(Seek::By(i64::try_from(nanoseconds(forward)?).ok()?));
    }
    if let Some(back) = text.strip_prefix('-') {
        return Some(Seek::By(-i64::try_from(nanoseconds(back)?).ok()?));
    }
    nanoseconds(text).map(Seek::To)
}

fn nanoseconds(text: &str) -> Option<u64> {
    let mut seconds = 0.0f64;
    for (i, part) in text.split(':').enumerate() {
        let digits = !part.is_empty() && part.chars().all(|c| c.is_ascii_digit() || c == '.');
        if i > 2 || !digits {
            return None;
        }
        seconds = seconds * 60.0 + part.parse::<f64>().ok()?;
    }
    // A century is not a recording.
    (seconds < 3.2e9).then(|| crate::report::num::to_u64(seconds * 1e9))
}

fn in_panes(state: &mut State, frame: &Frame, action: Action) -> Option<Effect> {
    match action {
        Action::TogglePause => {
            state.paused = !state.paused;
            return Some(Effect::Control(Control::Pause(state.paused)));
        }
        Action::NextRule => turn_rule(state, frame, 1),
        Action::PrevRule => turn_rule(state, frame, frame.rules.len().saturating_sub(1)),
        Action::NextPane => {
            state.pane = match state.pane {
                Pane::Lruvecs => Pane::Files,
                Pane::Files => Pane::Lruvecs,
            };
        }
        Action::Move(by) => select(state, frame, |at, last| moved(at, by, last)),
        Action::First => select(state, frame, |_, _| 0),
        Action::Last => select(state, frame, |_, last| last),
        Action::Open => match state.pane {
            Pane::Lruvecs => open(state, Popup::Lruvec(state.lruvec(frame).map(|l| l.key))),
            Pane::Files => {
                let list = state.files(frame, &Known::of(frame));
                let chosen = list.iter().find(|f| Some(f.key) == state.file).or_else(|| list.first()).map(|f| f.key);
                if let Some(key) = chosen {
                    state.file = Some(key);
                    open(state, Popup::File(key));
                }
            }
        },
        Action::Back => match state.pane {
            Pane::Lruvecs if state.lruvec_filter.is_empty() => state.lruvec = None,
            Pane::Lruvecs => state.lruvec_filter.clear(),
            Pane::Files => state.file_filter.clear(),
        },
        Action::Sort => match state.pane {
            Pane::Lruvecs => state.lruvec_sort = state.lruvec_sort.next(),
            Pane::Files => state.file_sort = state.file_sort.next(),
        },
        Action::Filter => {
            let text = match state.pane {
                Pane::Lruvecs => state.lruvec_filter.clone(),
                Pane::Files => state.file_filter.clone(),
            };
            state.mode = Mode::Prompt(Prompt { ask: Ask::Filter(state.pane), text });
        }
        Action::NextPlaces => {
            state.places = match state.places {
                Places::Tiers => Places::Refs,
                Places::Refs => Places::Tiers,
            };
        }
        Action::Help => open(state, Popup::Help),
        Action::Hooks => open(state, Popup::Hooks),
        Action::WhatIf => open(state, Popup::WhatIf),
        Action::Cost => open(state, Popup::Cost),
        Action::NextTheme => {
            if state.no_color {
                state.notice = "NO_COLOR is set: the theme stays mono".to_owned();
            } else {
                state.look = state.look.next();
                state.notice = format!("theme: {}", state.look.name());
            }
        }
        Action::Faster | Action::Slower | Action::SeekBy(_) | Action::Step(_) | Action::Jump => {
            return in_time(state, frame, action);
        }
        // The rest belongs to prompts and popups.
        _ => (),
    }
    None
}

/// Actions that only a recording can follow.
fn in_time(state: &mut State, frame: &Frame, action: Action) -> Option<Effect> {
    if !seekable(frame) {
        state.notice = "only a recording in a file has a speed and can be moved in".to_owned();
        return None;
    }
    let window_ns = (frame.window_s.clamp(0.001, 3600.0) * 1e9) as i64;
    match action {
        Action::Faster => speed(state, SPEEDS.iter().copied().find(|s| *s > state.speed)),
        Action::Slower => speed(state, SPEEDS.iter().rev().copied().find(|s| *s < state.speed)),
        Action::SeekBy(s) => Some(Effect::Control(Control::Seek(Seek::By(s.saturating_mul(1_000_000_000))))),
        Action::Step(n) => Some(Effect::Control(Control::Seek(Seek::By(n.saturating_mul(window_ns))))),
        Action::Jump => {
            state.mode = Mode::Prompt(Prompt { ask: Ask::Jump, text: String::new() });
            None
        }
        _ => None,
    }
}

fn speed(state: &mut State, speed: Option<f64>) -> Option<Effect> {
    let speed = speed?;
    state.speed = speed;
    Some(Effect::Control(Control::Speed(speed)))
}

fn turn_rule(state: &mut State, frame: &Frame, by: usize) {
    if let Some(at) = state.rule(frame) {
        state.rule = Some(frame.rules[(at + by) % frame.rules.len()].name.clone());
    }
}

/// Moves the selection of the pane with the focus: `to` gives the new row from the old and the last.
fn select(state: &mut State, frame: &Frame, to: impl Fn(usize, usize) -> usize) {
    match state.pane {
        Pane::Lruvecs => {
            // Row 0 is all lruvecs together.
            let list = state.lruvecs(frame);
            let at = state.lruvec.and_then(|key| list.iter().position(|l| l.key == key)).map_or(0, |i| i + 1);
            let row = to(at, list.len());
            state.lruvec = row.checked_sub(1).and_then(|i| list.get(i)).map(|l| l.key);
        }
        Pane::Files => {
            let list = state.files(frame, &Known::of(frame));
            let at = state.file.and_then(|key| list.iter().position(|f| f.key == key)).unwrap_or(0);
            let row = to(at, list.len().saturating_sub(1));
            state.file = list.get(row).map(|f| f.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let total = Some(60_000_000_000);
        for (text, seek) in [
            ("90", Seek::To(90_000_000_000)),
            (" 1:30 ", Seek::To(90_000_000_000)),
            ("1:02:03.5", Seek::To(3_723_500_000_000)),
            ("+5", Seek::By(5_000_000_000)),
            ("-0.5", Seek::By(-500_000_000)),
            ("50%", Seek::To(30_000_000_000)),
        ] {
            assert_eq!(parse_time(text, total), Some(seek), "{text}");
        }
        for text in ["", ":", "x", "1:2:3:4", "101%", "nan", "inf", "-", "1e9", "99999999999", "--5"] {
            assert_eq!(parse_time(text, total), None, "{text}");
        }
        assert_eq!(parse_time("50%", None), None);
    }

    #[test]
    fn selection_stays_in_the_list() {
        assert_eq!(moved(0, -1, 5), 0);
        assert_eq!(moved(5, 1, 5), 5);
        assert_eq!(moved(2, 10, 5), 5);
        assert_eq!(moved(3, i64::MIN, 5), 0);
    }
}
