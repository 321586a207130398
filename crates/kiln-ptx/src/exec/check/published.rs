//! Strong writes that a thread may wait for, and what came before them.
//!
//! Strong accesses do not race, and order nothing by themselves. A thread that waits for a flag and then reads a value relies on both: without a fence
//! between the value and the flag it may find the old value behind the new flag, also if both accesses are strong.

use std::collections::HashMap;
use std::sync::Arc;

use super::fence_snapshot::{Fenced, Snapshot};
use super::happens_before::{Clocks, LAST_TIME};
use super::vector_clock::Time;

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

impl Clocks {
    /// What came before a strong write that a lane is about to make; `None` when its times are used up. The warp goes on to its next time afterwards.
    pub(crate) fn published(&self, warp: usize, lane: usize) -> Option<Published> {
        let mut snapshot = self.snapshot(warp, lane);
        if snapshot.now == LAST_TIME {
            return None;
        }
        snapshot.now -= 1;
        snapshot.all = snapshot.all.min(snapshot.now);
        Some(Published::new(snapshot))
    }

    /// A lane waited for these writes, at a step and an address.
    pub(crate) fn hear(&mut self, warp: usize, lane: usize, place: (u32, u64), writes: &[Published]) {
        if writes.is_empty() && self.warps[warp].sync.is_none() {
            return;
        }
        hear(&mut self.sync(warp)[lane].heard, place, writes);
    }

    /// Whether lanes of a warp may have waited for strong writes.
    #[inline(always)]
    pub(super) fn has_heard(&self, warp: usize) -> bool {
        self.shared.heard.is_some() || self.warps[warp].sync.is_some()
    }

    /// Whether a lane has read what releases an access, and has no fence since that acquires it.
    pub(super) fn has_heard_of(&self, from: u32, of: usize, time: Time, warp: usize, lane: usize) -> bool {
        let own = self.warps[warp].sync.as_ref().map(|sync| &sync[lane]);
        let mut syncs = own.into_iter().chain([&self.shared]);
        syncs.any(|sync| {
            let mut pending = [&sync.pending, &sync.pending_wide].into_iter().flatten();
            pending.any(|clock| clock.covers(from, of, time))
        })
    }

    /// Whether a lane waited for a write that another thread made behind this access, with no fence in between. A fence of the lane itself is not
    /// asked for.
    pub(super) fn lacks_fence(&self, from: u32, of: usize, time: Time, warp: usize, lane: usize) -> bool {
        let own = self.warps[warp].sync.as_ref().map(|sync| &sync[lane]);
        let syncs = || own.into_iter().chain([&self.shared]);
        let mut heard = syncs().filter_map(|sync| sync.heard.as_deref()).flatten();
        let mut pending = syncs().flat_map(|sync| [&sync.pending, &sync.pending_wide]).flatten();
        heard.any(|(_, write)| write.is_behind(from, of, time))
            && !pending.any(|clock| clock.covers(from, of, time))
    }
}
