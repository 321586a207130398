//! Pinned memory in random programs: copies from it and to it, and what it must hold in the end.

use kiln::{Stream, buffer::PinnedBuffer};

use super::{POISON, Program, Tally, Wrong, is_untouched};

const PINS: usize = 2;

/// Pinned memory of the program.
pub(super) struct Pin {
    buffer: PinnedBuffer<u32>,
    number: usize,
    /// As for a slot.
    value: Option<u32>,
    last: Option<usize>,
}

impl Program {
    /// Makes the pinned memory.
    pub(super) fn pin(&mut self) {
        for _ in 0..PINS {
            let buffer = self.gpu.pinned::<u32>(1).unwrap();
            self.blocks += 1;
            self.pins.push(Pin { buffer, number: self.blocks, value: Some(0), last: None });
        }
    }

    /// Queues a copy from a block to pinned memory, or the other way round. False if the device took nothing any more.
    pub(super) fn step_on_pinned(&mut self, stream: &Stream, readback: bool, slot: usize) -> bool {
        let at = self.dice.roll(PINS);
        let (pin, block) = (&mut self.pins[at], &mut self.slots[slot]);
        if readback {
            match pin.buffer.copy_from_on(stream, &block.buffer) {
                Ok(ticket) => {
                    (pin.value, pin.last) = (block.value, Some(self.items.len()));
                    let (writes, reads) = (pin.number, vec![block.number]);
                    self.push(ticket, writes, reads, true);
                    true
                }
                Err(error) => {
                    if !is_untouched(&error) {
                        pin.value = None;
                        self.perhaps_written.push(self.pins[at].number);
                    }
                    false
                }
            }
        } else {
            match pin.buffer.copy_to_on(stream, &block.buffer) {
                Ok(ticket) => {
                    (block.value, block.last) = (pin.value, Some(self.items.len()));
                    let (writes, reads) = (block.number, vec![pin.number]);
                    self.push(ticket, writes, reads, true);
                    true
                }
                Err(error) => self.refused(&error, slot),
            }
        }
    }

    /// Pinned memory holds what its last copy was to bring, or says that it did not come.
    pub(super) fn judge_pins(&self, tally: &mut Tally) -> Result<(), Wrong> {
        for (at, pin) in self.pins.iter().enumerate() {
            let Some(value) = pin.value else { continue };
            let last_done = pin.last.is_none_or(|item| self.items[item].ticket.wait().is_ok());
            match pin.buffer.read() {
                Ok(found) if last_done && found == [value] && value != POISON => tally.pinned += 1,
                Ok(found) if last_done => {
                    let what = format!("pinned memory {at} holds {found:?} where {value} was to be");
                    return Err(Wrong::Bytes(what));
                }
                read => {
                    if read.is_ok() != last_done {
                        let what =
                            format!("pinned memory {at}: {read:?}, and its last copy is done: {last_done}");
                        return Err(Wrong::Word(what));
                    }
                }
            }
        }
        Ok(())
    }
}
