//! What a rank brings and the store has no room for.

use super::call_text::number_text;
use super::{Bridge, Place};
use crate::collective_part::Part;
use crate::error::GroupError;
use crate::transfer::Brought;

const NEXT: &str =
    "receive what was sent, exchange less at a time, or raise `exchange_limit_bytes` of rank 0";

impl Bridge {
    /// There is no room for a piece of what this rank brings. What is there of it goes away, and the others are told, also one that has read some pieces and waits for the next: each piece, up to
    /// this one, is in the place of all.
    pub(super) fn no_room(
        &self,
        place: &Place,
        part: &Part,
        (key, piece, limit): (&str, usize, u64),
    ) -> GroupError {
        self.job.rendezvous.forget(format!("{key}/"));
        let called = "no call: the store of rank 0 has no room for what it brings";
        let told = Brought { called, said: "", call: 0, bytes: &[] }.packed();
        let value = [&1_u64.to_le_bytes()[..], &told].concat();
        (0..=piece).for_each(|at| self.job.rendezvous.post(&format!("{key}/{at}"), &value));
        let Part { collective, count, .. } = part;
        let what = format!(
            "{}, {} of {} bytes, has no room in the store of rank 0: it takes {limit} bytes of all that ranks bring to collectives and have sent",
            number_text(place),
            collective.name(),
            count.saturating_mul(collective.element().bytes()),
        );
        GroupError::Collective { what, next: NEXT }
    }
}
