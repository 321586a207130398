//! The race check of a launch, and of one of its blocks.
//!
//! Accesses to shared memory are remembered by the block, those to global memory by the launch: in pages that threads share, since blocks
//! run on several of them. Only strong accesses of code that synchronises take a lock of the whole launch, so that what they read and what
//! they acquire belong together.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::access_mark::{Mark, Reach, Touching};
use super::access_order::{Order, RaceCause};
use super::async_copies::Copies;
use super::constant_reads::ConstantReads;
use super::happens_before::Clocks;
use super::meetings::Meetings;
use super::page_table::{PageCache, PageTable};
use super::race_rule::{RaceRule, Rules};
use super::shadow_page::{PAGE_BYTES, Page, ROW_BYTES, TouchHalf};
use super::sync_location::Locations;
use super::thread_order::{InBlock, InGrid};
use super::vector_clock::Clock;
use super::warp_epochs::{EpochNumbers, WarpEpochs};
use crate::exec::address_halves::{HALF, Half, Halves};
use crate::exec::cluster_shape::ClusterShape;
use crate::exec::lowered_code::Code;
use crate::exec::own_line::OwnLine;
use crate::exec::warp_register::{Column, LANES, uniform};

/// The lanes of the first half of a warp.
const HALF_LANES: u32 = (1 << HALF) - 1;

/// What the blocks of a launch share.
pub(crate) struct LaunchRaces {
    pub(crate) rules: Rules,
    /// Whether lanes are ordered by running in lockstep, as before sm_70.
    pub(crate) lockstep: bool,
    /// Whether the code can order threads otherwise than by barriers of whole warps and blocks.
    pub(crate) partial: bool,
    /// Whether the code can order threads through memory.
    pub(crate) synchronises: bool,
    /// The steps that wait for another thread; empty if none does.
    waits: Vec<bool>,
    pub(super) warps_per_block: u32,
    pub(super) clusters: ClusterShape,
    /// Whether there is one block, which then is ordered with itself alone.
    pub(super) alone: bool,
    pub(super) epochs: WarpEpochs,
    pub(super) pages: PageTable,
    locations: OwnLine<Mutex<Locations>>,
    /// Held while an atomic update is made and remembered, where `locations` is not: updates are remembered in the order they were made in.
    updates: OwnLine<Mutex<()>>,
    /// Whether the code reads shared memory through the async proxy.
    reads_async: bool,
    /// What is read as a constant, if the code does that.
    pub(crate) constant_reads: Option<ConstantReads>,
}

impl LaunchRaces {
    pub(crate) fn new(
        code: &Code,
        warps_per_block: u32,
        blocks: u64,
        clusters: ClusterShape,
        rules: Rules,
    ) -> Self {
        let waits = if rules.has(RaceRule::PublishedValue) { code.waits() } else { Vec::new() };
        let synchronises = code.synchronises() || !waits.is_empty() || !rules.has(RaceRule::Relaxed);
        Self {
            rules,
            lockstep: code.is_lockstep(),
            partial: synchronises || code.has_partial_barriers(),
            synchronises,
            waits,
            warps_per_block,
            clusters,
            alone: blocks == 1,
            epochs: WarpEpochs::new(),
            pages: PageTable::new(),
            locations: OwnLine::default(),
            updates: OwnLine::default(),
            reads_async: code.reads_async() && rules.has(RaceRule::ProxyFence),
            constant_reads: (code.reads_constants() && rules.has(RaceRule::ConstantRead))
                .then(ConstantReads::new),
        }
    }

    /// Whether any step waits for another thread.
    #[inline(always)]
    pub(crate) fn has_waits(&self) -> bool {
        !self.waits.is_empty()
    }

    /// Whether a step does.
    #[inline(always)]
    pub(crate) fn is_wait(&self, pc: u32) -> bool {
        self.waits.get(pc as usize).copied().unwrap_or(false)
    }

