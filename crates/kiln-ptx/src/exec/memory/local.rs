//! Local memory: the stacks of the threads of one warp.
//!
//! Eight bytes of all lanes lie side by side, so that an access of all lanes to the same place of their stacks, which
//! is the usual one, touches one column. Which bits were written is kept beside it when a launch asks for it.

use crate::exec::warp_register::{Column, LANES, each, uniform};

const WORD: u64 = 8;

/// The stacks of a warp; they grow as functions are called.
#[derive(Debug, Default)]
pub(crate) struct Local {
    words: Vec<Column>,
    /// A one for every bit that was written.
    written: Option<Vec<Column>>,
}

impl Local {
    pub(crate) fn new(track: bool) -> Self {
        Self { words: Vec::new(), written: track.then(Vec::new) }
    }

    /// Makes room up to `bytes`.
    pub(crate) fn reserve(&mut self, bytes: u64) {
        let words = bytes.div_ceil(WORD) as usize;
        if words > self.words.len() {
            self.words.resize(words, [0; LANES]);
        }
        if let Some(written) = &mut self.written {
            written.resize(self.words.len(), [0; LANES]);
        }
    }

    /// Bytes that any function has used so far.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.words.len() as u64 * WORD
    }

    /// Forgets what was written to a range in the lanes of `mask`: a new frame starts out undefined.
    pub(crate) fn forget(&mut self, start: u64, bytes: u64, mask: u32) {
        let Some(written) = &mut self.written else { return };
        let range = (start / WORD) as usize..(start + bytes).div_ceil(WORD) as usize;
        for word in written.get_mut(range).into_iter().flatten() {
            each(mask, |lane| word[lane] = 0);
        }
    }

    /// Makes a range defined in the lanes of `mask`; it starts and ends at a multiple of eight.
    pub(crate) fn define(&mut self, start: u64, bytes: u64, mask: u32) {
        let Some(written) = &mut self.written else { return };
        let range = (start / WORD) as usize..((start + bytes) / WORD) as usize;
        for word in written.get_mut(range).into_iter().flatten() {
            each(mask, |lane| word[lane] = u64::MAX);
        }
    }

    /// Loads values of `bytes` each. Addresses were checked against the stack before.
    pub(crate) fn load(&self, addresses: &Column, mask: u32, bytes: u32, out: &mut Column) {
        let ones = u64::MAX >> (64 - 8 * bytes);
        if let Some(address) = uniform(addresses, mask) {
            let shift = (address % WORD) * 8;
            let Some(word) = self.words.get((address / WORD) as usize) else { return };
            each(mask, |lane| out[lane] = word[lane] >> shift & ones);
            return;
        }
        each(mask, |lane| {
            let (at, shift) = (addresses[lane] / WORD, addresses[lane] % WORD * 8);
            out[lane] = self.words.get(at as usize).map_or(0, |word| word[lane] >> shift & ones);
        });
    }

    /// Stores values of `bytes` each.
    pub(crate) fn store(&mut self, addresses: &Column, mask: u32, bytes: u32, values: &Column) {
        let ones = u64::MAX >> (64 - 8 * bytes);
        each(mask, |lane| {
            let (at, shift) = ((addresses[lane] / WORD) as usize, addresses[lane] % WORD * 8);
            if let Some(word) = self.words.get_mut(at) {
                word[lane] = (word[lane] & !(ones << shift)) | (values[lane] & ones) << shift;
            }
            if let Some(written) = self.written.as_mut().and_then(|written| written.get_mut(at)) {
                written[lane] |= ones << shift;
            }
        });
    }

    /// The lanes that read a byte that was never written.
    pub(crate) fn unwritten(&self, addresses: &Column, mask: u32, bytes: u32) -> u32 {
        let Some(written) = &self.written else { return 0 };
        let ones = u64::MAX >> (64 - 8 * bytes);
        crate::exec::warp_register::lanes_where(mask, |lane| {
            let wanted = ones << (addresses[lane] % WORD * 8);
            written.get((addresses[lane] / WORD) as usize).is_some_and(|bits| bits[lane] & wanted != wanted)
        })
    }

    /// The bits of a value of a lane that are undefined.
    pub(crate) fn undefined(&self, address: u64, lane: usize, bytes: u32) -> u64 {
        let ones = u64::MAX >> (64 - 8 * bytes);
        let word = self.written.as_ref().and_then(|written| written.get((address / WORD) as usize));
        word.map_or(0, |word| !word[lane] >> (address % WORD * 8) & ones)
    }

    /// Marks bits as undefined, after they were stored.
    pub(crate) fn undefine(&mut self, address: u64, lane: usize, bytes: u32, bits: u64) {
        let ones = u64::MAX >> (64 - 8 * bytes);
        if let Some(word) =
            self.written.as_mut().and_then(|written| written.get_mut((address / WORD) as usize))
        {
            word[lane] &= !((bits & ones) << (address % WORD * 8));
        }
    }

    /// Copies whole words from one place of the stacks to another; both start at a multiple of eight.
    pub(crate) fn copy(&mut self, from: u64, to: u64, bytes: u64, mask: u32) {
        for word in 0..bytes.div_ceil(WORD) {
            let (from, to) = ((from / WORD + word) as usize, (to / WORD + word) as usize);
            let Some(source) = self.words.get(from).copied() else { return };
            let Some(target) = self.words.get_mut(to) else { return };
            crate::exec::warp_register::blend(target, &source, mask);
            if let Some(written) = &mut self.written {
                let source = written.get(from).copied().unwrap_or([0; LANES]);
                if let Some(target) = written.get_mut(to) {
                    each(mask, |lane| target[lane] = source[lane]);
                }
            }
        }
    }
}
