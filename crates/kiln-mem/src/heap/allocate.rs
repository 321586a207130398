//! The way of a request that the front could not serve, and of a free that the front did not take.

use kiln_sync::BiasedGuard;

use super::arena::{Arena, Taken};
use super::arena_cell::{ArenaCell, Books, Tried};
use super::choose::PAGE_UNITS;
use super::front::Batch;
use super::ground::{GrowError, Growth};
use super::size_class::{CLASSED_UNITS, UNIT_BYTES, rounded_units};
use super::{Heap, Shard, Ticket};
use crate::block::DeviceBlock;
use crate::error::{ErrorKind, FreeError, Refusal, Result};
use crate::request::Request;
use crate::stamp::{Stamp, Stamps, StreamKey};

/// Pending blocks that an ordinary request looks at.
const SETTLED_AT_ONCE: usize = 16;
/// Free memory an arena may have before frames are folded rather than added, however little is in use.
const SPARE_LEAST_UNITS: u64 = (16 << 20) / UNIT_BYTES;
/// How often a thread grows an arena and finds that another one took what it added.
const GROWN_AT_MOST: usize = 16;

/// What is looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ask {
    pub(super) units: u32,
    /// In units; 1 is no wish.
    pub(super) align: u64,
    /// Added to an address before it is aligned.
    pub(super) phase: u64,
    pub(super) bytes: u64,
}

impl Ask {
    /// Units that hold the block wherever they start.
    pub(super) fn padded_units(self) -> u64 {
        u64::from(self.units) + self.align - 1
    }

    pub(super) fn is_plain(self) -> bool {
        self.align == 1
    }

    #[inline]
    pub(super) fn take_in(self, arena: &mut Arena) -> Option<Taken> {
        if self.is_plain() {
            arena.take(self.units)
        } else {
            arena.take_aligned(self.units, self.align, self.phase)
        }
    }
}

impl Heap {
    /// Units for a request that is unusual, or that the lists hold nothing for.
    #[inline(never)]
    pub(super) fn take_uncommon(&self, shard: &Shard, request: &Request, tried: Tried) -> Result<Ticket> {
        if request.bytes == 0 {
            check_align(request.align)?;
            return Ok(Ticket::NOTHING);
        }
        let ask = self.ask(request)?;
        let cell = self.arena_of(shard, request.stream.key);
        self.acquire(shard, cell, ask, tried)
    }

    #[inline(never)]
    pub(super) fn free_to_arena(
        &self,
        shard: &Shard,
        block: DeviceBlock,
        uses: &Stamps,
    ) -> std::result::Result<(), FreeError> {
        let ticket = Ticket::of(block.token);
        let (tag, bytes) = (block.tag, block.bytes);
        if ticket.units > 0 {
            let Some(cell) = self.arenas.get(ticket.arena) else { return Err(FreeError::stale(block)) };
            let stream = block.stream;
            match self.uses_that_matter(cell, stream, uses) {
                Ok(uses) => {
                    if !self.give(shard, cell, ticket, &uses) {
                        return Err(FreeError::stale(block));
                    }
                }
                Err(error) => return Err(FreeError::new(block, ErrorKind::from(error))),
            }
        }
        self.ledger.note_freed(&shard.page, tag, bytes);
        Ok(())
    }

    /// Gives a part of a stock that is over its limit back to its arena.
    #[cold]
    pub(super) fn shrink_stock(&self, shard: &Shard, stream: StreamKey) {
        let shrunk = shard.with_front(|front| {
            let stock = front.stock(stream.number())?;
            Some((stock.arena, stock.shrink()))
        });
        if let Some((arena, batch)) = shrunk {
            self.give_batch(arena, &batch);
        }
    }

    /// Gives blocks of a stock back to their arena.
    pub(super) fn give_batch(&self, arena: u32, batch: &Batch) {
        let Some(cell) = self.arenas.get(arena) else { return };
        let now = self.order.latest(cell.stream()) as u32;
        cell.lock().arena.give_all(batch.as_slice(), now, now);
    }

    /// Takes units for a request out of an arena, whatever it takes.
    fn acquire(&self, shard: &Shard, cell: &ArenaCell, ask: Ask, tried: Tried) -> Result<Ticket> {
        if tried == Tried::Nothing
            && let Some(ticket) = self.take_own(shard, cell, ask)
        {
            return Ok(ticket);
        }
        if self.empty_stock(shard, cell) > 0
            && let Some(ticket) = self.take_own(shard, cell, ask)
        {
            return Ok(ticket);
        }
        if self.import(cell, ask)
            && let Some(ticket) = self.take_own(shard, cell, ask)
        {
            return Ok(ticket);
        }
        let fold_first = !self.may_grow(cell, ask);
        if fold_first {
            if let Some(ticket) = self.fold(cell, ask)? {
                return Ok(ticket);
            }
            if let Some(ticket) = self.fold_with_more(cell, ask)? {
                return Ok(ticket);
            }
        }
        let refused = match self.grow(shard, cell, ask) {
            Ok(ticket) => return Ok(ticket),
            Err(refused) => refused,
        };
        if !fold_first && let Some(ticket) = self.fold(cell, ask)? {
            return Ok(ticket);
        }
        self.climb(shard, cell, ask, refused)
    }

