//! Memory that is made on a stream is there for other streams once that stream got so far, also where the host knows everything that was
//! submitted to it to be done.

use kiln::{DeviceRuntime, RuntimeConfig, Stream, memory::MemoryConfig};
use kiln_sim::{Machine, MachineConfig};

const STACKS: [&str; 4] = ["pool", "stats(guard(pool))", "direct", "heap"];

fn run(seed: u64, stack: &str, first_use: impl Fn(&DeviceRuntime, &Stream, &Stream)) {
    let machine = Machine::new(MachineConfig::seeded(seed));
    let memory = MemoryConfig { stack: stack.parse().unwrap(), ..MemoryConfig::default() };
    let config = RuntimeConfig { memory, ..RuntimeConfig::default() };
    let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
    let (home, other) = (gpu.stream().unwrap(), gpu.stream().unwrap());
    // Once with nothing submitted to the stream, and once with something that is known to be done.
    for _ in 0..2 {
        first_use(&gpu, &home, &other);
        gpu.synchronize().unwrap();
    }
    drop((home, other, gpu));
    let report = machine.finish();
    assert!(report.is_clean(), "seed {seed}, {stack}: {report}");
}

#[test]
fn a_first_use_on_another_stream_comes_after_the_memory_is_made() {
    for stack in STACKS {
        for seed in 0..20 {
            run(seed, stack, |gpu, home, other| {
                let block = gpu.allocate_on::<u32>(home, 1000).unwrap();
                block.upload_on(other, &[7; 1000]).unwrap();
                assert_eq!(block.download().unwrap(), [7; 1000]);
            });
        }
    }
}
