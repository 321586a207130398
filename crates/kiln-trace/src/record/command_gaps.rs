//! What a command that is to be run again lacks.

use std::fmt::{self, Display, Formatter};

use crate::format::MAX_NAME_BYTES;

/// Words of a command that are kept.
pub(crate) const MAX_WORDS: usize = 256;

/// What a command that is to be run again lacks. Its `Display` says it in words.
///
/// ```
/// use kiln_trace::CommandGaps;
///
/// assert!(CommandGaps::default().is_empty());
/// let lacks = CommandGaps::SECRETS.and(CommandGaps::LATER_WORDS);
/// assert!(lacks.has(CommandGaps::SECRETS));
/// assert_eq!(lacks.to_string(), "values that look like secrets and the words behind the first 256 are not in the recording");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CommandGaps(u8);

impl CommandGaps {
    /// Values that look like secrets.
    pub const SECRETS: Self = Self(1);
    /// Words that are too long.
    pub const LONG_WORDS: Self = Self(2);
    /// The words behind those that are kept.
    pub const LATER_WORDS: Self = Self(4);
    /// The program is one rank of several, and does nothing alone.
    pub const OTHER_RANKS: Self = Self(8);
    /// The ranks know each other by a token, which is a secret.
    pub const JOB_TOKEN: Self = Self(16);

    const ALL: u8 = 31;

    /// Both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of the other is lacking.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether nothing is.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// It in words, where what is left out is not in a place: `in the recording`, `shown`.
    ///
    /// ```
    /// let said = kiln_trace::CommandGaps::SECRETS.in_words("shown");
    /// assert_eq!(said, "values that look like secrets are not shown");
    /// ```
    pub fn in_words(self, place: &str) -> String {
        let left_out: Vec<String> = [
            (Self::SECRETS, "values that look like secrets".to_owned()),
            (Self::LONG_WORDS, format!("words of more than {MAX_NAME_BYTES} bytes")),
            (Self::LATER_WORDS, format!("the words behind the first {MAX_WORDS}")),
        ]
        .into_iter()
        .filter_map(|(gap, words)| self.has(gap).then_some(words))
        .collect();
        let mut text = match &left_out[..] {
            [] => String::new(),
            [one] => format!("{one} are not {place}"),
            [first @ .., last] => format!("{} and {last} are not {place}", first.join(", ")),
        };
        if self.has(Self::OTHER_RANKS) {
            text += if left_out.is_empty() { "" } else { "; " };
            text += "it is one rank of a job, which needs the others";
        }
        if self.has(Self::JOB_TOKEN) {
            text += &format!(", and the same KILN_JOB_TOKEN for all, which is a secret and not {place}");
        }
        text
    }

    pub(crate) fn bits(self) -> u8 {
        self.0
    }

    pub(crate) fn from_bits(bits: u8) -> Option<Self> {
        (bits & !Self::ALL == 0).then_some(Self(bits))
    }
}

impl Display for CommandGaps {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words("in the recording"))
    }
}
