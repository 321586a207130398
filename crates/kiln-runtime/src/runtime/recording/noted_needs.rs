//! Which block makes a submission wait for which other one.
//!
//! The order tells what a submission has to come after while it plans it, block by block, and then which waits come of that. Both happen in the
//! thread that submits, so what each block asks for is noted there.

use std::cell::RefCell;

use kiln_order::{Need, NeedReason, Stamp};
use kiln_trace::WaitReason;

/// Needs that are noted for one submission.
const MAX_NOTED: usize = 32;

struct Noted {
    /// Whose needs they are: the recording, by its address, and the submission.
    of: Option<(usize, Stamp)>,
    len: usize,
    needs: [Option<Need>; MAX_NOTED],
}

thread_local! {
    static NOTED: RefCell<Noted> = const { RefCell::new(Noted { of: None, len: 0, needs: [None; MAX_NOTED] }) };
}

/// Notes what a submission has to come after.
pub(super) fn note(recording: usize, need: &Need) {
    NOTED.with_borrow_mut(|noted| {
        if noted.of != Some((recording, need.waiter)) {
            (noted.of, noted.len) = (Some((recording, need.waiter)), 0);
        }
        if let Some(place) = noted.needs.get_mut(noted.len) {
            *place = Some(*need);
            noted.len += 1;
        }
    });
}

/// Forgets what was noted.
pub(super) fn forget() {
    NOTED.with_borrow_mut(|noted| noted.of = None);
}

/// The block for which a submission waits for another one, and why; none if that was not noted.
pub(super) fn find(recording: usize, waiter: Stamp, needed: Stamp) -> Option<(u64, WaitReason)> {
    NOTED.with_borrow(|noted| {
        noted.of.filter(|of| *of == (recording, waiter))?;
        let mut needs = noted.needs.iter().take(noted.len).flatten();
        let need = needs.find(|need| need.needed == needed)?;
        let reason = match need.reason {
            NeedReason::ReadAfterWrite => WaitReason::ReadAfterWrite,
            NeedReason::WriteAfterWrite => WaitReason::WriteAfterWrite,
            NeedReason::WriteAfterRead => WaitReason::WriteAfterRead,
        };
        Some((need.block, reason))
    })
}
