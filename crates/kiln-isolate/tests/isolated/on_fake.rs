//! The laws on CUDA in a worker process, over a library that stands in for the driver.

use kiln_conform::{Chapter, Kernels, Opened, Subject};
use kiln_isolate::{DeviceSpec, IsolatedDevice, IsolationConfig, WorkerEntry};

use crate::machine::Machine;

fn hold(chapter: Chapter, test: &str) {
    let subject = Subject::new("a worker with CUDA on the stand-in", Kernels::ptx(), |_| {
        let mut config = IsolationConfig::new(DeviceSpec::cuda(0)).entry(WorkerEntry::Test("worker".into()));
        config.inherited_variables = vec!["FAKE_CUDA_DEVICES".into(), "FAKE_CUDA_PLAN".into()];
        IsolatedDevice::open(config).map(|device| Opened::new(device)).map_err(|error| error.to_string())
    });
    let summary = kiln_conform::run_test(&subject, chapter, module_path!(), test);
    println!("{summary}");
    assert!(summary.holds(), "{summary}");
}

on_machine! {
    fn device() on Machine::fake().quiet() => { hold(Chapter::Device, "device") }
    fn pages() on Machine::fake().quiet() => { hold(Chapter::Pages, "pages") }
    fn memory() on Machine::fake().quiet() => { hold(Chapter::Memory, "memory") }
    fn host() on Machine::fake().quiet() => { hold(Chapter::Host, "host") }
    fn streams() on Machine::fake().quiet() => { hold(Chapter::Streams, "streams") }
    fn code() on Machine::fake().quiet() => { hold(Chapter::Code, "code") }
    fn work() on Machine::fake().quiet() => { hold(Chapter::Work, "work") }
    fn order() on Machine::fake().quiet() => { hold(Chapter::Order, "order") }
    fn graphs() on Machine::fake().quiet() => { hold(Chapter::Graphs, "graphs") }
    fn handles() on Machine::fake().quiet() => { hold(Chapter::Handles, "handles") }
    fn threads() on Machine::fake().quiet() => { hold(Chapter::Threads, "threads") }
    fn loss() on Machine::fake().quiet() => { hold(Chapter::Loss, "loss") }
}