    /// Whether a read relies on what its warp waited for.
    #[inline(always)]
    fn relies(&self, clocks: &Clocks, touch: &Touch) -> bool {
        self.has_waits()
            && touch.kind == Touching::StrongRead
            && !self.is_wait(touch.pc)
            && clocks.has_heard(touch.warp)
    }

    /// Whether an access is taken in lane by lane: lanes are ordered differently, or more is asked than whether it races.
    fn is_exact(&self, clocks: &Clocks, touch: &Touch) -> bool {
        self.partial || !clocks.is_alike(touch.warp) || self.relies(clocks, touch)
    }

    /// Keeps strong accesses of all threads apart.
    pub(crate) fn locations(&self) -> MutexGuard<'_, Locations> {
        lock(&self.locations)
    }

    /// Keeps atomic updates of all threads apart.
    pub(crate) fn updates(&self) -> MutexGuard<'_, ()> {
        lock(&self.updates)
    }

    /// Forgets accesses to memory that is allocated again.
    pub(crate) fn forget(&self, start: u64, bytes: u64) {
        if !self.rules.has(RaceRule::Allocation) {
            return;
        }
        if let Some(reads) = &self.constant_reads {
            reads.forget(start, bytes);
        }
        let mut at = start & !3;
        while at < start.saturating_add(bytes) {
            let end = (at / PAGE_BYTES + 1) * PAGE_BYTES;
            self.pages.with_known(at / PAGE_BYTES, |page| {
                let page = page.hold();
                let words = (at..end.min(start + bytes)).step_by(4);
                words.for_each(|address| page.forget((address % PAGE_BYTES / 4) as usize));
            });
            at = end;
        }
    }
}

/// An access of some lanes of a warp.
#[derive(Clone, Copy)]
pub(crate) struct Touch {
    pub(crate) warp: usize,
    pub(crate) mask: u32,
    pub(crate) pc: u32,
    /// Bytes of all its elements together, and of one.
    pub(crate) bytes: u32,
    pub(crate) element_bytes: u32,
    pub(crate) kind: Touching,
    /// Whether its scope reaches beyond the cluster, and whether it is the cluster.
    pub(crate) wide: bool,
    pub(crate) cluster: bool,
    /// The pattern of the addresses of all lanes, where it is known.
    pub(crate) halves: Option<Halves>,
}

impl Touch {
    fn reach(&self) -> Reach {
        match (self.wide, self.cluster) {
            (true, _) => Reach::Device,
            (_, true) => Reach::Cluster,
            _ => Reach::Block,
        }
    }

    /// The halves of the warp that touch a row of words, as it is remembered: by their first lane. The second half counts behind a first one alone: both may touch
    /// one word, and the lowest lane comes first.
    fn rows(&self) -> impl Iterator<Item = (usize, u64)> + use<> {
        let halves = self.halves.filter(|halves| halves.bytes == 4).map(|halves| halves.halves);
        let row = |(at, half): (usize, Half)| match half {
            Half::Row(start) if start.is_multiple_of(ROW_BYTES) => Some((at * HALF, start)),
            _ => None,
        };
        halves.into_iter().flat_map(|halves| halves.into_iter().enumerate()).map_while(row)
    }

    /// The rows that it has written in the lanes of `mask`: all there is to remember of them.
    fn rows_written(&self, mask: u32) -> impl Iterator<Item = (usize, u64)> + use<> {
        let writes = self.kind == Touching::Write;
        let second = self.halves.map(|halves| halves.halves[1]);
        // What the second half wrote in the row of the first one is remembered of these words.
        let is_covered = move |start: u64| match second {
            Some(Half::Row(other)) => other != start && other.abs_diff(start) < ROW_BYTES,
            Some(Half::Place(place)) => (start..start + ROW_BYTES).contains(&place),
            None => false,
        };
        self.rows().filter(move |(lane, start)| {
            writes && mask >> lane & HALF_LANES == HALF_LANES && (*lane != 0 || !is_covered(*start))
        })
    }
}

