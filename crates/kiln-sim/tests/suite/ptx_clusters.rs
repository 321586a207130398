//! Launches in clusters reach the executor with their shape.

use std::sync::Arc;

use kiln_driver::{Command, Dim3, Driver, DriverExt, Image, LaunchCommand, StreamRequest, Vouched};
use kiln_sim::{Machine, MachineConfig, PtxEngine};

/// Each block stores its rank to the other one of its pair, and traps if it does not find that of the other.
const EXCHANGE: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .entry exchange() {
    .reg .pred %p; .reg .b32 %r<6>; .shared .align 4 .b8 place[4];
    mov.u32 %r1, %cluster_ctarank;
    xor.b32 %r2, %r1, 1;
    mov.u32 %r3, place;
    mapa.shared::cluster.u32 %r4, %r3, %r2;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    st.shared::cluster.u32 [%r4], %r1;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    ld.shared.u32 %r5, [place];
    setp.ne.u32 %p, %r5, %r2;
    @%p trap;
    ret;
}
";

/// Launches it with four blocks in clusters of this size; what is said against it.
fn launch(seed: u64, cluster: Option<Dim3>) -> Result<(), String> {
    let machine = Machine::new(MachineConfig::seeded(seed).engine(Arc::new(PtxEngine::default())));
    let device = machine.device(0).unwrap();
    let stream = device.create_stream(StreamRequest::New { priority: 0 }).unwrap();
    let module = device.load(&Image::Ptx(EXCHANGE)).unwrap();
    let launch = LaunchCommand {
        function: device.function(module, "exchange").unwrap().id,
        grid: 4.into(),
        block: 1.into(),
        cluster,
        dynamic_shared_bytes: 0,
        cooperative: false,
        arguments: &[],
        declared: None,
        // SAFETY: a simulated device keeps kernels inside its own memory, whatever they do.
        vouched: unsafe { Vouched::new() },
    };
    device.submit(stream, &Command::Launch(launch)).map_err(|error| error.to_string())?;
    device.synchronize(stream).map_err(|error| error.to_string())
}

#[test]
fn the_blocks_of_a_cluster_reach_each_other() {
    for seed in 0..8 {
        assert_eq!(launch(seed, Some(2.into())), Ok(()), "seed {seed}");
    }
}

#[test]
fn clusters_that_do_not_fit_are_refused_or_told() {
    let refused = launch(0, Some(3.into())).unwrap_err();
    assert!(refused.contains("a multiple of that of the cluster"), "{refused}");
    let told = launch(0, None).unwrap_err();
    assert!(told.contains("rank 1 of the cluster, which has 1 block"), "{told}");
}
