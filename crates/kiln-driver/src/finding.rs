//! What a device that checks accesses found.

use std::fmt;

use crate::memory::DeviceAddress;

/// One mistake that a device found while work ran, or in the order of calls. The device goes on unless the mistake is [fatal](Self::fatal).
///
/// Its `Display` is the whole story in words: what happened, where, by which command, and how to see it again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceFinding {
    /// Which rule was broken.
    pub rule: FindingRule,
    /// The kernel that broke it, if one did.
    pub kernel: Option<String>,
    /// The line of its source, where that is known: a file, or `ptx` for a line of the PTX itself.
    pub line: Option<FindingLine>,
    /// Where the first byte lies that it is about, where it is about device memory.
    pub address: Option<DeviceAddress>,
    /// Whether the device was lost by it, as hardware would be.
    pub fatal: bool,
    /// All that is known, in words.
    pub text: String,
}

/// A line of source code.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FindingLine {
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
}

impl fmt::Display for FindingLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl fmt::Display for DeviceFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The rules a device checks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum FindingRule {
    /// Two accesses to the same bytes, one of them a write, that nothing orders.
    Race,
    /// An access to memory that the launch did not declare, or a write to memory it declared as read only.
    Undeclared,
    /// An access where no memory is, or outside of shared or local memory.
    OutOfBounds,
    /// Memory that was used after it was freed.
    UseAfterFree,
    /// Memory that was freed while work may still use it.
    FreeBeforeDone,
    /// Memory that was used by work not ordered after its allocation.
    UseBeforeAllocation,
    /// Bytes that were read and were never written.
    Uninitialised,
    /// Memory that was freed twice.
    DoubleFree,
    /// A write to memory that may only be read.
    ReadOnly,
    /// An access at an address that is no multiple of its size.
    Misaligned,
    /// A barrier or a collective that threads use wrongly.
    Synchronisation,
    /// A handle used after its object was gone, or an object destroyed while work needs it.
    Lifetime,
    /// Something that was never given back.
    Leak,
    /// Work that does not end.
    Hang,
    /// Another mistake of a kernel.
    InKernel,
}

impl FindingRule {
    /// All of them, in the order they are written here.
    pub const ALL: [Self; 15] = [
        Self::Race,
        Self::Undeclared,
        Self::OutOfBounds,
        Self::UseAfterFree,
        Self::FreeBeforeDone,
        Self::UseBeforeAllocation,
        Self::Uninitialised,
        Self::DoubleFree,
        Self::ReadOnly,
        Self::Misaligned,
        Self::Synchronisation,
        Self::Lifetime,
        Self::Leak,
        Self::Hang,
        Self::InKernel,
    ];
    /// What was done wrong, in a few words, such as `access out of bounds`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Race => "race",
            Self::Undeclared => "undeclared access",
            Self::OutOfBounds => "access out of bounds",
            Self::UseAfterFree => "use after free",
            Self::FreeBeforeDone => "free before the last use is done",
            Self::UseBeforeAllocation => "use before allocation",
            Self::Uninitialised => "read of bytes that were never written",
            Self::DoubleFree => "double free",
            Self::ReadOnly => "write to read-only memory",
            Self::Misaligned => "misaligned access",
            Self::Synchronisation => "wrong synchronisation",
            Self::Lifetime => "object used after its end",
            Self::Leak => "leak",
            Self::Hang => "work that does not end",
            Self::InKernel => "mistake in a kernel",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_rule_has_other_words() {
        let words: BTreeSet<&str> = FindingRule::ALL.into_iter().map(FindingRule::words).collect();
        assert_eq!(words.len(), FindingRule::ALL.len());
        assert!(words.iter().all(|words| !words.is_empty()));
    }
}
