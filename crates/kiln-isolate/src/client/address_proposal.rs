//! Proposes addresses that are likely to be free in another process too.
//!
//! A worker that takes over must map every page at its old address, in a process whose libraries, stacks and driver ranges are elsewhere. So
//! reservations without a wanted address are placed where neither the system nor a driver places anything by itself, and far apart.

use std::sync::atomic::{AtomicU64, Ordering};

use kiln_driver::DeviceAddress;

/// Above what a driver reserves for itself, and below the libraries and stacks of a process.
const FIRST_ADDRESS: u64 = 0x6000_0000_0000;
/// No range ends above this address.
const LAST_ADDRESS: u64 = 0x7000_0000_0000;

/// Ranges begin at multiples of this, an alignment that no other addresses of the driver have.
const STRIDE: u64 = 1 << 30;

/// How many addresses are tried for one reservation.
pub(crate) const TRIED: u32 = 8;

/// Proposes addresses in increasing order.
#[derive(Debug)]
pub(crate) struct Addresses {
    next: AtomicU64,
}

impl Default for Addresses {
    fn default() -> Self {
        Self { next: AtomicU64::new(FIRST_ADDRESS) }
    }
}

impl Addresses {
    /// An address for `bytes`, after `refused` proposals for them were refused. Each proposal is further away than the last, since the range
    /// in the way may be large. After the last address it starts again at the first, where ranges may have been released.
    pub(crate) fn propose(&self, bytes: u64, refused: u32) -> Option<DeviceAddress> {
        // A gap follows each range, so that the driver of another process does not extend a range into it.
        let room = bytes.checked_add(1)?.checked_next_multiple_of(STRIDE)?;
        let skipped = if refused == 0 { 0 } else { STRIDE.checked_shl(refused)? };
        let fits = |from: &u64| from.checked_add(room).is_some_and(|end| end <= LAST_ADDRESS);
        let from = |next: u64| [next.saturating_add(skipped), FIRST_ADDRESS].into_iter().find(fits);
        let proposed = self
            .next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| from(next).map(|from| from + room));
        proposed.ok().and_then(from).map(DeviceAddress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_lie_apart_and_further_after_a_refusal() {
        let addresses = Addresses::default();
        let at = |bytes, refused| addresses.propose(bytes, refused).map(|at| at.0 - FIRST_ADDRESS);
        assert_eq!(
            [at(1, 0), at(STRIDE - 1, 0), at(STRIDE, 0), at(1, 0)],
            [Some(0), Some(STRIDE), Some(2 * STRIDE), Some(4 * STRIDE)]
        );
        let tried: Vec<_> = (0..TRIED).filter_map(|refused| at(1, refused)).collect();
        assert_eq!(tried.len(), TRIED as usize);
        let steps: Vec<_> = tried.windows(2).map(|pair| (pair[1] - pair[0]) / STRIDE).collect();
        assert_eq!(steps, [3, 5, 9, 17, 33, 65, 129]);
    }

    #[test]
    fn no_range_passes_the_end_and_addresses_start_again() {
        let addresses = Addresses::default();
        let room = LAST_ADDRESS - FIRST_ADDRESS;
        assert_eq!(addresses.propose(room, 0), None, "a gap must fit behind it");
        assert_eq!([addresses.propose(u64::MAX, 0), addresses.propose(1, 64)], [None; 2]);
        let half = room / 2 - STRIDE;
        let all: Vec<u64> = (0..5).filter_map(|_| addresses.propose(half, 0)).map(|at| at.0).collect();
        assert_eq!(all.len(), 5);
        assert!(all.iter().all(|at| (FIRST_ADDRESS..=LAST_ADDRESS - half).contains(at)));
        assert_eq!((all[0], all[2]), (FIRST_ADDRESS, FIRST_ADDRESS));
    }
}
