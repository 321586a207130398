//! What was counted.

use std::fmt;

/// Counts of texts, and the most that one of them took.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) texts: u64,
    pub(crate) accepted: u64,
    pub(crate) launched: u64,
    /// The most memory that a process had during a text, in bytes.
    pub(crate) memory: u64,
    /// The most processor time to read one, in nanoseconds.
    pub(crate) reading: u64,
}

impl Totals {
    pub(crate) fn add(&mut self, other: &Self) {
        self.texts += other.texts;
        self.accepted += other.accepted;
        self.launched += other.launched;
        self.memory = self.memory.max(other.memory);
        self.reading = self.reading.max(other.reading);
    }

    /// A line for the process that started this one.
    pub(crate) fn line(&self) -> String {
        let Self { texts, accepted, launched, memory, reading } = self;
        format!("totals {texts} {accepted} {launched} {memory} {reading}")
    }

    pub(crate) fn read(line: &str) -> Option<Self> {
        let numbers: Vec<u64> =
            line.strip_prefix("totals ")?.split(' ').map_while(|word| word.parse().ok()).collect();
        let [texts, accepted, launched, memory, reading] = numbers[..] else { return None };
        Some(Self { texts, accepted, launched, memory, reading })
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { texts, accepted, launched, memory, reading } = self;
        write!(
            f,
            "{texts} texts, {accepted} of them still PTX, {launched} launches, at most {} MiB, and {} ms to read one; no panic, no hang, no difference",
            memory >> 20,
            reading / 1_000_000,
        )
    }
}
