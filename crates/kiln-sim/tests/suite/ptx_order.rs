//! The order of blocks and warps: that of their numbers with seed 0, others with other seeds.

use std::sync::Arc;

use kiln_driver::{
    Command, Driver, DriverExt, Image, LaunchCommand, MemoryRequest, Pattern, StreamRequest, Vouched,
};
use kiln_sim::{Machine, MachineConfig, PtxEngine};

/// Each warp takes a ticket and leaves its number there.
const TICKETS: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry tickets(.param .u64 data) {
    .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; setp.ne.u32 %p, %r2, 0;
    @%p bra done;
    shr.u32 %r1, %r1, 5; mov.u32 %r3, %ctaid.x; mad.lo.u32 %r3, %r3, 4, %r1;
    atom.global.add.u32 %r4, [%rd1], 1;
    mul.wide.u32 %rd2, %r4, 4; add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3+4], %r3;
done:
    ret;
}
";

const BLOCKS: u32 = 100;
const WARPS: u32 = 4;

/// The numbers of warps in the order in which they ran, in each of three launches.
fn orders(config: MachineConfig) -> Vec<Vec<u32>> {
    let machine = Machine::new(config.engine(Arc::new(PtxEngine::default())));
    let device = machine.device(0).unwrap();
    let stream = device.create_stream(StreamRequest::New { priority: 0 }).unwrap();
    let words = BLOCKS * WARPS + 1;
    let bytes = u64::from(words) * 4;
    let memory = device.allocate(MemoryRequest::Direct { bytes }).unwrap();
    let host = device.allocate_host(bytes).unwrap();
    let module = device.load(&Image::Ptx(TICKETS)).unwrap();
    let function = device.function(module, "tickets").unwrap().id;
    let run = |_| {
        let zeros = Command::Fill { to: memory.id.into(), pattern: Pattern::U32(0), count: u64::from(words) };
        device.submit(stream, &zeros).unwrap();
        let launch = LaunchCommand {
            function,
            grid: BLOCKS.into(),
            block: (32 * WARPS).into(),
            cluster: None,
            dynamic_shared_bytes: 0,
            cooperative: false,
            arguments: &memory.address.0.to_le_bytes(),
            declared: None,
            // SAFETY: a simulated device keeps kernels inside its own memory, whatever they do.
            vouched: unsafe { Vouched::new() },
        };
        device.submit(stream, &Command::Launch(launch)).unwrap();
        device.download(stream, memory.id.into(), &host, bytes).unwrap();
        device.synchronize(stream).unwrap();
        let mut left = vec![0; bytes as usize];
        assert!(host.read(0, &mut left));
        left.chunks_exact(4).skip(1).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    };
    (0..3).map(run).collect()
}

#[test]
fn with_seed_0_blocks_and_warps_run_in_the_order_of_their_numbers() {
    let numbers: Vec<u32> = (0..BLOCKS * WARPS).collect();
    for order in orders(MachineConfig::seeded(0)) {
        assert_eq!(order, numbers);
    }
    for seed in 1..4 {
        let others = orders(MachineConfig::seeded(seed));
        assert_eq!(others, orders(MachineConfig::seeded(seed)), "a seed gives the same orders again");
        for order in &others {
            assert_ne!(*order, numbers, "seed {seed}");
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, numbers, "each warp runs once");
        }
        assert_ne!(others[0], others[1], "each launch has a separate order");
    }
}
