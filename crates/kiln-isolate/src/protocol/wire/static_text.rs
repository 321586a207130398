//! `'static` texts of errors that come from another process.
//!
//! Errors name calls, limits and advice by `'static` texts. A text from another process is leaked once, up to a limit: past the limit a
//! general text replaces it, so that a peer cannot use up memory with invented ones.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// The most texts that are kept.
const WORDS_LIMIT: usize = 512;
/// The longest text that is kept.
const WORD_LIMIT_BYTES: usize = 256;

/// The same text, kept for the rest of the process.
pub(crate) fn interned(word: &str) -> &'static str {
    static WORDS: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    let words = words.get_or_insert_default();
    if let Some(known) = words.get(word) {
        return known;
    }
    if words.len() >= WORDS_LIMIT || word.len() > WORD_LIMIT_BYTES {
        return "see the worker's message";
    }
    let kept: &'static str = Box::leak(word.to_owned().into_boxed_str());
    words.insert(kept);
    kept
}
