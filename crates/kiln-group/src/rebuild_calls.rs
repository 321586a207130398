//! In which ways a rank has rebuilt its communicator, in the order of time: who gave up one way and tries another has not called the wrong one.

/// The bit of a call with replacements.
const REPLACING: u8 = 1;
/// The bit of the end of a call.
const END: u8 = 2;

/// The begins and ends of a rank's calls.
#[derive(Clone, Default, Debug)]
pub(crate) struct RebuildCalls(Vec<u8>);

impl RebuildCalls {
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// A call begins, with replacements or without.
    pub(crate) fn begin(&mut self, is_replacing: bool) {
        self.0.push(if is_replacing { REPLACING } else { 0 });
    }

    /// The last call ends.
    pub(crate) fn end(&mut self) {
        let last = self.0.last().copied().unwrap_or_default();
        self.0.push(last | END);
    }

    /// Whether the last call was one with replacements; none if there was none.
    pub(crate) fn is_replacing(&self) -> Option<bool> {
        self.0.last().map(|last| last & REPLACING != 0)
    }

    /// Whether the rank was in such a call since there were so many begins and ends.
    fn was_in(&self, since: usize, is_replacing: bool) -> bool {
        // What had begun before and had not ended counts.
        let begun = since.checked_sub(1).filter(|at| self.0.get(*at).is_some_and(|last| last & END == 0));
        let later = self.0.get(begun.unwrap_or(since)..).unwrap_or_default();
        later.iter().any(|call| (call & REPLACING != 0) == is_replacing)
    }

    /// Whether the rank did not come to another one that called this way since there were so many begins and ends, and called the other way.
    pub(crate) fn differs(&self, since: usize, is_replacing: bool) -> bool {
        let is_last_other = self.is_replacing() == Some(!is_replacing);
        !self.was_in(since, is_replacing) && (is_last_other || self.was_in(since, !is_replacing))
    }
}

#[cfg(test)]
mod tests {
    use super::RebuildCalls;

    #[test]
    fn who_has_given_up_the_same_call_is_not_blamed() {
        let mut calls = RebuildCalls::default();
        assert!(!calls.differs(0, true) && !calls.differs(0, false));
        calls.begin(true);
        assert!(!calls.differs(0, true) && calls.differs(0, false));
        assert!(!calls.differs(1, true) && calls.differs(1, false));
        calls.end();
        calls.begin(false);
        assert!(!calls.differs(1, true), "it waited for a replacement when the other one began to");
        assert!(calls.differs(2, true), "it had given up before");
        calls.end();
        assert!(calls.differs(4, true) && !calls.differs(4, false), "its last call was the other one");
    }
}
