//! Calls between processes in words.

use super::{Caller, Place, Transfer};
use crate::collective_part::Part;
use crate::transfer::TransferCall;

/// A send or a receive at its place in the program.
pub(super) fn called_at<'a>(transfer: &Transfer, part: &'a Part, caller: Caller) -> TransferCall<'a> {
    let place = caller.place;
    TransferCall { transfer: *transfer, collective: &part.collective, count: part.count, place }
}

/// The number of a call, and between which ranks it is.
pub(super) fn number_text(place: &Place) -> String {
    match place {
        Place::All(number) => format!("collective {number}"),
        Place::Pair(Transfer { from, to, number }) => {
            format!("transfer {number} from rank {from} to rank {to}")
        }
    }
}
