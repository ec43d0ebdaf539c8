//! The whole screen, driven by keys, at several sizes.

use std::sync::Arc;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;

use super::app::App;
use super::update::Effect;
use super::{Control, Options, Seek};
use crate::report::fixture;
use crate::session::frame::{Calibration, Frame};

/// A screen of a size, with fingers on its keys.
struct Desk {
    app: App,
    size: (u16, u16),
    sent: Vec<Effect>,
}

impl Desk {
    fn new(frame: Frame, w: u16, h: u16) -> Self {
        Self { app: App::new(Arc::new(frame), &Options::default(), (w, h)), size: (w, h), sent: Vec::new() }
    }

    fn key(&mut self, code: KeyCode, modifiers: KeyModifiers) -> &mut Self {
        let event = Event::Key(KeyEvent::new(code, modifiers));
        self.sent.extend(self.app.on_event(&event).and_then(|o| o.effect));
        self
    }

    /// Types characters; `\n` is enter, `\t` tab, `\x1b` escape, `\x08` backspace.
    fn keys(&mut self, text: &str) -> &mut Self {
        for c in text.chars() {
            let code = match c {
                '\n' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                '\x1b' => KeyCode::Esc,
                '\x08' => KeyCode::Backspace,
                c => KeyCode::Char(c),
            };
            self.key(code, KeyModifiers::NONE);
        }
        self
    }

    fn resize(&mut self, w: u16, h: u16) -> &mut Self {
        self.size = (w, h);
        self.app.on_event(&Event::Resize(w, h));
        self
    }

    fn backend(&self) -> TestBackend {
        let mut terminal = Terminal::new(TestBackend::new(self.size.0, self.size.1)).expect("test backend");
        terminal
            .draw(|f| {
                let area = f.area();
                self.app.draw(f.buffer_mut(), area);
            })
            .expect("test backend");
        terminal.backend().clone()
    }

    fn screen(&self) -> String {
        self.backend().to_string()
    }

    #[track_caller]
    fn shows(&self, text: &str) {
        let screen = self.screen();
        assert!(screen.contains(text), "no {text:?} in\n{screen}");
    }

    #[track_caller]
    fn hides(&self, text: &str) {
        let screen = self.screen();
        assert!(!screen.contains(text), "{text:?} in\n{screen}");
    }
}

macro_rules! at_size {
    ($($name:ident: $w:literal x $h:literal;)*) => {$(
        #[test]
        fn $name() {
            insta::assert_snapshot!(Desk::new(fixture::recording(), $w, $h).screen());
        }
    )*};
}

at_size! {
    recording_80x24: 80 x 24;
    recording_100x30: 100 x 30;
    recording_120x40: 120 x 40;
    recording_200x60: 200 x 60;
    recording_60x16: 60 x 16;
    recording_20x5: 20 x 5;
}

#[test]
fn classical_live_with_losses_80x24() {
    insta::assert_snapshot!(Desk::new(fixture::classical(), 80, 24).screen());
}

#[test]
fn classical_live_with_losses_200x60() {
    insta::assert_snapshot!(Desk::new(fixture::classical(), 200, 60).screen());
}

#[test]
fn pending_calibration_100x30() {
    insta::assert_snapshot!(Desk::new(fixture::pending(), 100, 30).screen());
}

#[test]
fn nothing_seen_yet_80x24() {
    insta::assert_snapshot!(Desk::new(fixture::empty(), 80, 24).screen());
}

#[test]
fn the_narrowest_screen_says_that_it_shows_a_sample() {
    Desk::new(fixture::sampled(), 80, 24).shows("sample 1/64 (counts are of it), fidelity ±0.39 %");
}

#[test]
fn help_80x24() {
    insta::assert_snapshot!(Desk::new(fixture::recording(), 80, 24).keys("?").screen());
}

#[test]
fn help_120x40() {
    insta::assert_snapshot!(Desk::new(fixture::recording(), 120, 40).keys("?").screen());
}

#[test]
fn hooks_80x24() {
    insta::assert_snapshot!(Desk::new(fixture::recording(), 80, 24).keys("h").screen());
}

#[test]
fn what_if_80x24() {
    insta::assert_snapshot!(Desk::new(fixture::recording(), 80, 24).keys("w").screen());
}

