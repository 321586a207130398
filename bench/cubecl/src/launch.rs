//! L1, L2, L3: launches.
//!
//! A launch goes to CubeCL's own thread, which calls the driver. Each workload therefore has two rows: what the caller pays, and what a
//! launch takes until that thread has worked off the batch.

use cubecl::future::block_on;
use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::stream_id::StreamId;

use crate::kernels::{four, many, one};
use crate::row::{batches, print};
use crate::{Client, Failure};

const BATCHES: (usize, usize) = (400, 100);
const LEN: usize = 1024;

fn buffer(client: &Client) -> Handle {
    client.create_from_slice(&[0; LEN * size_of::<f32>()])
}

fn argument(handle: &Handle) -> ArrayArg<cubecl::cuda::CudaRuntime> {
    // SAFETY: every buffer here was made by `buffer`.
    unsafe { ArrayArg::from_raw_parts(handle.clone(), LEN) }
}

fn measure(workload: &str, what: &str, clients: &[&Client], mut launch: impl FnMut()) -> Result<(), Failure> {
    let mut submit = || {
        launch();
        Ok(())
    };
    let settle = || {
        for client in clients {
            block_on(client.sync()).map_err(|error| format!("{error:?}"))?;
        }
        Ok(())
    };
    let flush = || {
        for client in clients {
            client.flush().map_err(|error| format!("{error:?}"))?;
        }
        Ok(())
    };
    // The first launch compiles.
    submit()?;
    settle()?;
    let paid = batches(BATCHES, &mut submit, || Ok(()), settle)?;
    print(workload, &format!("CubeCL, {what}, handing over alone"), paid, "ns");
    let done = batches(BATCHES, &mut submit, flush, settle)?;
    print(workload, &format!("CubeCL, {what}"), done, "ns");
    Ok(())
}

/// L1: four buffers and a scalar on one stream.
pub(crate) fn four_buffers(client: &Client) -> Result<(), Failure> {
    let [a, b, c, d] = [(); 4].map(|()| buffer(client));
    measure("l1", "4 tracked buffers + scalar", &[client], || {
        // SAFETY: the kernel touches nothing when its last argument is not negative.
        unsafe {
            four::launch_unchecked(
                client,
                CubeCount::new_single(),
                CubeDim::new_single(),
                argument(&a),
                argument(&b),
                argument(&c),
                argument(&d),
                0_i32,
            )
        }
    })
}

/// L2: two streams taking turns on one buffer.
pub(crate) fn two_streams(client: &Client) -> Result<(), Failure> {
    let clients = [101, 102].map(|value| {
        let mut client = client.clone();
        // SAFETY: the streams are this function's own, and it waits for their work before it returns.
        unsafe { client.set_stream(StreamId { value }) };
        client
    });
    let shared = buffer(&clients[0]);
    let mut turn = 0;
    measure("l2", "two streams in turn", &[&clients[0], &clients[1]], || {
        turn ^= 1;
        // SAFETY: as above.
        unsafe {
            one::launch_unchecked(
                &clients[turn],
                CubeCount::new_single(),
                CubeDim::new_single(),
                argument(&shared),
                0_i32,
            )
        }
    })
}

/// L3: 32 buffers read by one launch.
pub(crate) fn many_buffers(client: &Client) -> Result<(), Failure> {
    let buffers: Vec<Handle> = (0..32).map(|_| buffer(client)).collect();
    measure("l3", "32 tracked buffers", &[client], || {
        // SAFETY: as above.
        unsafe {
            many::launch_unchecked(
                client,
                CubeCount::new_single(),
                CubeDim::new_single(),
                argument(&buffers[0]),
                argument(&buffers[1]),
                argument(&buffers[2]),
                argument(&buffers[3]),
                argument(&buffers[4]),
                argument(&buffers[5]),
                argument(&buffers[6]),
                argument(&buffers[7]),
                argument(&buffers[8]),
                argument(&buffers[9]),
                argument(&buffers[10]),
                argument(&buffers[11]),
                argument(&buffers[12]),
                argument(&buffers[13]),
                argument(&buffers[14]),
                argument(&buffers[15]),
                argument(&buffers[16]),
                argument(&buffers[17]),
                argument(&buffers[18]),
                argument(&buffers[19]),
                argument(&buffers[20]),
                argument(&buffers[21]),
                argument(&buffers[22]),
                argument(&buffers[23]),
                argument(&buffers[24]),
                argument(&buffers[25]),
                argument(&buffers[26]),
                argument(&buffers[27]),
                argument(&buffers[28]),
                argument(&buffers[29]),
                argument(&buffers[30]),
                argument(&buffers[31]),
                0_i32,
            )
        }
    })
}
