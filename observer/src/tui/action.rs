//! What a user can ask for.

/// One wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Quit,
    Suspend,
    Redraw,
    TogglePause,
    NextRule,
    PrevRule,
    NextPane,
    /// Rows down, negative for up.
    Move(i64),
    First,
    Last,
    Open,
    /// Closes what is open, or clears the filter.
    Back,
    Sort,
    Filter,
    NextPlaces,
    Help,
    Hooks,
    WhatIf,
    Cost,
    NextTheme,
    Faster,
    Slower,
    /// Seconds.
    SeekBy(i64),
    /// Windows.
    Step(i64),
    Jump,
    Type(char),
    Erase,
    ClearLine,
    Accept,
}
