//! Laws about launches of kernels.

use kiln_driver::{Command, Dim3, DriverExt, LaunchCommand, Refusal};

use crate::expect::{equal, holds, inapplicable, refused, refused_somehow, unsupported};
use crate::fixture::{Rig, plain_launch};
use crate::kernels::Arguments;
use crate::law::{LawVerdict, fail};

pub(super) fn kernels(rig: &Rig<'_>) -> LawVerdict {
    const COUNT: u32 = 1000;
    let stream = rig.stream()?;
    let memory = rig.words(1024)?;
    let arguments = Arguments::new().address(memory.address).u32(COUNT);
    rig.launch(stream, rig.kernel("fill_index")?.id, 4, 256, &arguments)?;
    rig.driver.synchronize(stream)?;
    let expected: Vec<u32> = (0..1024).map(|at| if at < COUNT { at } else { 0 }).collect();
    equal("what fill_index wrote", rig.get_words(&memory, 1024)?, expected)?;
    let floats =
        |of: fn(u32) -> f32| (0..COUNT).flat_map(move |at| of(at).to_le_bytes()).collect::<Vec<u8>>();
    let (x, y) =
        (rig.memory_with(&floats(|at| at as f32))?, rig.memory_with(&floats(|at| 1000.0 - at as f32))?);
    let arguments = Arguments::new().f32(2.5).address(x.address).address(y.address).u32(COUNT);
    rig.launch(stream, rig.kernel("axpy")?.id, COUNT.div_ceil(128), 128, &arguments)?;
    rig.driver.synchronize(stream)?;
    // Every product and sum is a multiple of a half below 2^24, so there is nothing to round.
    let expected: Vec<u32> = (0..COUNT).map(|at| (1000.0 + 1.5 * at as f32).to_bits()).collect();
    equal("what axpy computed", rig.get_words(&y, u64::from(COUNT))?, expected)
}

pub(super) fn shapes(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let visit = rig.kernel("visit")?;
    let shapes: [(Dim3, Dim3); 6] = [
        (1.into(), 1.into()),
        (7.into(), 33.into()),
        ((3, 2).into(), (5, 4).into()),
        ((2, 3, 4).into(), (4, 3, 2).into()),
        ((1, 1, 5).into(), (1, 1, 64).into()),
        ((1, 70).into(), (1, 64).into()),
    ];
    for (grid, block) in shapes {
        let threads = (grid.count() * block.count()) as u64;
        let memory = rig.words(threads)?;
        let arguments = Arguments::new().address(memory.address);
        rig.launch(stream, visit.id, grid, block, &arguments)?;
        rig.driver.synchronize(stream)?;
        let what = format!("how often each thread of {grid} blocks of {block} ran");
        equal(what, rig.get_words(&memory, threads)?, vec![1; threads as usize])?;
    }
    Ok(())
}

pub(super) fn arguments_are_taken_at_once(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let memory = rig.words(8)?;
    let store = rig.kernel("store_value")?;
    rig.busy(stream)?;
    let mut buffer = [0u8; 12];
    for value in 0..8u32 {
        let arguments =
            Arguments::new().address(kiln_driver::DeviceAddress(memory.address.0 + 4 * u64::from(value)));
        buffer.copy_from_slice(arguments.u32(value + 100).bytes());
        let launch = LaunchCommand {
            arguments: &buffer,
            declared: None,
            ..plain_launch(store.id, 1, 1, &Arguments::new())
        };
        rig.driver.submit(stream, &Command::Launch(launch))?;
        buffer.fill(0xff);
    }
    rig.driver.synchronize(stream)?;
    equal("what the launches wrote", rig.get_words(&memory, 8)?, (100..108).collect())
}

pub(super) fn shapes_refused(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let memory = rig.words(1)?;
    let store = rig.kernel("store_value")?;
    let limits = &rig.driver.info().limits;
    let (grid, block) = (limits.max_grid, limits.max_block);
    let threads = limits.max_threads_per_block;
    let one = Dim3::from(1);
    let mut shapes = vec![
        (Dim3::new(0, 1, 1), one),
        (Dim3::new(1, 0, 1), one),
        (Dim3::new(1, 1, 0), one),
        (one, Dim3::new(0, 1, 1)),
        (one, Dim3::new(1, 0, 1)),
        (one, Dim3::new(1, 1, 0)),
        (one, Dim3::new(threads, 2, 1)),
        (one, Dim3::new(threads + 1, 1, 1)),
        (one, Dim3::new(1, 1, block.z.saturating_add(1))),
        (one, Dim3::new(u32::MAX, u32::MAX, u32::MAX)),
        (Dim3::new(1, grid.y.saturating_add(1), 1), one),
        (Dim3::new(1, 1, grid.z.saturating_add(1)), one),
        (Dim3::new(u32::MAX, u32::MAX, u32::MAX), one),
    ];
    if grid.x < u32::MAX {
        shapes.push((Dim3::new(grid.x + 1, 1, 1), one));
    }
    let arguments = Arguments::new().address(memory.address).u32(9);
    for (grid, block) in shapes {
        let answer = rig.launch(stream, store.id, grid, block, &arguments);
        refused_somehow(format!("a launch of {grid} blocks of {block} threads"), answer)?;
    }
    equal("submissions after nothing but refusals", rig.driver.progress(stream)?.submitted.0, 0)?;
    equal("the word nothing wrote", rig.get_words(&memory, 1)?, vec![0])
}

