//! L2: two streams taking turns on one buffer.

use crate::Failure;
use crate::raw_driver::{self, KERNELS, Raw};
use crate::result_table::Table;
use crate::timing::{Subject, in_turn, subject};
use crate::workload::launch::{kernel, runtime};

const BATCH: usize = 100;
const BATCHES: usize = 200;

pub(crate) fn two_streams(table: &mut Table, repeats: usize) -> Result<(), Failure> {
    let raw = Raw::new()?;
    let function = raw.function("one")?;
    let streams = [raw.stream()?, raw.stream()?];
    let events = [raw.event()?, raw.event()?];
    let mut packed = raw.memory(4096)?.to_ne_bytes().to_vec();
    packed.extend(0_i32.to_ne_bytes());

    let gpu = runtime()?;
    let one = kernel(&gpu, "one")?;
    let buffer = gpu.zeros::<f32>(1024)?;
    let leases = [gpu.stream()?, gpu.stream()?];

    let mut turn = 0;
    let raw_step = move || {
        turn ^= 1;
        raw_driver::wait(streams[turn], events[turn ^ 1])?;
        raw_driver::launch(function, streams[turn], &packed)?;
        raw_driver::record(events[turn], streams[turn])
    };
    let raw_settle =
        move || raw_driver::synchronize(streams[0]).and_then(|()| raw_driver::synchronize(streams[1]));
    let mut turn = 0;
    let step = || {
        turn ^= 1;
        let mut launch = gpu.launch(&one);
        launch.grid(1).block(1);
        launch.on(&leases[turn]).read_write(&buffer).value(0_i32);
        // SAFETY: the kernel touches nothing when its last argument is not negative.
        unsafe { launch.submit() }?;
        Ok(())
    };
    let subjects = [
        subject(BATCH, raw_step, raw_settle),
        subject(BATCH, step, || Ok(gpu.synchronize()?)),
        cudarc_turns()?,
    ];
    let [raw, kiln, cudarc] = in_turn(BATCHES * repeats, subjects)?;
    table.add("l2", "raw launch + record + wait", raw);
    table.add("l2", "kiln, two streams in turn", kiln);
    table.add("l2", "cudarc, two streams in turn", cudarc);
    Ok(())
}

fn cudarc_turns() -> Result<Subject<'static>, Failure> {
    use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
    let context = CudaContext::new(0)?;
    let streams = [context.new_stream()?, context.new_stream()?];
    let settled = streams.clone();
    let function = context.load_module(cudarc::nvrtc::Ptx::from_src(KERNELS))?.load_function("one")?;
    let mut buffer = streams[0].alloc_zeros::<f32>(1024)?;
    let config = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
    let mut turn = 0;
    let step = move || {
        turn ^= 1;
        let mut launch = streams[turn].launch_builder(&function);
        launch.arg(&mut buffer).arg(&0_i32);
        // SAFETY: the kernel touches nothing when its last argument is not negative.
        unsafe { launch.launch(config) }?;
        Ok(())
    };
    let settle = move || Ok(settled[0].synchronize().and_then(|()| settled[1].synchronize())?);
    Ok(subject(BATCH, step, settle))
}
