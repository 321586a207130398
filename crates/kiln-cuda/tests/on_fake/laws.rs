//! The laws of the driver interface on the stand-in. What the driver does with handles, arguments, errors and order is the same here
//! as on hardware; only the kernels and the waiting are not real.

use std::sync::Arc;

use kiln_conform::{Chapter, Kernels, Loss, Opened, Subject};
use kiln_cuda::CudaDevice;
use kiln_driver::Driver;

use crate::machine::Machine;

fn hold(chapter: Chapter, test: &str) {
    let open = |ordinal| CudaDevice::open(ordinal).map(|device| device as Arc<dyn Driver>);
    let subject = Subject::new("CUDA on the stand-in", Kernels::ptx(), move |_| {
        let opened = Opened::new(open(0).map_err(|error| error.to_string())?);
        Ok(opened.with_peer(open(1).map_err(|error| error.to_string())?))
    });
    let subject = subject.loss(Loss::ChildProcess);
    let summary = kiln_conform::run_test(&subject, chapter, module_path!(), test);
    println!("{summary}");
    assert!(summary.holds(), "{summary}");
}

on_machine! {
    fn device() on Machine::fake().devices(2).quiet() => { hold(Chapter::Device, "device") }
    fn pages() on Machine::fake().devices(2).quiet() => { hold(Chapter::Pages, "pages") }
    fn memory() on Machine::fake().devices(2).quiet() => { hold(Chapter::Memory, "memory") }
    fn host() on Machine::fake().devices(2).quiet() => { hold(Chapter::Host, "host") }
    fn streams() on Machine::fake().devices(2).quiet() => { hold(Chapter::Streams, "streams") }
    fn code() on Machine::fake().devices(2).quiet() => { hold(Chapter::Code, "code") }
    fn work() on Machine::fake().devices(2).quiet() => { hold(Chapter::Work, "work") }
    fn order() on Machine::fake().devices(2).quiet() => { hold(Chapter::Order, "order") }
    fn graphs() on Machine::fake().devices(2).quiet() => { hold(Chapter::Graphs, "graphs") }
    fn peers() on Machine::fake().devices(2).quiet() => { hold(Chapter::Peers, "peers") }
    fn collectives() on Machine::fake().devices(2).quiet() => { hold(Chapter::Collectives, "collectives") }
    fn handles() on Machine::fake().devices(2).quiet() => { hold(Chapter::Handles, "handles") }
    fn threads() on Machine::fake().devices(2).quiet() => { hold(Chapter::Threads, "threads") }
    fn loss() on Machine::fake().devices(2).quiet() => { hold(Chapter::Loss, "loss") }
}