    /// Takes units out of the stream's own arena.
    #[inline]
    pub(super) fn take_own(&self, shard: &Shard, cell: &ArenaCell, ask: Ask) -> Option<Ticket> {
        let mut books = cell.lock();
        if !books.is_settled() {
            books.settle(cell.stream(), &*self.order, SETTLED_AT_ONCE);
        }
        if books.away {
            self.go_home_if_empty(shard, cell, &mut books);
        }
        let taken = ask.take_in(&mut books.arena)?;
        Some(Ticket { taken, units: ask.units, arena: cell.number })
    }

    /// Adds memory to an arena and takes the units from it.
    pub(super) fn grow(
        &self,
        shard: &Shard,
        cell: &ArenaCell,
        ask: Ask,
    ) -> std::result::Result<Ticket, GrowError> {
        let mut refused = None;
        for _ in 0..GROWN_AT_MOST {
            let growth = growth_of(&cell.lock().arena, cell.number, ask);
            let mut books = match self.add(cell, growth) {
                Ok(books) => books,
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            };
            let taken = ask.take_in(&mut books.arena);
            let owned = books.arena.owned_units();
            drop(books);
            self.limit_stock(shard, cell, owned);
            if let Some(taken) = taken {
                return Ok(Ticket { taken, units: ask.units, arena: cell.number });
            }
        }
        Err(refused.unwrap_or(GrowError::Window { bytes: ask.bytes }))
    }

    /// Adds memory to an arena, whose books are returned before anybody else has them.
    pub(super) fn add<'c>(
        &self,
        cell: &'c ArenaCell,
        growth: Growth,
    ) -> std::result::Result<BiasedGuard<'c, Books>, GrowError> {
        let mut left = self.ground.grow(growth)?;
        self.happened.growths.note();
        let now = self.order.latest(cell.stream()) as u32;
        let mut books = cell.lock();
        while left.units > 0 {
            let units = left.units.min(u64::from(u32::MAX) / PAGE_UNITS * PAGE_UNITS);
            books.arena.extend(left.start, units as u32, left.edge, 0, now);
            left.start += units;
            left.units -= units;
        }
        Ok(books)
    }

    /// Whether an arena has so little to spare that adding to it is better than folding.
    fn may_grow(&self, cell: &ArenaCell, ask: Ask) -> bool {
        let Some(ground) = self.ground.pages().filter(|_| ask.padded_units() >= PAGE_UNITS) else {
            return true;
        };
        let books = cell.lock();
        let growth = growth_of(&books.arena, cell.number, ask);
        let owned = books.arena.owned_units() + growth.missing_units;
        let used = books.arena.used_units() + u64::from(ask.units);
        let room = ground.room_pages() * PAGE_UNITS;
        let spare = self.spare.of(used, room, self.patience.is_over());
        owned.saturating_sub(used) <= spare.max(SPARE_LEAST_UNITS)
    }

    /// Makes a taken piece free, at once or when `uses` are over. `false` if there is no such piece.
    fn give(&self, shard: &Shard, cell: &ArenaCell, ticket: Ticket, uses: &Stamps) -> bool {
        let now = self.order.latest(cell.stream()) as u32;
        let mut books = cell.lock();
        if !uses.is_empty() {
            return books.postpone(ticket.taken, ticket.units, *uses);
        }
        let given = books.arena.give(ticket.taken, now, now);
        if books.away {
            self.go_home_if_empty(shard, cell, &mut books);
        }
        let owned = books.arena.owned_units();
        drop(books);
        if ticket.units <= CLASSED_UNITS && self.is_known(cell) {
            // The next block of this size that this thread frees on the stream finds a stock.
            self.limit_stock(shard, cell, owned);
        }
        given
    }

    /// The uses that the arena's stream is not ordered after. A block that was lent to another stream was used there.
    fn uses_that_matter(
        &self,
        cell: &ArenaCell,
        stream: StreamKey,
        uses: &Stamps,
    ) -> std::result::Result<Stamps, Refusal> {
        let owner = cell.stream();
        if uses.is_empty() && stream == owner {
            return Ok(Stamps::NONE);
        }
        let mut uses = *uses;
        uses.retain(|stamp| !self.order.is_ordered(owner, stamp));
        if stream != owner {
            let last = Stamp { stream, number: self.order.latest(stream) };
            if !self.order.is_ordered(owner, last) {
                uses.add(last)?;
            }
        }
        Ok(uses)
    }

    fn ask(&self, request: &Request) -> Result<Ask> {
        check_align(request.align)?;
        let refused = || ErrorKind::from(Refusal::Size(request.bytes));
        let units = rounded_units(request.bytes).ok_or_else(refused)?;
        let align = (request.align / UNIT_BYTES).max(1);
        self.ground.check_align(align)?;
        let ask = Ask { units, align, phase: self.ground.phase(), bytes: request.bytes };
        if u32::try_from(ask.padded_units()).is_err() {
            return Err(refused().into());
        }
        Ok(ask)
    }
}

fn check_align(align: u64) -> Result<()> {
    if align.is_power_of_two() && align <= Request::MAX_ALIGN {
        return Ok(());
    }
    Err(ErrorKind::from(Refusal::Alignment { align, most: Request::MAX_ALIGN }).into())
}

pub(super) fn growth_of(arena: &Arena, number: u32, ask: Ask) -> Growth {
    let request_units = ask.padded_units();
    Growth {
        arena: number,
        missing_units: request_units.saturating_sub(u64::from(arena.tail_units())).max(1),
        request_units,
        owned_units: arena.owned_units(),
    }
}