#[test]
fn what_if_says_why_it_is_empty() {
    Desk::new(fixture::pending(), 80, 24).keys("w").shows("record, and replay the recording");
    let mut early = fixture::recording();
    early.what_if.clear();
    let mut desk = Desk::new(early, 80, 24);
    desk.keys("w").shows("when a cgroup has filled its memory");
    desk.keys("w").hides("when a cgroup has filled its memory");
}

#[test]
fn cost_80x24() {
    let mut frame = fixture::recording();
    for (name, delta) in [("mark:run_ns", 4_200_000), ("mark:runs", 21_000), ("mark:missed", 3), ("idle:run_ns", 0), ("idle:runs", 0)] {
        let name = format!("{}{name}", crate::stream::counter_names::PROGRAM);
        frame.counters.push(crate::session::frame::CounterFrame { cgroup: "whole machine".to_owned(), name, delta });
    }
    insta::assert_snapshot!(Desk::new(frame, 80, 24).keys("c").screen());
}

#[test]
fn cost_not_measured_80x24() {
    insta::assert_snapshot!(Desk::new(fixture::recording(), 80, 24).keys("c").screen());
}

#[test]
fn lruvec_detail_100x30() {
    insta::assert_snapshot!(Desk::new(fixture::recording(), 100, 30).keys("j\n").screen());
}

#[test]
fn file_detail_80x24() {
    insta::assert_snapshot!(Desk::new(fixture::recording(), 80, 24).keys("\tj\n").screen());
}

/// Everything that can be open, at every size: no panic is the assertion.
#[test]
fn no_size_panics() {
    let mut hostile = fixture::recording();
    hostile.source.name = "日本語\x1b[31m".repeat(9);
    hostile.source.note = "a note ".repeat(40);
    hostile.files[0].name = "/日本\t語/".repeat(30);
    hostile.files[1].by_rules.clear();
    hostile.lruvecs[0].cgroup = String::new();
    hostile.lruvecs[0].max_seq = Some(0);
    hostile.lruvecs[1].predicted.clear();
    hostile.lruvecs[2].actual.by_age = [[u64::MAX; 2]; 4];
    hostile.lruvecs[2].pages = Some([[u64::MAX; 2]; 4]);
    hostile.lruvecs[2].actual.promotions_per_s = vec![f64::NAN, f64::INFINITY, -1.0, f64::MAX];
    hostile.source.events = u64::MAX;
    hostile.source.duration_ns = u64::MAX;
    hostile.window_s = f64::NAN;
    let small = (0..=40).flat_map(|w| (0..=20).map(move |h| (w, h)));
    let edge = (58..=62).flat_map(|w| (14..=24).map(move |h| (w, h)));
    let large = [(80, 24), (100, 16), (170, 30), (60, 200), (250, 20), (500, 150)];
    let sizes: Vec<(u16, u16)> = small.chain(edge).chain(large).collect();
    for frame in [hostile, fixture::classical(), fixture::pending(), fixture::empty()] {
        for keys in ["", "?", "h", "\n", "\t\n", "/ab", "jvv\tG\n", "t"] {
            let mut desk = Desk::new(frame.clone(), 80, 24);
            desk.keys(keys);
            for (w, h) in &sizes {
                desk.resize(*w, *h).key(KeyCode::Down, KeyModifiers::NONE).backend();
            }
        }
    }
}

#[test]
fn a_small_terminal_gets_one_message() {
    let desk = Desk::new(fixture::recording(), 59, 16);
    desk.shows("59×16 is too small, needs 60×16; q quits");
    desk.hides("fidelity");
}

#[test]
fn what_matters_is_on_the_smallest_screen() {
    let mut frame = fixture::recording();
    frame.source.lost = 1_234;
    let desk = Desk::new(frame, 60, 16);
    for text in ["fidelity 99.81 %", "LOST 1,234", "│        fg-v4 ", "│ kernel 7.3", "fg-v4 1,204", "kernel 980"] {
        desk.shows(text);
    }
}

#[test]
fn no_color_means_none() {
    let options = Options { no_color: true, ..Options::default() };
    let mut frame = fixture::recording();
    frame.source.lost = 7;
    let mut app = App::new(Arc::new(frame), &options, (200, 60));
    app.on_event(&Event::Key(KeyEvent::new(KeyCode::Char('T'), KeyModifiers::NONE)));
    let desk = Desk { app, size: (200, 60), sent: Vec::new() };
    for cell in desk.backend().buffer().content() {
        assert_eq!((cell.fg, cell.bg), (Color::Reset, Color::Reset), "{cell:?}");
    }
    // And it says as much as the coloured one.
    desk.shows("NO_COLOR is set");
    desk.shows("predicted fg-v4");
}

