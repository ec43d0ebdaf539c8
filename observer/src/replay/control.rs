//! What the screen asks of the pump.

/// What the user wants of the session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Control {
    /// Stop or continue. A source that cannot stop (a live kernel, a pipe) goes on: the screen holds its picture.
    Pause(bool),
    /// Speed of a replay, 1 as recorded.
    Speed(f64),
    /// Go to another time of a recording. While paused, the picture there is wanted.
    Seek(Seek),
    /// The screen closes.
    Quit,
}

/// A time to go to; the session bounds it by the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// Nanoseconds from here.
    By(i64),
    /// Nanoseconds from the recording's start.
    To(u64),
}
