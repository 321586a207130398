//! What variables hold: one value per 8-byte word, plus what was stored at unknown offsets.

use std::collections::HashMap;

use super::value::{Place, Places, Value};
use crate::variable::VariableId;

/// The words of one variable.
#[derive(Clone, Debug)]
struct Variable {
    words: HashMap<i64, Value>,
    /// Stored at an unknown offset: part of every word.
    smeared: Value,
    /// The join of everything stored.
    everything: Value,
}

/// The content of a set of variables.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    variables: HashMap<VariableId, Variable>,
    /// Stored at an address that may be of any of them.
    smeared: Value,
    /// The join of everything stored.
    everything: Value,
}

/// Bytes of a word.
const WORD_BYTES: i64 = 8;

impl Cells {
    pub(super) fn new() -> Self {
        Self { variables: HashMap::new(), smeared: Value::UNSEEN, everything: Value::UNSEEN }
    }

    /// Everything stored anywhere.
    pub(super) fn everything(&self) -> &Value {
        &self.everything
    }

    /// Stores `width` bytes; true when that changed anything.
    pub(super) fn store(&mut self, places: &Places, width: u32, value: &Value) -> bool {
        let Places::Few(places) = places else {
            return self.store_anywhere(width, value);
        };
        let mut changed = false;
        for place in places {
            changed |= self.store_at(*place, width, value);
        }
        changed
    }

    /// Stores where any variable may be.
    pub(super) fn store_anywhere(&mut self, width: u32, value: &Value) -> bool {
        let stored = stored_value(value, width, 0);
        self.smeared.join(&stored) | self.everything.join(&stored)
    }

    fn store_at(&mut self, place: Place, width: u32, value: &Value) -> bool {
        let stored = stored_value(value, width, place.offset.unwrap_or(0));
        let mut changed = self.everything.join(&stored);
        let unseen = || Variable { words: HashMap::new(), smeared: Value::UNSEEN, everything: Value::UNSEEN };
        let variable = self.variables.entry(place.variable).or_insert_with(unseen);
        changed |= variable.everything.join(&stored);
        let Some(offset) = place.offset else {
            return variable.smeared.join(&stored) | changed;
        };
        for word in touched_words(offset, width) {
            changed |= variable.words.entry(word).or_insert(Value::UNSEEN).join(&stored);
        }
        changed
    }

    /// Loads `width` bytes; unseen when nothing was stored there.
    pub(super) fn load(&self, places: &Places, width: u32) -> Value {
        let mut loaded = self.smeared.clone();
        match places {
            Places::Any => {
                loaded.join(&self.everything);
            }
            Places::Few(places) => {
                for place in places {
                    self.load_at(*place, width, &mut loaded);
                }
            }
        }
        if !loaded.defined {
            return loaded;
        }
        let exact = match places {
            Places::Few(places) => places.iter().all(|p| p.offset.is_some_and(|o| o % WORD_BYTES == 0)),
            Places::Any => false,
        };
        if width == 8 && exact {
            loaded
        } else if width >= 8 {
            loaded.mixed(&Value::plain(), true)
        } else {
            loaded.piece()
        }
    }

    fn load_at(&self, place: Place, width: u32, loaded: &mut Value) {
        let Some(variable) = self.variables.get(&place.variable) else { return };
        loaded.join(&variable.smeared);
        let Some(offset) = place.offset else {
            loaded.join(&variable.everything);
            return;
        };
        for word in touched_words(offset, width) {
            if let Some(value) = variable.words.get(&word) {
                loaded.join(value);
            }
        }
    }
}

/// A whole, aligned word keeps what it is; anything else is a part of what a later load puts together.
pub(super) fn stored_value(value: &Value, width: u32, offset: i64) -> Value {
    if width == 8 && offset % WORD_BYTES == 0 {
        return value.clone();
    }
    let base = value.all.assembled();
    if base.is_empty() {
        Value { definite: false, upper: false, ..value.clone() }
    } else {
        Value { all: value.all, ..Value::pointer(base) }
    }
}

fn touched_words(offset: i64, width: u32) -> std::ops::RangeInclusive<i64> {
    let last = offset.saturating_add(i64::from(width.max(1)) - 1);
    offset.div_euclid(WORD_BYTES)..=last.div_euclid(WORD_BYTES)
}
