//! Words of an error that are `'static` on this side of the waist.
//!
//! Errors name calls, limits and advice by words compiled into a program. Those that come from another process are kept
//! for ever, once each, up to a limit: a peer that makes words up gets a general one instead.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// Words that are kept.
const WORDS_LIMIT: usize = 512;
/// The longest of them.
const WORD_LIMIT_BYTES: usize = 256;

/// The same word, kept for ever.
pub(crate) fn interned(word: &str) -> &'static str {
    static WORDS: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    let words = words.get_or_insert_default();
    if let Some(known) = words.get(word) {
        return known;
    }
    if words.len() >= WORDS_LIMIT || word.len() > WORD_LIMIT_BYTES {
        return "see the message of the worker";
    }
    let kept: &'static str = Box::leak(word.to_owned().into_boxed_str());
    words.insert(kept);
    kept
}