/// Two accesses that race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// The lane of the later one.
    pub(crate) lane: usize,
    /// The earlier one: its warp by its number in the grid, its lane, where it was and what it did.
    pub(crate) earlier_warp: u64,
    pub(crate) earlier_lane: usize,
    pub(crate) pc: u32,
    pub(crate) earlier: Touching,
    pub(crate) cause: RaceCause,
    /// Whether the later thread has read what the earlier one wrote behind its access and a fence, and has no fence itself since.
    pub(crate) is_heard_of: bool,
}

/// The race check of one block.
pub(crate) struct BlockRaces<'l> {
    pub(crate) launch: &'l LaunchRaces,
    pub(crate) clocks: Clocks,
    /// The numbers for epochs that it has taken.
    pub(super) epochs: EpochNumbers,
    /// Places in shared memory that threads synchronise at.
    pub(crate) locations: Locations,
    pub(crate) copies: Copies,
    /// What proxy fences of the block lie behind.
    pub(super) fenced: Option<Box<Clock>>,
    pub(super) meetings: Meetings,
    pub(super) shared: Vec<Option<Box<Page>>>,
    pub(super) cached: PageCache,
    /// In a cluster: where the shared memory that accesses reach now lies among generic addresses. It is remembered as global memory is.
    pub(crate) window: Option<u64>,
}

impl<'l> BlockRaces<'l> {
    /// For a block by its number, with these lanes and so much shared memory. `None` if the grid has more warps than can be told apart.
    pub(crate) fn new(launch: &'l LaunchRaces, block: u64, lanes: &[u32], shared_bytes: u64) -> Option<Self> {
        let mut races = Self {
            launch,
            clocks: Clocks::new(launch.lockstep, launch.rules),
            epochs: EpochNumbers::default(),
            locations: Locations::default(),
            copies: Copies::default(),
            fenced: None,
            meetings: Meetings::default(),
            shared: Vec::new(),
            cached: PageCache::new(),
            window: None,
        };
        races.start(block, lanes, shared_bytes).then_some(races)
    }

    /// Starts another block of the launch; false if the grid has more warps than can be told apart.
    pub(crate) fn start(&mut self, block: u64, lanes: &[u32], shared_bytes: u64) -> bool {
        let warps = self.launch.warps_per_block;
        let first = block.checked_mul(u64::from(warps)).and_then(|first| u32::try_from(first).ok());
        let Some(first) = first.filter(|first| first.checked_add(warps).is_some()) else { return false };
        self.shared.resize_with(shared_bytes.div_ceil(PAGE_BYTES) as usize, || None);
        self.shared.iter_mut().flatten().for_each(|page| page.clear());
        self.clocks.start(block, first, lanes);
        self.locations = Locations::default();
        self.copies = Copies::of_block(self.launch.reads_async);
        self.meetings = Meetings::default();
        (self.fenced, self.window) = (None, None);
        true
    }

