//! The `observer` command.
fn main() {}
