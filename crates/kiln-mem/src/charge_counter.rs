//! One number with a limit, charged with compare-and-swap.
//!
//! A charge is added and then settled or cancelled. What may be cancelled may vanish again, so a charge that finds no
//! room while others are unsettled looks again. Bytes and the number of unsettled charges are one word: no thread sees
//! the one without the other. Settled bytes are counted once more by themselves: of them alone there is a peak, and of
//! them alone something can be given back.

use kiln_sync::sync_shim::{AtomicU64, Ordering, yield_now};

/// One unsettled charge; the bits below count bytes, up to 256 TiB.
const UNSETTLED: u64 = 1 << 48;
const BYTES: u64 = UNSETTLED - 1;

/// What is used, and how much may be.
#[derive(Debug)]
pub(crate) struct Account {
    limit: AtomicU64,
    state: AtomicU64,
    /// Bytes of charges that were settled; never more than `state` has.
    settled: AtomicU64,
    peak: AtomicU64,
}

impl Account {
    pub(crate) fn new(limit: u64) -> Self {
        let [state, settled, peak] = std::array::from_fn(|_| AtomicU64::new(0));
        Self { limit: AtomicU64::new(limit), state, settled, peak }
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    pub(crate) fn set_limit(&self, limit: u64) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    pub(crate) fn used(&self) -> u64 {
        self.state.load(Ordering::Relaxed) & BYTES
    }

    /// The most that was used, of charges that were settled.
    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Adds bytes if they fit; to be followed by [`settle`](Self::settle) or [`cancel`](Self::cancel), with nothing
    /// slow between. The error is what is used and the limit.
    pub(crate) fn try_charge(&self, bytes: u64) -> Result<(), (u64, u64)> {
        loop {
            let limit = self.limit().min(BYTES);
            let state = self.state.load(Ordering::Acquire);
            let used = state & BYTES;
            if used.checked_add(bytes).is_some_and(|wanted| wanted <= limit) {
                let next = state + bytes + UNSETTLED;
                let added =
                    self.state.compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Relaxed);
                if added.is_ok() {
                    return Ok(());
                }
            } else if state < UNSETTLED {
                return Err((used, limit));
            } else {
                // If settled charges alone leave no room, it does not matter what becomes of the others.
                let settled = self.settled.load(Ordering::Acquire);
                if settled.checked_add(bytes).is_none_or(|wanted| wanted > limit) {
                    return Err((settled, limit));
                }
                yield_now();
            }
        }
    }

    /// The charge of so many bytes stands.
    pub(crate) fn settle(&self, bytes: u64) {
        let before = self.settled.fetch_add(bytes, Ordering::AcqRel);
        self.peak.fetch_max(before + bytes, Ordering::Relaxed);
        self.state.fetch_sub(UNSETTLED, Ordering::AcqRel);
    }

    /// The charge is taken back.
    pub(crate) fn cancel(&self, bytes: u64) {
        self.state.fetch_sub(UNSETTLED + bytes, Ordering::AcqRel);
    }

    /// Gives settled bytes back; returns how many. Of more than are settled only those are given back: a count that wrapped
    /// around would be taken for charges that never settle.
    pub(crate) fn refund(&self, bytes: u64) -> u64 {
        let less = |settled: u64| Some(settled - bytes.min(settled));
        let before = self.settled.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less);
        let given = bytes.min(before.unwrap_or_else(|settled| settled));
        self.state.fetch_sub(given, Ordering::AcqRel);
        given
    }
}

#[cfg(test)]
#[cfg(not(any(kiln_loom, kiln_shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn a_charge_that_cannot_fit_does_not_wait_for_others() {
        let account = Account::new(100);
        account.try_charge(60).unwrap();
        account.settle(60);
        account.try_charge(10).unwrap();
        assert_eq!(account.try_charge(50), Err((60, 100)));
        assert_eq!(account.try_charge(u64::MAX), Err((60, 100)));
        account.cancel(10);
        account.try_charge(40).unwrap();
        account.settle(40);
        assert_eq!((account.used(), account.peak()), (100, 100));
    }
}