    /// Takes an access to shared memory in; what it races with, at most once for each lane and word.
    pub(crate) fn touch_shared(&mut self, touch: &Touch, addresses: &Column) -> Vec<Conflict> {
        if let Some(window) = self.window {
            let addresses = addresses.map(|address| address.wrapping_add(window));
            return self.touch_global(&Touch { halves: None, ..*touch }, &addresses);
        }
        let epoch = self.clocks.local_interval(touch.warp);
        let mark = Mark::new(epoch, touch.pc, touch.kind, touch.reach(), touch.element_bytes);
        let exact = self.launch.partial;
        let relies = self.launch.relies(&self.clocks, touch);
        let mut found = Vec::new();
        let mut rest = lanes_to_take(touch, addresses, exact);
        rest = self.touch_shared_rows(touch, mark, rest);
        let slowly = rest;
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize & (LANES - 1);
            rest &= rest - 1;
            let order = InBlock { clocks: &self.clocks, warp: touch.warp, lane, epoch };
            let mark = mark.in_lane(lane);
            each_word(addresses[lane], touch.bytes, |word, bytes| {
                let (number, at) = (word * 4 / PAGE_BYTES, (word * 4 % PAGE_BYTES / 4) as usize);
                let Some(slot) = self.shared.get_mut(number as usize) else { return };
                let page = slot.get_or_insert_default();
                let stale = if relies { page.read_without_fence(at, bytes, &order) } else { None };
                let raced = page.touch(at, bytes, mark, &order, exact).or(stale);
                if let Some((old, cause)) = raced {
                    found.push(conflict(&order, lane, old, cause));
                }
            });
        }
        for (lane, start) in touch.rows_written(slowly).filter(|_| !exact) {
            if let Some(page) = self.shared.get_mut((start / PAGE_BYTES) as usize).and_then(Option::as_mut) {
                page.join_row(row(start), mark.in_lane(lane));
            }
        }
        found
    }

    /// Takes the rows in that an access to shared memory touches, as far as they can be remembered as such; `mark` is that of lane 0. The lanes of `rest`
    /// that are left: once a half is left, the other is as well, since both may touch one word.
    fn touch_shared_rows(&mut self, touch: &Touch, mark: Mark, mut rest: u32) -> u32 {
        if touch.halves.is_none() || self.launch.is_exact(&self.clocks, touch) {
            return rest;
        }
        for (lane, start) in touch.rows() {
            let order = InBlock { clocks: &self.clocks, warp: touch.warp, lane, epoch: mark.epoch() };
            let Some(slot) = self.shared.get_mut((start / PAGE_BYTES) as usize) else { break };
            let page = slot.get_or_insert_default();
            if rest >> lane & HALF_LANES != HALF_LANES
                || !page.touch_row(row(start), mark.in_lane(lane), &order)
            {
                break;
            }
            rest &= !(HALF_LANES << lane);
        }
        rest
    }

    /// The same for global memory.
    fn touch_global_rows(&mut self, touch: &Touch, mark: Mark, mut rest: u32) -> u32 {
        let (launch, number) = (self.launch, self.clocks.number(touch.warp));
        if touch.halves.is_none() || launch.is_exact(&self.clocks, touch) {
            return rest;
        }
        for (lane, start) in touch.rows() {
            let (clocks, warp, epoch) = (&self.clocks, touch.warp, mark.epoch());
            let order = InGrid { clocks, launch, warp, number, lane, epoch };
            let page = self.cached.page(&launch.pages, start / PAGE_BYTES);
            if rest >> lane & HALF_LANES != HALF_LANES
                || !page.touch_row(row(start), mark.in_lane(lane), &order)
            {
                break;
            }
            rest &= !(HALF_LANES << lane);
        }
        rest
    }

    /// Takes the end of a block of the device heap in, as a write of all of it: the first access that it races with.
    pub(crate) fn touch_freed(
        &mut self,
        warp: usize,
        lane: usize,
        pc: u32,
        start: u64,
        bytes: u64,
    ) -> Option<Conflict> {
        let launch = self.launch;
        let epoch = self.clocks.epoch(warp, &launch.epochs, &mut self.epochs)?;
        let mark = Mark::new(epoch, pc, Touching::Write, Reach::Block, 4).in_lane(lane);
        let number = self.clocks.number(warp);
        let order = InGrid { clocks: &self.clocks, launch, warp, number, lane, epoch };
        let end = start.saturating_add(bytes);
        let mut at = start & !3;
        while at < end {
            let stop = (at / PAGE_BYTES + 1) * PAGE_BYTES;
            let raced = launch.pages.with_known(at / PAGE_BYTES, |page| {
                let page = page.hold();
                let mut words =
                    (at..stop.min(end)).step_by(4).map(|address| (address % PAGE_BYTES / 4) as usize);
                words.find_map(|word| page.touch(word, 15, mark, &order, launch.partial))
            });
            if let Some((old, cause)) = raced.flatten() {
                return Some(conflict(&order, lane, old, cause));
            }
            at = stop;
        }
        None
    }

    /// Takes an access to global memory in.
    pub(crate) fn touch_global(&mut self, touch: &Touch, addresses: &Column) -> Vec<Conflict> {
        let launch = self.launch;
        let epoch = self.clocks.epoch(touch.warp, &launch.epochs, &mut self.epochs);
        let Some(epoch) = epoch else { return Vec::new() };
        let mark = Mark::new(epoch, touch.pc, touch.kind, touch.reach(), touch.element_bytes);
        let exact = launch.partial;
        let relies = launch.relies(&self.clocks, touch);
        let number = self.clocks.number(touch.warp);
        let mut found = Vec::new();
        let mut rest = lanes_to_take(touch, addresses, exact);
        rest = self.touch_global_rows(touch, mark, rest);
        let slowly = rest;
        while rest != 0 {
            let first = addresses[rest.trailing_zeros() as usize & (LANES - 1)];
            let page_number = first / PAGE_BYTES;
            let page = self.cached.page(&launch.pages, page_number).hold();
            // As many lanes as stay inside the page.
            while rest != 0 {
                let lane = rest.trailing_zeros() as usize & (LANES - 1);
                let address = addresses[lane];
                if address / PAGE_BYTES != page_number {
                    break;
                }
                rest &= rest - 1;
                let order = InGrid { clocks: &self.clocks, launch, warp: touch.warp, number, lane, epoch };
                let mark = mark.in_lane(lane);
                // An access is aligned, so it does not leave the page.
                each_word(address % PAGE_BYTES, touch.bytes, |word, bytes| {
                    let word = word as usize;
                    let stale = if relies { page.read_without_fence(word, bytes, &order) } else { None };
                    let raced = page.touch(word, bytes, mark, &order, exact).or(stale);
                    if let Some((old, cause)) = raced {
                        found.push(conflict(&order, lane, old, cause));
                    }
                });
            }
        }
        for (lane, start) in touch.rows_written(slowly).filter(|_| !exact) {
            let page = self.cached.page(&launch.pages, start / PAGE_BYTES);
            page.hold().join_row(row(start), mark.in_lane(lane));
        }
        found
    }
}

