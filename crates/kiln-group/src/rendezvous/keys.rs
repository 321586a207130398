//! Names of values in the store.

use super::message::{MAX_KEY, MAX_VALUE};
use super::store::own_keys;
use super::{RendezvousError, Result};

/// Refuses a key or a value that the store does not take.
pub(super) fn check(key: &str, value: &[u8]) -> Result<()> {
    match () {
        () if key.len() > MAX_KEY => Err(RendezvousError::TooLarge { what: "the key", bytes: key.len() }),
        () if key.contains('\0') => Err(RendezvousError::ZeroInKey),
        () if value.len() > MAX_VALUE => {
            Err(RendezvousError::TooLarge { what: "the value", bytes: value.len() })
        }
        () => Ok(()),
    }
}

/// Where rank 0 puts the id of the communicator of all ranks with this number.
pub(crate) fn meeting_key(number: u64) -> String {
    format!("kiln/communicator/{number}")
}

/// Where a rank puts what it gives in an exchange or a barrier of this name. Programs put values of keys that they choose, also of this name and a number.
pub(super) fn exchange_key(name: &str, rank: u32) -> String {
    format!("kiln/met/{rank}/{name}")
}

/// Where a rank says in which process it is.
pub(super) fn process_key(rank: u32) -> String {
    format!("kiln/process/{rank}")
}

/// Where a rank says where it waits.
pub(super) fn waiting_key(rank: u32) -> String {
    format!("{}at", own_keys(rank))
}
