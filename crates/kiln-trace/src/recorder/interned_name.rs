//! Names that live as long as the program.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

static NAMES: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);

/// The same name, kept for as long as the program runs. Each name is kept once, so that this takes as much memory as there are different
/// names: use it for those of kernels and tags, and not for text that is made up at run time.
pub fn interned_name(name: &str) -> &'static str {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let names = names.get_or_insert_with(HashSet::new);
    match names.get(name) {
        Some(known) => known,
        None => {
            let kept: &'static str = Box::leak(name.into());
            names.insert(kept);
            kept
        }
    }
}
