//! The shared memory of one block.

use crate::exec::column::{Column, each, lanes_where};

/// Bytes of one block; only the thread that runs the block touches them.
#[derive(Debug)]
pub(crate) struct Shared {
    bytes: Vec<u8>,
    /// Which bytes were written, when a launch asks for it.
    written: Option<Vec<bool>>,
}

impl Shared {
    pub(crate) fn new(bytes: usize, track: bool) -> Self {
        Self { bytes: vec![0; bytes], written: track.then(|| vec![false; bytes]) }
    }

    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The value at an address that was checked.
    #[inline(always)]
    pub(crate) fn load(&self, address: u64, bytes: u32) -> u64 {
        let at = address as usize;
        let read = |len: usize| self.bytes.get(at..at + len);
        match bytes {
            4 => read(4).and_then(|b| b.try_into().ok()).map_or(0, |b| u64::from(u32::from_le_bytes(b))),
            8 => read(8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes),
            2 => read(2).and_then(|b| b.try_into().ok()).map_or(0, |b| u64::from(u16::from_le_bytes(b))),
            _ => self.bytes.get(at).map_or(0, |b| u64::from(*b)),
        }
    }

    /// Writes the low bytes of a value at an address that was checked.
    #[inline(always)]
    pub(crate) fn store(&mut self, address: u64, bytes: u32, value: u64) {
        let (at, len) = (address as usize, bytes as usize);
        if let Some(into) = self.bytes.get_mut(at..at + len) {
            into.copy_from_slice(&value.to_le_bytes()[..len.min(8)]);
        }
        if let Some(written) = self.written.as_mut().and_then(|written| written.get_mut(at..at + len)) {
            written.fill(true);
        }
    }

    pub(crate) fn load_lanes(&self, addresses: &Column, mask: u32, bytes: u32, out: &mut Column) {
        each(mask, |lane| out[lane] = self.load(addresses[lane], bytes));
    }

    pub(crate) fn store_lanes(&mut self, addresses: &Column, mask: u32, bytes: u32, values: &Column) {
        each(mask, |lane| self.store(addresses[lane], bytes, values[lane]));
    }

    /// The lanes that read a byte that was never written.
    pub(crate) fn unwritten(&self, addresses: &Column, mask: u32, bytes: u32) -> u32 {
        let Some(written) = &self.written else { return 0 };
        lanes_where(mask, |lane| {
            let at = addresses[lane] as usize;
            written.get(at..at + bytes as usize).is_some_and(|part| part.contains(&false))
        })
    }
}
