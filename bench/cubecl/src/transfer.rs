//! T1 and T2: copies between host and device, and pinned memory.

use std::time::Instant;

use cubecl::bytes::Bytes;
use cubecl::future::block_on;

use crate::row::{REPEATS, Spread, batches, print};
use crate::{Client, Failure};

const BYTES: usize = 256 << 20;
const MIB: usize = 1 << 20;

/// T1. CubeCL allocates for every upload and answers a download with its memory, so a copy into the caller's comes on top.
pub(crate) fn pageable(client: &Client) -> Result<(), Failure> {
    let mut pageable = vec![1_u8; BYTES];
    let (mut up, mut read, mut down) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        let start = Instant::now();
        let handle = client.create_from_slice(&pageable);
        block_on(client.sync()).map_err(|error| format!("{error:?}"))?;
        up.push(rate(start));
        let start = Instant::now();
        let bytes = client.read_one(handle).map_err(|error| format!("{error:?}"))?;
        read.push(rate(start));
        pageable.copy_from_slice(&bytes);
        down.push(rate(start));
    }
    print("t1 pageable up", "CubeCL create_from_slice", Spread::of(up), "GB/s");
    print("t1 pageable down", "CubeCL read_one, into its memory", Spread::of(read), "GB/s");
    print("t1 pageable down", "CubeCL read_one and a copy", Spread::of(down), "GB/s");
    Ok(())
}

/// T2: a pinned block of 1 MiB. Pinned memory is had by turning bytes into a staging buffer, which copies them.
pub(crate) fn pinned_block(client: &Client) -> Result<(), Failure> {
    let stage = || {
        let mut bytes = Bytes::from_bytes_vec(vec![0; MIB]);
        client.staging(std::iter::once(&mut bytes), false);
        Ok(())
    };
    let spread = batches((20, 1), stage, || Ok(()), || Ok(()))?;
    print("t2", "CubeCL, staging of 1 MiB with its copy", spread, "ns");
    Ok(())
}

/// Gigabytes per second.
fn rate(start: Instant) -> f64 {
    BYTES as f64 / start.elapsed().as_nanos() as f64
}
