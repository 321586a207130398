//! Gauges of streams, events and code; what the code cache counts; and the numbers of a whole process.

use std::sync::Arc;

use kiln::code_cache::{CacheConfig, CachePlace};
use kiln::program::{Backend, Bindings, DispatchConfig, Program};
use kiln::telemetry::{Count, Gauge, Snapshot, process_snapshot};
use kiln::{DeviceRuntime, RuntimeConfig};
use kiln_driver::Image;
use kiln_sim::{DeviceConfig, Machine, MachineConfig, PtxEngine};

use super::parser::parse;

const COPY: &str = include_str!("../../copy.ptx");

fn machine(name: &str) -> Machine {
    let device = DeviceConfig { name: name.into(), ..DeviceConfig::default() };
    Machine::new(MachineConfig::seeded(6).engine(Arc::new(PtxEngine::default())).device(device))
}

fn runtime(machine: &Machine) -> DeviceRuntime {
    let cache = CacheConfig { place: CachePlace::Off, ..CacheConfig::default() };
    let config = RuntimeConfig { cache, ..RuntimeConfig::default() };
    DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap()
}

fn levels<const N: usize>(seen: &Snapshot, gauges: [Gauge; N]) -> [u64; N] {
    gauges.map(|gauge| seen.gauge(gauge))
}

#[test]
fn gauges_follow_streams_and_events() {
    let gpu = runtime(&machine("streams"));
    let streams = || levels(&gpu.telemetry().snapshot(), [Gauge::LeasedStreams, Gauge::IdleStreams]);
    assert_eq!(streams(), [0, 0]);
    let (one, two) = (gpu.stream().unwrap(), gpu.stream().unwrap());
    assert_eq!(streams(), [2, 0]);
    let (a, b) = (gpu.allocate_on::<u32>(&one, 4).unwrap(), gpu.allocate_on::<u32>(&two, 4).unwrap());
    a.fill_on(&one, 7).unwrap();
    b.copy_from_on(&two, &a).unwrap();
    drop(one);
    assert_eq!(streams(), [1, 1]);
    drop(gpu.stream().unwrap());
    assert_eq!(streams(), [1, 1], "the idle one was leased again");

    gpu.synchronize().unwrap();
    let seen = gpu.telemetry().snapshot();
    let [events, leased, idle] = levels(&seen, [Gauge::Events, Gauge::LeasedEvents, Gauge::IdleEvents]);
    assert!(events > 0 && leased + idle == events, "{events} made, {leased} leased, {idle} idle");
}

#[test]
fn gauges_follow_modules_and_their_sources() {
    let gpu = runtime(&machine("modules"));
    let modules = || levels(&gpu.telemetry().snapshot(), [Gauge::LoadedModules, Gauge::PtxSources]);
    assert_eq!(modules(), [0, 0]);
    let cached = gpu.kernel(COPY, "copy").unwrap();
    assert_eq!(modules(), [1, 1]);
    let other = COPY.replace("copy", "duplicate");
    let direct = gpu.load_module(&Image::Ptx(&other)).unwrap();
    assert_eq!(modules(), [2, 1], "the code cache does not know what is loaded past it");
    let again = gpu.kernel(other.as_str(), "duplicate").unwrap();
    assert_eq!(modules(), [3, 2]);

    let (from, to) = (gpu.upload(&[7_u32]).unwrap(), gpu.zeros::<u32>(1).unwrap());
    gpu.synchronize().unwrap();
    // SAFETY: the kernel touches one element of each.
    unsafe { gpu.launch(&cached).threads(1).read(&from).write(&to).submit() }.unwrap();
    drop((cached, again));
    assert_eq!(modules()[1], 0);
    assert!(modules()[0] > 1, "modules wait for the work that uses them");
    gpu.synchronize().unwrap();
    drop(direct);
    gpu.reap_pending().unwrap();
    assert_eq!(modules(), [0, 0]);
}

#[test]
fn a_program_that_is_compiled_again_is_a_hit() {
    let gpu = runtime(&machine("programs"));
    let backend = Backend::over(gpu.clone());
    let program = Program::parse("kernel one(out x: u32[]) block(32) over(x) { x[global.x] = 1; }").unwrap();
    let pipeline = backend.compile(&program).unwrap();
    let hits = || gpu.telemetry().snapshot().count(Count::ModuleHits);
    assert_eq!(hits(), 0);
    let again = backend.compile(&program).unwrap();
    assert_eq!(hits(), 1);
    let counters = gpu.code_counters();
    assert_eq!((counters.memory_hits, counters.loads), (1, 1));
    assert_eq!(counters.memory_time_saved, counters.load_time, "what it took to load was saved once");
    drop((pipeline, again));
    backend.compile(&program).unwrap();
    assert_eq!((hits(), gpu.code_counters().loads), (1, 2), "it was gone, so it is no hit");
}

#[test]
fn a_dispatch_over_no_elements_is_no_step() {
    let gpu = runtime(&machine("empty"));
    let backend = Backend::over(gpu.clone());
    let program =
        Program::parse("kernel one(inout x: u32[]) block(32) over(x) { x[global.x] = 1; }").unwrap();
    let pipeline = backend.compile(&program).unwrap();
    let launches = || gpu.telemetry().snapshot().count(Count::Launches);
    for (len, steps) in [(0, 0), (3, 1)] {
        let (mut x, before) = (vec![0_u32; len], launches());
        let done = pipeline.dispatch(Bindings::new().in_out("x", &mut x)).unwrap();
        assert_eq!((done.steps, launches() - before), (steps, steps), "{len} elements");
        let config = DispatchConfig { steps: 5, ..DispatchConfig::default() };
        let done = pipeline.dispatch_with(Bindings::new().in_out("x", &mut x), &config).unwrap();
        assert_eq!(done.steps, 5 * steps, "five steps over {len} elements");
    }
    let nothing = gpu.allocate::<u32>(0).unwrap();
    let mut sequence = backend.sequence();
    sequence
        .repeat(4, |turn| turn.step(&pipeline, Bindings::new().resident("x", &nothing)).map(drop))
        .unwrap();
    assert_eq!(sequence.run().unwrap().steps, 0);
}

#[test]
fn one_snapshot_has_every_runtime_of_the_process() {
    const NAME: &str = "the device of the process's snapshot";
    let machine = machine(NAME);
    let (one, two) = (runtime(&machine), runtime(&machine));
    one.upload(&[1_u8; 10]).unwrap();
    two.upload(&[2_u8; 5]).unwrap();
    let find = || {
        let seen = process_snapshot();
        seen.devices().iter().find(|device| device.device().name == NAME).cloned()
    };
    let both = find().unwrap();
    assert_eq!((both.count(Count::Uploads), both.count(Count::UploadedBytes)), (2, 15));
    let page = process_snapshot().prometheus();
    let uploads = &parse(&page).unwrap()["kiln_copied_bytes_total"];
    let here = uploads.samples.iter().filter(|(labels, _)| labels["name"] == NAME);
    assert_eq!(here.map(|(_, bytes)| *bytes).sum::<f64>(), 15.0, "one series for each direction");
    let kept = two.upload(&[3_u8; 7]).unwrap();
    assert_eq!(find().unwrap().gauge(Gauge::LiveBytes), 7);
    drop((one, kept));
    drop(two);
    let ended = find().expect("what they counted stays");
    assert_eq!((ended.count(Count::UploadedBytes), ended.gauge(Gauge::LiveBytes)), (22, 0));
}
