//! The reactor's thread: not there before it is needed, one however many wait, gone with its runtime. It runs in a process for itself, since it counts
//! threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kiln::{DeviceRuntime, RuntimeConfig, completion::CompletionConfig};
use kiln_sim::{Machine, MachineConfig};

use crate::alone::alone;

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn one_thread_when_needed_and_none_afterwards() {
    alone(concat!(module_path!(), "::one_thread_when_needed_and_none_afterwards"), count_threads);
}

fn count_threads() {
    let before = threads();
    for round in 0..20 {
        let machine = Machine::new(MachineConfig::seeded(round));
        let completion = CompletionConfig { spin: Duration::ZERO };
        let config = RuntimeConfig { completion, ..RuntimeConfig::default() };
        let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
        let buffer = gpu.zeros::<u32>(16).unwrap();
        buffer.fill(1).unwrap().wait().unwrap();
        assert_eq!(threads(), before, "a runtime no thread waits for asynchronously has no thread");
        let (calls, mut waited) = (Arc::<AtomicUsize>::default(), 0);
        while waited < 100 {
            let ticket = buffer.fill(2).unwrap();
            let calls = calls.clone();
            ticket.on_done(move |_| {
                calls.fetch_add(1, Ordering::SeqCst);
            });
            waited += 1;
        }
        assert!(threads() <= before + 1);
        gpu.synchronize().unwrap();
        drop((buffer, gpu));
        assert_eq!((threads(), calls.load(Ordering::SeqCst)), (before, waited));
    }
}
