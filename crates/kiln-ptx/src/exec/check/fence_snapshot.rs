//! Snapshots of a thread's clock, taken at fences and at barriers.

use std::sync::{Arc, OnceLock};

use super::block_knowledge::Base;
use super::published::{Heard, joined_heard};
use super::vector_clock::{Clock, Time, joined_options};
use crate::exec::warp_register::LANES;

/// What a lane was ordered behind at some moment, put together only when it is needed.
pub(super) struct Snapshot {
    pub(super) base: Arc<Base>,
    pub(super) known: Option<Arc<Clock>>,
    pub(super) warp: u32,
    pub(super) all: Time,
    pub(super) lane: usize,
    pub(super) now: Time,
    pub(super) row: Option<Box<[Time; LANES]>>,
}

impl Snapshot {
    pub(super) fn clock(&self) -> Clock {
        let mut clock = Clock::clone(self.base.clock());
        if let Some(known) = &self.known {
            clock.join(known);
        }
        clock.add(self.warp, self.all, self.row.as_deref());
        clock.add_lanes(self.warp, 1 << self.lane, self.now);
        clock
    }
}

/// What lies behind a fence.
#[derive(Clone)]
pub(super) enum Fenced {
    Lane(Arc<(Snapshot, OnceLock<Arc<Clock>>)>),
    Joined(Arc<Clock>),
}

impl Fenced {
    pub(super) fn of(snapshot: Snapshot) -> Self {
        Self::Lane(Arc::new((snapshot, OnceLock::new())))
    }

    pub(super) fn clock(&self) -> Arc<Clock> {
        match self {
            Self::Lane(lane) => Arc::clone(lane.1.get_or_init(|| Arc::new(lane.0.clock()))),
            Self::Joined(clock) => Arc::clone(clock),
        }
    }

    /// Whether both are of one fence.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Lane(a), Self::Lane(b)) => Arc::ptr_eq(a, b),
            (Self::Joined(a), Self::Joined(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

/// How a lane takes part in synchronisation through memory.
#[derive(Clone, Default)]
pub(super) struct LaneSync {
    /// What its strong writes release to threads of its block: what lay before its last fence.
    pub(super) narrow: Option<Fenced>,
    /// The same for all threads, from fences of a wide scope.
    pub(super) wide: Option<Fenced>,
    /// What its next fence acquires.
    pub(super) pending: Option<Arc<Clock>>,
    /// What its next fence of a wide scope acquires.
    pub(super) pending_wide: Option<Arc<Clock>>,
    /// The strong writes that it waited for.
    pub(super) heard: Heard,
}

/// What threads bring to a meeting.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) clock: Clock,
    narrow: Option<Arc<Clock>>,
    wide: Option<Arc<Clock>>,
    pending: Option<Arc<Clock>>,
    pending_wide: Option<Arc<Clock>>,
    heard: Heard,
}

impl Gathered {
    pub(super) fn add_sync(&mut self, sync: &LaneSync) {
        let narrow = sync.narrow.as_ref().map(Fenced::clock);
        let wide = sync.wide.as_ref().map(Fenced::clock);
        self.narrow = joined_options(self.narrow.as_ref(), narrow.as_ref());
        self.wide = joined_options(self.wide.as_ref(), wide.as_ref());
        self.pending = joined_options(self.pending.as_ref(), sync.pending.as_ref());
        self.pending_wide = joined_options(self.pending_wide.as_ref(), sync.pending_wide.as_ref());
        self.heard = joined_heard(&self.heard, &sync.heard);
    }

    pub(super) fn join(&mut self, other: &Self) {
        self.clock.join(&other.clock);
        self.narrow = joined_options(self.narrow.as_ref(), other.narrow.as_ref());
        self.wide = joined_options(self.wide.as_ref(), other.wide.as_ref());
        self.pending = joined_options(self.pending.as_ref(), other.pending.as_ref());
        self.pending_wide = joined_options(self.pending_wide.as_ref(), other.pending_wide.as_ref());
        self.heard = joined_heard(&self.heard, &other.heard);
    }

    /// What each of those who met has of it, if anything.
    pub(super) fn sync(&self) -> Option<LaneSync> {
        let clocks = [&self.narrow, &self.wide, &self.pending, &self.pending_wide];
        let any = clocks.iter().any(|clock| clock.is_some()) || self.heard.is_some();
        any.then(|| LaneSync {
            narrow: self.narrow.clone().map(Fenced::Joined),
            wide: self.wide.clone().map(Fenced::Joined),
            pending: self.pending.clone(),
            pending_wide: self.pending_wide.clone(),
            heard: self.heard.clone(),
        })
    }
}
