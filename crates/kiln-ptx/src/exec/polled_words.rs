//! What a block waits for: memory that its threads read again and again.

use super::block::Block;
use super::memory::SpanCache;

/// A word of global memory that is read again and again, with the value that was found.
struct Word {
    address: u64,
    bytes: u32,
    value: Option<u64>,
}

/// What lets a block go on whose threads only repeat what they do.
pub(crate) struct PolledWords {
    /// How often memory had been changed in the launch.
    changes: u64,
    /// The words it reads; none if any change of memory may let it go on.
    words: Option<Vec<Word>>,
}

impl PolledWords {
    /// Of a block whose threads were just found to repeat what they do.
    pub(crate) fn of(block: &Block<'_>, spans: &mut SpanCache<'_>) -> Self {
        let mut polled = Vec::new();
        let is_all = block.warps.iter().all(|warp| warp.add_polled_words(&mut polled));
        let mut word = |(address, bytes)| Word { address, bytes, value: peek(spans, address, bytes) };
        let words = (is_all && !polled.is_empty()).then(|| polled.into_iter().map(&mut word).collect());
        Self { changes: block.repeats_since, words }
    }

    /// Whether the block would find what it found; `changes`: how often memory was changed in the launch.
    pub(crate) fn is_unchanged(&self, changes: u64, spans: &mut SpanCache<'_>) -> bool {
        if self.changes == changes && self.words.is_none() {
            return true;
        }
        let is_same = |word: &Word| peek(spans, word.address, word.bytes) == word.value;
        self.words.as_ref().is_some_and(|words| words.iter().all(is_same))
    }
}

/// The value of a word, if it is in memory.
fn peek(spans: &mut SpanCache<'_>, address: u64, bytes: u32) -> Option<u64> {
    let span = spans.find(address)?;
    let end = address.checked_add(u64::from(bytes))?;
    (end <= span.end).then(|| span.cells.peek(address - span.origin, bytes))
}
