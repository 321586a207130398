//! Which block makes a submission wait for which other one.
//!
//! The order knows that one submission has to come after another, and forgets for which block as soon as it has published the new one. So
//! what each block asks for is noted before the step. Another thread may come in between; then a wait is recorded without its block.

use std::cell::RefCell;

use kiln_driver::Access;
use kiln_order::{Stamp, StreamKey, Use};
use kiln_trace::WaitReason;

/// Needs that are noted for one submission.
const MAX_NOTED: usize = 32;

#[derive(Clone, Copy)]
struct Need {
    stamp: Stamp,
    block: u64,
    reason: WaitReason,
}

struct Noted {
    len: usize,
    needs: [Option<Need>; MAX_NOTED],
}

thread_local! {
    static NOTED: RefCell<Noted> = const { RefCell::new(Noted { len: 0, needs: [None; MAX_NOTED] }) };
}

/// Notes what the uses of a submission on a stream have to come after.
pub(super) fn note(stream: StreamKey, uses: &[Use<'_>]) {
    NOTED.with_borrow_mut(|noted| {
        noted.len = 0;
        for each in uses {
            let history = each.history.lock();
            let (false, Some(block)) = (history.is_sole(stream), history.block()) else { continue };
            history.needs(&each.range, Access::Read, |stamp| {
                let reads = matches!(each.access, Access::Read | Access::ReadWrite);
                let reason = if reads { WaitReason::ReadAfterWrite } else { WaitReason::WriteAfterWrite };
                noted.push(Need { stamp, block, reason }, stream);
            });
            if each.access.writes() {
                history.needs(&each.range, each.access, |stamp| {
                    noted.push(Need { stamp, block, reason: WaitReason::WriteAfterRead }, stream);
                });
            }
        }
    });
}

/// Forgets what was noted.
pub(super) fn forget() {
    NOTED.with_borrow_mut(|noted| noted.len = 0);
}

/// The block for which a submission is waited for, and why; none if that was not noted.
pub(super) fn find(stamp: Stamp) -> Option<(u64, WaitReason)> {
    NOTED.with_borrow(|noted| {
        let mut needs = noted.needs.iter().take(noted.len).flatten();
        needs.find(|need| need.stamp == stamp).map(|need| (need.block, need.reason))
    })
}

impl Noted {
    /// Keeps a need, the first for each stamp and block: writes are noted before reads.
    fn push(&mut self, need: Need, own: StreamKey) {
        if need.stamp.stream == own || need.stamp.number == 0 {
            return;
        }
        if let Some(place) = self.needs.get_mut(self.len) {
            *place = Some(need);
            self.len += 1;
        }
    }
}
