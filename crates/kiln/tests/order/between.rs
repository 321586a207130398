//! A reader that arrives while a writer is between its plan and its work.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kiln::order::Mutation;
use kiln::{DeviceRuntime, RuntimeConfig};
use kiln_driver::{Access, Command, Pattern};
use kiln_sim::{Machine, MachineConfig};

const LEN: usize = 8;

/// Whether the reader was let through before the writer's work was queued, or what the simulator found.
///
/// The writer gives the reader its chance before it queues: a moment if the reader should be held back, since then it has no end, and as
/// long as it takes if a rule is taken out and it should not.
pub(crate) fn reader_went_ahead(mutation: Option<Mutation>) -> Result<bool, String> {
    let chance = if mutation.is_some() { Duration::from_secs(60) } else { Duration::from_millis(50) };
    let machine = Machine::new(MachineConfig::seeded(3));
    let went_ahead = {
        let config = RuntimeConfig { mutation, ..RuntimeConfig::default() };
        let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
        let buffer = gpu.upload(&[1_u32; LEN]).unwrap();
        let (writer, reader) = (gpu.stream().unwrap(), gpu.stream().unwrap());
        let (planned, through) = (Barrier::new(2), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                planned.wait();
                gpu.prepare_block_use(&reader, &[buffer.used_as(Access::Read)]).unwrap().finish().unwrap();
                through.store(true, Ordering::SeqCst);
            });
            let used = gpu.prepare_block_use(&writer, &[buffer.used_as(Access::Write)]).unwrap();
            planned.wait();
            let began = Instant::now();
            while !through.load(Ordering::SeqCst) && began.elapsed() < chance {
                std::thread::yield_now();
            }
            let went_ahead = through.load(Ordering::SeqCst);
            let to = buffer.place().unwrap();
            let fill = Command::Fill { to, pattern: Pattern::U32(9), count: LEN as u64 };
            gpu.driver().submit(used.stream(), &fill).unwrap();
            used.finish().unwrap();
            went_ahead
        })
    };
    let report = machine.finish();
    if report.is_clean() { Ok(went_ahead) } else { Err(report.to_string()) }
}