#[test]
fn colour_is_never_the_only_difference() {
    // The text of all themes is the same: symbols and headings carry the meaning.
    let mut desk = Desk::new(fixture::recording(), 120, 40);
    let first = desk.screen();
    for _ in 0..3 {
        desk.keys("T?\x1b");
        assert_eq!(desk.screen(), first);
    }
}

#[test]
fn rule_sets_turn_around() {
    let mut desk = Desk::new(fixture::recording(), 100, 30);
    desk.shows("predicted fg-v4");
    desk.keys("r").shows("predicted 7.3 (own)");
    desk.keys("R").shows("predicted fg-v4");
    desk.keys("R").shows("predicted fg-v3");
}

#[test]
fn an_lruvec_scopes_the_comparison_and_the_files() {
    let mut desk = Desk::new(fixture::recording(), 120, 40);
    desk.shows("all lruvecs");
    desk.shows("/data/hot.db");
    desk.keys("jj").shows("journald.service node 0");
    desk.hides("/data/hot.db");
    desk.shows("inode 12 on 8:1");
    desk.shows("gen 41");
    desk.keys("g").shows("/data/hot.db");
}

#[test]
fn filters_act_while_typed() {
    let mut desk = Desk::new(fixture::recording(), 120, 40);
    desk.keys("\t/cold").shows("filter: cold");
    desk.hides("/data/hot.db");
    desk.keys("\x08\x08\x08\x08").shows("/data/hot.db");
    desk.keys("hot\n").shows("· /hot");
    desk.hides("libc.so.6");
    desk.keys("\x1b").shows("libc.so.6");
    desk.keys("/zzz").shows("no file matches");
    // Keys are text in a prompt.
    desk.keys("q?");
    assert_eq!(desk.sent, []);
    desk.shows("filter: zzzq?");
}

#[test]
fn sorting_says_by_what() {
    let mut desk = Desk::new(fixture::recording(), 120, 40);
    desk.shows("by difference");
    desk.keys("\ts").shows("by avoidable");
    desk.shows("▾avoid");
    desk.keys("\tss").shows("by name");
}

#[test]
fn a_selection_survives_a_new_order() {
    let mut desk = Desk::new(fixture::recording(), 120, 40);
    desk.keys("\tj");
    let mut next = fixture::recording();
    next.files.reverse();
    assert!(desk.app.on_frame(Arc::new(next)));
    desk.keys("\n").shows("─ /data/cold/archive-2025-11.parquet ─");
}

#[test]
fn keys_become_controls() {
    let mut desk = Desk::new(fixture::recording(), 80, 24);
    desk.keys("+ -.,[]t1:30\n");
    let control = |c| Effect::Control(c);
    assert_eq!(
        desk.sent,
        [
            control(Control::Speed(2.0)),
            control(Control::Pause(true)),
            control(Control::Speed(1.0)),
            control(Control::Seek(Seek::By(500_000_000))),
            control(Control::Seek(Seek::By(-500_000_000))),
            control(Control::Seek(Seek::By(-5_000_000_000))),
            control(Control::Seek(Seek::By(5_000_000_000))),
            control(Control::Seek(Seek::To(90_000_000_000))),
        ]
    );
    desk.sent.clear();
    desk.keys("tsoon\n").shows("\"soon\" is not a time");
    desk.keys("q").key(KeyCode::Char('c'), KeyModifiers::CONTROL).key(KeyCode::Char('z'), KeyModifiers::CONTROL);
    assert_eq!(desk.sent, [control(Control::Quit), control(Control::Quit), Effect::Suspend]);
}

