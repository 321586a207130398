//! The registers of a lane group, kept to be compared with what they are later.

use super::frame::{Frame, FrameId};
use super::lane_group::LaneGroup;
use crate::exec::warp_register::Column;

/// The kept registers of a lane group.
#[derive(Default)]
pub(super) struct KeptState {
    mask: u32,
    frame: FrameId,
    columns: Vec<Column>,
    predicates: Vec<u32>,
    carry: u32,
    /// A column that differed when it was last compared: it most likely differs again.
    differs: usize,
}

impl KeptState {
    /// Keeps the registers of a lane group, which are settled.
    pub(super) fn keep(&mut self, lane_group: &LaneGroup, frame: &Frame) {
        (self.mask, self.frame) = (lane_group.mask, lane_group.frame);
        self.columns.clear();
        self.columns.extend(frame.columns().copied());
        self.predicates.clear();
        self.predicates.extend_from_slice(frame.predicates());
        self.carry = frame.carry;
        self.differs = 0;
    }

    /// Whether the lane group has these registers.
    pub(super) fn holds(&mut self, lane_group: &LaneGroup, frame: &Frame) -> bool {
        let registers = &frame.registers;
        match (registers.get(self.differs), self.columns.get(self.differs)) {
            (Some(now), Some(then)) if !now.holds(then) => return false,
            _ => {}
        }
        if (lane_group.mask, lane_group.frame, frame.carry) != (self.mask, self.frame, self.carry)
            || frame.predicates() != self.predicates
        {
            return false;
        }
        match registers.iter().zip(&self.columns).position(|(now, then)| !now.holds(then)) {
            Some(differs) => {
                self.differs = differs;
                false
            }
            None => registers.len() == self.columns.len(),
        }
    }
}
