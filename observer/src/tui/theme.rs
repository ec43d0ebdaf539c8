//! Colours and attributes. Predicted is blue and actual orange everywhere, a pair that colour-blind people tell apart;
//! and nothing is told by colour alone: sides have headings, types have patterns, verdicts have symbols.

use ratatui::style::{Color, Modifier, Style};

/// A set of styles to choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Look {
    /// Blue and orange on the terminal's own background.
    #[default]
    Default,
    /// Bright colours only, nothing dimmed.
    HighContrast,
    /// No colour, attributes only; what `NO_COLOR` asks for.
    Mono,
}

impl Look {
    /// The next one, for the key that cycles.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Default => Self::HighContrast,
            Self::HighContrast => Self::Mono,
            Self::Mono => Self::Default,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::HighContrast => "high contrast",
            Self::Mono => "mono",
        }
    }
}

/// The colours a terminal has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// The sixteen that every colour terminal has, in the user's own shades.
    #[default]
    Sixteen,
    /// The palette of 256.
    Palette,
}

impl Depth {
    /// Read off `TERM` and `COLORTERM`.
    #[must_use]
    pub fn of(term: &str, colorterm: &str) -> Self {
        if !colorterm.is_empty() || term.contains("256") || term.contains("direct") { Self::Palette } else { Self::Sixteen }
    }
}

/// Styles by meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Theme {
    /// What a rule set predicts.
    pub(super) predicted: Style,
    /// What the kernel did.
    pub(super) actual: Style,
    /// Rules, labels, what may be skipped.
    pub(super) dim: Style,
    /// What must be read.
    pub(super) strong: Style,
    /// The selected row of the pane with the focus.
    pub(super) selected: Style,
    /// Data lost, layout contradicted.
    pub(super) alarm: Style,
    /// Ordinary text.
    pub(super) plain: Style,
}

impl Theme {
    /// The styles of a look on a terminal.
    #[must_use]
    pub(super) fn new(look: Look, depth: Depth) -> Self {
        let plain = Style::new();
        let strong = plain.add_modifier(Modifier::BOLD);
        let selected = plain.add_modifier(Modifier::REVERSED);
        let alarm = plain.add_modifier(Modifier::REVERSED | Modifier::BOLD);
        match look {
            Look::Default => {
                let (blue, orange, grey) = match depth {
                    Depth::Palette => (Color::Indexed(75), Color::Indexed(214), Color::Indexed(245)),
                    Depth::Sixteen => (Color::LightBlue, Color::Yellow, Color::DarkGray),
                };
                Self { predicted: plain.fg(blue), actual: plain.fg(orange), dim: plain.fg(grey), strong, selected, alarm, plain }
            }
            Look::HighContrast => Self {
                predicted: strong.fg(Color::LightCyan),
                actual: strong.fg(Color::LightYellow),
                dim: plain,
                strong,
                selected,
                alarm,
                plain,
            },
            Look::Mono => Self { predicted: plain, actual: plain, dim: plain.add_modifier(Modifier::DIM), strong, selected, alarm, plain },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mono_has_no_colour() {
        for depth in [Depth::Sixteen, Depth::Palette] {
            let t = Theme::new(Look::Mono, depth);
            for style in [t.predicted, t.actual, t.dim, t.strong, t.selected, t.alarm, t.plain] {
                assert_eq!((style.fg, style.bg), (None, None));
            }
        }
    }

    #[test]
    fn depth_by_environment() {
        assert_eq!(Depth::of("xterm-256color", ""), Depth::Palette);
        assert_eq!(Depth::of("linux", ""), Depth::Sixteen);
        assert_eq!(Depth::of("xterm", "truecolor"), Depth::Palette);
    }
}
