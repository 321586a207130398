//! Scheduling choices: every random choice of the machine is made here and can be repeated.

use std::fmt;
use std::str::FromStr;

/// The choices of one run, to be made again. Its text is the numbers with dots between.
///
/// ```
/// use kiln_sim::Schedule;
///
/// let schedule: Schedule = "0.2.1".parse().unwrap();
/// assert_eq!(schedule.to_string(), "0.2.1");
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Schedule(pub Vec<u32>);

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, choice) in self.0.iter().enumerate() {
            write!(f, "{}{choice}", if at == 0 { "" } else { "." })?;
        }
        Ok(())
    }
}

impl FromStr for Schedule {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        text.split('.').map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

/// Picks one of several ways to go on.
#[derive(Debug)]
pub(crate) enum Chooser {
    /// By a seed.
    Seeded(Random),
    /// As written down, then always the first; remembers what it chose out of how many.
    Scripted { script: Vec<u32>, taken: Vec<Choice> },
    /// Always the first.
    First,
}

/// A choice that was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Choice {
    pub(crate) taken: u32,
    pub(crate) of: u32,
}

impl Chooser {
    /// A number below `of`. With one way to go there is no choice to remember.
    pub(crate) fn choose(&mut self, of: usize) -> usize {
        if of <= 1 {
            return 0;
        }
        match self {
            Self::First => 0,
            Self::Seeded(random) => (random.next() % of as u64) as usize,
            Self::Scripted { script, taken } => {
                let choice = script.get(taken.len()).copied().unwrap_or(0).min(of as u32 - 1);
                taken.push(Choice { taken: choice, of: of as u32 });
                choice as usize
            }
        }
    }

    /// Whether every choice is tried, so that none should be made twice for the same effect.
    pub(crate) fn is_scripted(&self) -> bool {
        matches!(self, Self::Scripted { .. })
    }

    /// The choices so far.
    pub(crate) fn taken(&self) -> &[Choice] {
        match self {
            Self::Scripted { taken, .. } => taken,
            Self::Seeded(_) | Self::First => &[],
        }
    }
}

/// A stream of numbers that depends on the seed alone (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }
}

/// Spreads a number over all bits.
pub(crate) fn mix(number: u64) -> u64 {
    let first = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let second = (first ^ first >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    second ^ second >> 31
}