/// All lanes, or of neighbours that read one place the first two: two readers say as much as all.
#[inline]
fn lanes_to_take(touch: &Touch, addresses: &Column, exact: bool) -> u32 {
    let mask = touch.mask;
    if exact || touch.kind != Touching::Read {
        return mask;
    }
    match touch.halves.map(|halves| halves.halves) {
        Some([Half::Row(_), Half::Row(_)]) => return mask,
        Some([Half::Place(first), Half::Place(second)]) => {
            return if first == second { 3 } else { 3 | 3 << HALF };
        }
        _ => {}
    }
    if uniform(addresses, mask).is_some() {
        let others = mask & (mask - 1);
        return (mask ^ others) | (others & others.wrapping_neg());
    }
    let alike =
        (1..LANES).fold(0, |bits, lane| bits | u32::from(addresses[lane] == addresses[lane - 1]) << lane);
    // Lanes whose two lower neighbours read the same place.
    mask & !(alike & alike << 1 & mask << 1 & mask << 2)
}

/// Calls `f` for every word of an access, with a bit for each byte of it that is meant.
#[inline(always)]
fn each_word(address: u64, bytes: u32, mut f: impl FnMut(u64, u8)) {
    if address.is_multiple_of(4) && bytes.is_multiple_of(4) {
        (0..u64::from(bytes / 4)).for_each(|word| f(address / 4 + word, 15));
        return;
    }
    let mut at = address;
    let end = address + u64::from(bytes);
    while at < end {
        let stop = (at / 4 * 4 + 4).min(end);
        f(at / 4, (((1u32 << (stop - at)) - 1) << (at % 4)) as u8);
        at = stop;
    }
}

pub(super) fn conflict<O: Order>(order: &O, lane: usize, old: Mark, cause: RaceCause) -> Conflict {
    let (earlier_warp, _) = order.warp_and_block(old);
    Conflict {
        lane,
        earlier_warp,
        earlier_lane: old.lane(),
        pc: old.pc(),
        earlier: old.kind(),
        cause,
        is_heard_of: order.is_heard_of(old),
    }
}

/// The row of a page that starts at an address.
pub(super) fn row(start: u64) -> usize {
    (start % PAGE_BYTES / ROW_BYTES) as usize
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
