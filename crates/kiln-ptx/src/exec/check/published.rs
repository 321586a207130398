//! Strong writes that a thread may wait for, and what came before them.
//!
//! Strong accesses do not race, and order nothing by themselves. A thread that waits for a flag and then reads a value relies on both: without a fence
//! between the value and the flag it may find the old value behind the new flag, also if both accesses are strong.

use std::collections::HashMap;
use std::sync::Arc;

use super::fence_snapshot::{Fenced, Snapshot};

/// The most writes remembered of one place, and by one thread.
const CAPACITY: usize = 32;

/// What a thread was ordered behind before a strong write, that write not included.
#[derive(Clone)]
pub(crate) struct Published {
    before: Fenced,
}

impl Published {
    pub(super) fn new(snapshot: Snapshot) -> Self {
        Self { before: Fenced::of(snapshot) }
    }

    /// Whether an access came before the write.
    pub(super) fn is_behind(&self, warp: u32, lane: usize, time: u32) -> bool {
        self.before.clock().covers(warp, lane, time)
    }
}

/// The strong writes to each place of one memory that a read there still observes.
#[derive(Default)]
pub(crate) struct Flags {
    map: HashMap<u64, Vec<Published>>,
}

impl Flags {
    /// A strong write; `updates` if it is one step with a read, which then observes the writes before it.
    pub(crate) fn write(&mut self, address: u64, published: Published, updates: bool) {
        let writes = self.map.entry(address).or_default();
        if !updates {
            writes.clear();
        }
        if writes.len() == CAPACITY {
            writes.remove(0);
        }
        writes.push(published);
    }

    /// The writes that a read observes.
    pub(crate) fn at(&self, address: u64) -> &[Published] {
        self.map.get(&address).map_or(&[], Vec::as_slice)
    }
}

/// What threads waited for: the place (step and address) and the write.
pub(super) type Heard = Option<Arc<Vec<((u32, u64), Published)>>>;

/// What a thread heard at a place replaces what it heard there before: a wait relies on its last read.
pub(super) fn hear(heard: &mut Heard, place: (u32, u64), writes: &[Published]) {
    if writes.is_empty() && heard.is_none() {
        return;
    }
    let list = Arc::make_mut(heard.get_or_insert_default());
    list.retain(|(known, _)| *known != place);
    list.extend(writes.iter().map(|write| (place, write.clone())));
    let surplus = list.len().saturating_sub(2 * CAPACITY);
    list.drain(..surplus);
}

/// What either has heard.
pub(super) fn joined_heard(a: &Heard, b: &Heard) -> Heard {
    match (a, b) {
        (None, other) | (other, None) => other.clone(),
        (Some(a), Some(b)) if Arc::ptr_eq(a, b) => Some(Arc::clone(a)),
        (Some(a), Some(b)) => {
            let mut all = Vec::clone(a);
            let is_new = |(_, write): &&((u32, u64), Published)| {
                !a.iter().any(|(_, known)| known.before.is_same(&write.before))
            };
            all.extend(b.iter().filter(is_new).cloned());
            let surplus = all.len().saturating_sub(2 * CAPACITY);
            all.drain(..surplus);
            Some(Arc::new(all))
        }
    }
}