#[test]
fn control_c_quits_from_everywhere() {
    for keys in ["?", "/x", "t", "\n", "h"] {
        let mut desk = Desk::new(fixture::recording(), 80, 24);
        desk.keys(keys).key(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(desk.sent, [Effect::Control(Control::Quit)], "{keys}");
    }
}

#[test]
fn a_live_source_cannot_be_moved_in() {
    let mut desk = Desk::new(fixture::pending(), 80, 24);
    for keys in ["+", "[", ".", "t"] {
        desk.keys(keys).shows("only a recording in a file");
    }
    assert_eq!(desk.sent, []);
    desk.keys("?").hides("jump to a time");
}

#[test]
fn pause_holds_a_live_picture_and_follows_a_replay() {
    let next = |mut frame: Frame| {
        frame.header = Arc::new(crate::stream::header::Header { kernel: "next".into(), ..fixture::header() });
        Arc::new(frame)
    };
    let mut live = Desk::new(fixture::pending(), 80, 24);
    live.keys(" ").shows("‖ PAUSED");
    assert!(!live.app.on_frame(next(fixture::pending())));
    live.hides("next");
    live.keys(" ").shows("next");

    let mut replay = Desk::new(fixture::recording(), 80, 24);
    replay.keys(" ");
    assert!(replay.app.on_frame(next(fixture::recording())));
    replay.shows("next");
}

#[test]
fn unproven_layouts_predict_nothing() {
    let mut contradicted = fixture::recording();
    contradicted.calibration = Calibration::Contradicted { why: "gen 6 was seen".into() };
    for (frame, why) in [(fixture::pending(), "12 of 64"), (contradicted, "gen 6 was seen")] {
        let desk = Desk::new(frame, 120, 40);
        desk.shows("no prediction");
        desk.shows(why);
        for number in ["fg-v4 1,204", "310", "594", "17.3k", "980", "12.4k"] {
            desk.hides(number);
        }
    }
}

#[test]
fn unseen_is_a_dash() {
    let desk = Desk::new(fixture::classical(), 120, 40);
    desk.shows("refaulted –");
    desk.shows("evicted –");
    desk.hides("refaulted 0");
}

#[test]
fn losses_are_loud() {
    Desk::new(fixture::classical(), 80, 24).shows("LOST 12,345");
    Desk::new(fixture::recording(), 80, 24).shows("lost 0");
}

#[test]
fn popups_scroll_to_their_end_and_back() {
    let mut desk = Desk::new(fixture::recording(), 80, 24);
    desk.keys("?").shows("j more ▼");
    desk.keys("G").shows("nothing can be said");
    desk.keys("jjj").hides("j more ▼");
    // Pressing on at the end is not saved up: one step back is seen at once.
    desk.keys("k").shows("j more ▼");
    desk.keys("g").shows("this help");
    desk.keys("?").hides("this help");
}

#[test]
fn a_popup_keeps_what_is_below_as_it_is() {
    let mut desk = Desk::new(fixture::recording(), 120, 40);
    let before = desk.screen();
    desk.keys("?\ts/vjj\x1b");
    assert_eq!(desk.screen(), before);
    // But time goes on, and rule sets turn.
    desk.keys("\t\nr").shows("where 7.3 and the kernel differ");
}

#[test]
fn names_cannot_write_to_the_terminal() {
    let mut frame = fixture::recording();
    frame.files[0].name = "/a\x1b[2Jb".into();
    let desk = Desk::new(frame, 120, 40);
    desk.shows("/a\\x1b[2Jb");
}

#[test]
fn a_long_note_is_whole_in_the_hooks_popup() {
    let mut frame = fixture::recording();
    frame.source.note = format!("{} end of note", "a note that is longer than the screen is wide ".repeat(3));
    let mut desk = Desk::new(frame, 80, 24);
    desk.hides("end of note");
    desk.keys("h").shows("end of note");
}

#[test]
fn both_sides_have_one_scale_even_where_lists_have_names() {
    for (w, h) in [(80, 24), (120, 40), (200, 60)] {
        let mut frame = fixture::classical();
        for l in &mut frame.lruvecs {
            l.actual.by_age = [[0, 900], [0, 0], [0, 0], [0, 450]];
            l.predicted[1].by_age = [[0, 900], [0, 0], [0, 0], [0, 450]];
        }
        let screen = Desk::new(frame, w, h).screen();
        for row in ["active  ", "inactive"] {
            let line = screen.lines().find(|l| l.contains("age") && l.contains(row)).expect("a row");
            let bars: Vec<usize> = line.split('│').map(|part| part.matches('█').count()).filter(|n| *n > 1).collect();
            assert!(bars.len() == 2 && bars[0] == bars[1], "{bars:?} in\n{line}");
        }
    }
}