pub(super) fn dynamic_shared(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let memory = rig.words(1)?;
    let kernel = rig.kernel("through_shared")?;
    let limits = &rig.driver.info().limits;
    for (bytes, value) in
        [(4, 1), (limits.shared_bytes_per_block, 2), (limits.shared_bytes_per_block_optin, 3), (64, 4)]
    {
        let arguments = Arguments::new().address(memory.address).u32(value).u32(bytes);
        let launch =
            LaunchCommand { dynamic_shared_bytes: bytes, ..plain_launch(kernel.id, 1, 1, &arguments) };
        rig.driver.submit(stream, &Command::Launch(launch))?;
        rig.driver.synchronize(stream)?;
        equal(format!("what went through {bytes} shared bytes"), rig.get_words(&memory, 1)?, vec![value])?;
    }
    Ok(())
}

pub(super) fn dynamic_shared_refused(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let memory = rig.words(1)?;
    let kernel = rig.kernel("through_shared")?;
    let limit = rig.driver.info().limits.shared_bytes_per_block_optin;
    for bytes in [limit + 1, limit + 4, u32::MAX] {
        let arguments = Arguments::new().address(memory.address).u32(1).u32(4);
        let launch =
            LaunchCommand { dynamic_shared_bytes: bytes, ..plain_launch(kernel.id, 1, 1, &arguments) };
        let answer = rig.driver.submit(stream, &Command::Launch(launch));
        refused_somehow(format!("a launch with {bytes} shared bytes"), answer)?;
    }
    equal("submissions after nothing but refusals", rig.driver.progress(stream)?.submitted.0, 0)?;
    let arguments = Arguments::new().address(memory.address).u32(1).u32(4);
    let launch = LaunchCommand { dynamic_shared_bytes: 4, ..plain_launch(kernel.id, 1, 1, &arguments) };
    rig.driver.submit(stream, &Command::Launch(launch))?;
    rig.driver.synchronize(stream)?;
    equal("a launch after that", rig.get_words(&memory, 1)?, vec![1])
}

pub(super) fn cooperative(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let memory = rig.words(2)?;
    let kernel = rig.kernel("meet")?;
    let info = rig.driver.info();
    let per_multiprocessor = rig.driver.occupancy(kernel.id, 64, 0)?.blocks_per_multiprocessor;
    let blocks = info.limits.multiprocessors * per_multiprocessor;
    let arguments = Arguments::new().address(memory.address).u32(blocks);
    let launch = LaunchCommand { cooperative: true, ..plain_launch(kernel.id, blocks, 64, &arguments) };
    let answer = rig.driver.submit(stream, &Command::Launch(launch));
    if !info.features.cooperative_launch {
        unsupported("a cooperative launch", answer)?;
        return inapplicable("the device has no cooperative launches");
    }
    answer?;
    rig.driver.synchronize(stream)?;
    equal("blocks that came and blocks that met all others", rig.get_words(&memory, 2)?, vec![blocks; 2])
}

pub(super) fn cooperative_refused(rig: &Rig<'_>) -> LawVerdict {
    let info = rig.driver.info();
    if !info.features.cooperative_launch {
        return inapplicable("the device has no cooperative launches");
    }
    let stream = rig.stream()?;
    let memory = rig.words(2)?;
    let kernel = rig.kernel("meet")?;
    let per_multiprocessor = rig.driver.occupancy(kernel.id, 64, 0)?.blocks_per_multiprocessor;
    let limit = u64::from(info.limits.multiprocessors) * u64::from(per_multiprocessor);
    for blocks in [limit as u32 + 1, limit as u32 * 3, info.limits.max_grid.x] {
        let arguments = Arguments::new().address(memory.address).u32(blocks);
        let launch = LaunchCommand { cooperative: true, ..plain_launch(kernel.id, blocks, 64, &arguments) };
        let answer = rig.driver.submit(stream, &Command::Launch(launch));
        let expected = Refusal::CooperativeResidencyExceeded { blocks: u64::from(blocks), limit };
        match &answer {
            Err(error) if error.refusal() == Some(&expected) => {}
            Err(error) => return Err(fail(expected, error)),
            Ok(_) => return Err(fail(expected, "that it was accepted")),
        }
    }
    equal("submissions after nothing but refusals", rig.driver.progress(stream)?.submitted.0, 0)?;
    equal("the words nothing wrote", rig.get_words(&memory, 2)?, vec![0; 2])
}

pub(super) fn clusters(rig: &Rig<'_>) -> LawVerdict {
    let info = rig.driver.info();
    let stream = rig.stream()?;
    let kernel = rig.kernel("visit")?;
    let memory = rig.words(8 * 32)?;
    let arguments = Arguments::new().address(memory.address);
    let in_clusters = |blocks: u32, cluster: Dim3| {
        let launch =
            LaunchCommand { cluster: Some(cluster), ..plain_launch(kernel.id, blocks, 32, &arguments) };
        rig.driver.submit(stream, &Command::Launch(launch))
    };
    if !info.features.cluster_launch {
        unsupported("a launch in clusters", in_clusters(8, 2.into()))?;
        return inapplicable("the device has no clusters");
    }
    in_clusters(8, 2.into())?;
    in_clusters(8, 4.into())?;
    rig.driver.synchronize(stream)?;
    equal("how often each thread ran", rig.get_words(&memory, 256)?, vec![2; 256])?;
    let most = info.limits.max_cluster_blocks;
    holds(most > 1, "room for a cluster", most)?;
    for (blocks, cluster) in [
        (8, Dim3::from(3)),
        (8, Dim3::new(0, 1, 1)),
        (most * 32, Dim3::from(most * 16)),
        (8, Dim3::new(1, 2, 1)),
    ] {
        let reason = |reason: &Refusal| !matches!(reason, Refusal::Stale { .. } | Refusal::Foreign { .. });
        refused(format!("{blocks} blocks in clusters of {cluster}"), in_clusters(blocks, cluster), reason)?;
    }
    equal("submissions", rig.driver.progress(stream)?.submitted.0, 2)
}
