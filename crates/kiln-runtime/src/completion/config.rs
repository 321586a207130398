//! Setting: how the completion of work is detected.

use std::time::Duration;

/// How futures learn that work is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompletionConfig {
    /// How long the first poll of a future looks by itself, on the device's clock, before it leaves that to the reactor. Only the
    /// first of many spins: while others wait already, none does.
    pub spin: Duration,
}

impl Default for CompletionConfig {
    fn default() -> Self {
        // Longer than a small launch takes there and back.
        Self { spin: Duration::from_micros(20) }
    }
}
