//! M1: 64 KiB allocated and freed.

use crate::row::{batches, print};
use crate::{Client, Failure};

const BYTES: usize = 64 << 10;

pub(crate) fn pairs(client: &Client) -> Result<(), Failure> {
    let pair = || {
        drop(client.empty(BYTES));
        Ok(())
    };
    let flush = || client.flush().map_err(|error| format!("{error:?}").into());
    let spread = batches((400, 100), pair, || Ok(()), flush)?;
    print("m1", "CubeCL empty + drop, handing over alone", spread, "ns");
    let spread = batches((400, 100), pair, flush, || Ok(()))?;
    print("m1", "CubeCL empty + drop", spread, "ns");
    Ok(())
}
