//! Accesses of a whole warp in rows or to places, as the race check takes them in.

use super::access_mark::{Mark, Reach, Touching};
use super::access_order::Order;
use super::races::{BlockRaces, row};
use super::shadow_page::{PAGE_BYTES, ROW_BYTES, TouchHalf};
use super::thread_order::{InBlock, InGrid};
use crate::exec::address_halves::{HALF, Half, Halves};

impl BlockRaces<'_> {
    /// Takes a plain access of a whole warp in that reaches rows of words, or reads one place in each half. False if it may race or must be looked at lane by
    /// lane: it can be taken in again then.
    #[inline]
    pub(crate) fn touch_halves(
        &mut self,
        warp: usize,
        pc: u32,
        (writes, shared): (bool, bool),
        halves: &Halves,
    ) -> bool {
        let launch = self.launch;
        let is_place = match halves.halves {
            [Half::Row(first), Half::Row(second)] if (first | second).is_multiple_of(ROW_BYTES) => false,
            [Half::Place(_), Half::Place(_)] if !writes => true,
            _ => return false,
        };
        if halves.bytes != 4
            || launch.partial
            || !self.clocks.is_alike(warp)
            || shared && self.window.is_some()
        {
            return false;
        }
        let starts = halves.halves.map(Half::start);
        let kind = if writes { Touching::Write } else { Touching::Read };
        // Neighbours that read one place: two readers say as much as all.
        let is_one = is_place && starts[0] == starts[1];
        let parts = [(0, starts[0]), (HALF, starts[1])];
        let parts = if is_one { &parts[..1] } else { &parts[..] };
        if shared {
            let epoch = self.clocks.local_interval(warp);
            let mark = Mark::new(epoch, pc, kind, Reach::Block, 4);
            return parts.iter().all(|(lane, start)| {
                let Some(slot) = self.shared.get_mut((start / PAGE_BYTES) as usize) else { return false };
                let order = |lane: usize| InBlock { clocks: &self.clocks, warp, lane, epoch };
                let page = &**slot.get_or_insert_default();
                touch_half(page, (*lane, *start), is_place, mark, order)
            });
        }
        let epoch = self.clocks.epoch(warp, &launch.epochs, &mut self.epochs);
        let Some(epoch) = epoch else { return false };
        let number = self.clocks.number(warp);
        let mark = Mark::new(epoch, pc, kind, Reach::Block, 4);
        let clocks = &self.clocks;
        let order = |lane: usize| InGrid { clocks, launch, warp, number, lane, epoch };
        parts.iter().all(|half| {
            let page = self.cached.page(&launch.pages, half.1 / PAGE_BYTES);
            touch_half(page, *half, is_place, mark, order)
        })
    }
}

/// Takes the access of half a warp in, which starts at a lane, to a row of words or to one word; `mark` is that of lane 0.
#[inline(always)]
fn touch_half<O: Order>(
    page: &impl TouchHalf,
    (lane, start): (usize, u64),
    is_place: bool,
    mark: Mark,
    order: impl Fn(usize) -> O,
) -> bool {
    match is_place {
        true => {
            let word = (start % PAGE_BYTES / 4) as usize;
            let marks = [mark.in_lane(lane), mark.in_lane(lane + 1)];
            page.touch_place(word, marks, [order(lane), order(lane + 1)])
        }
        false => page.touch_row(row(start), mark.in_lane(lane), &order(lane)),
    }
}
