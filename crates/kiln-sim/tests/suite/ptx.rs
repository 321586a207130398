//! PTX on the machine: results, module variables, printed text, and mistakes told with their place.

use std::sync::Arc;

use kiln_driver::{
    Command, DeviceMemory, Driver, DriverExt, EventRequest, Image, LaunchCommand, MemoryRequest, ModuleId,
    StreamId, StreamRequest, Timeout, Vouched, WaitTarget,
};
use kiln_sim::{FindingKind, Machine, MachineConfig, PtxEngine, SimDevice};

const KERNELS: &str = include_str!("../ptx/kernels.ptx");

struct Bench {
    machine: Machine,
    device: Arc<SimDevice>,
    stream: StreamId,
    module: ModuleId,
}

fn bench(config: MachineConfig) -> Bench {
    let machine = Machine::new(config);
    let device = machine.device(0).unwrap();
    let stream = device.create_stream(StreamRequest::New { priority: 0 }).unwrap();
    let module = device.load(&Image::Ptx(KERNELS)).unwrap();
    Bench { machine, device, stream, module }
}

fn seeded() -> Bench {
    bench(MachineConfig::seeded(5).engine(Arc::new(PtxEngine::default())))
}

impl Bench {
    fn memory(&self, words: &[u32]) -> DeviceMemory {
        let memory = self.device.allocate(MemoryRequest::Direct { bytes: 4 * words.len() as u64 }).unwrap();
        let host = self.device.allocate_host(4 * words.len() as u64).unwrap();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert!(host.write(0, &bytes));
        self.device.upload(self.stream, &host, memory.id.into(), bytes.len() as u64).unwrap();
        self.device.synchronize(self.stream).unwrap();
        self.device.destroy(host.id().into()).unwrap();
        memory
    }

    fn read(&self, memory: DeviceMemory) -> Vec<u32> {
        let host = self.device.allocate_host(memory.bytes).unwrap();
        self.device.download(self.stream, memory.id.into(), &host, memory.bytes).unwrap();
        self.device.synchronize(self.stream).unwrap();
        let mut bytes = vec![0; memory.bytes as usize];
        assert!(host.read(0, &mut bytes));
        self.device.destroy(host.id().into()).unwrap();
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
    }

    fn launch(&self, name: &str, grid: u32, block: u32, arguments: &[u8]) {
        let function = self.device.function(self.module, name).unwrap();
        let launch = LaunchCommand {
            function: function.id,
            grid: grid.into(),
            block: block.into(),
            cluster: None,
            dynamic_shared_bytes: 0,
            cooperative: false,
            arguments,
            declared: None,
            // SAFETY: a simulated device keeps kernels inside its own memory, whatever they do.
            vouched: unsafe { Vouched::new() },
        };
        self.device.submit(self.stream, &Command::Launch(launch)).unwrap();
    }

    fn end(self, memory: &[DeviceMemory]) -> kiln_sim::SimReport {
        for block in memory {
            let _ = self.device.free(block.id, None);
        }
        let _ = self.device.destroy(self.module.into());
        let _ = self.device.destroy(self.stream.into());
        self.machine.finish()
    }
}

fn pack(parts: &[&[u8]]) -> Vec<u8> {
    let mut packed: Vec<u8> = Vec::new();
    for part in parts {
        packed.resize(packed.len().next_multiple_of(part.len()), 0);
        packed.extend_from_slice(part);
    }
    packed
}

#[test]
fn a_kernel_computes_what_its_source_says() {
    for config in [MachineConfig::seeded(5), MachineConfig::threaded()] {
        let bench = bench(config.engine(Arc::new(PtxEngine::default())));
        let floats = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        let x: Vec<f32> = (0..1000).map(|at| at as f32 * 0.5).collect();
        let y: Vec<f32> = (0..1000).map(|at| 1.0 - at as f32).collect();
        let (dx, dy) = (bench.memory(&floats(&x)), bench.memory(&floats(&y)));
        let arguments = pack(&[
            &2.0_f32.to_le_bytes(),
            &dx.address.0.to_le_bytes(),
            &dy.address.0.to_le_bytes(),
            &1000_u32.to_le_bytes(),
        ]);
        bench.launch("axpy", 4, 256, &arguments);
        let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 2.0_f32.mul_add(*x, *y)).collect();
        assert_eq!(bench.read(dy), floats(&expected));
        let report = bench.end(&[dx, dy]);
        assert!(report.is_clean(), "{report}");
    }
}

#[test]
fn variables_of_a_module_have_their_first_values_and_addresses_of_each_other() {
    let bench = seeded();
    let y = bench.memory(&[0; 5]);
    bench.launch("globals", 1, 4, &y.address.0.to_le_bytes());
    assert_eq!(bench.read(y), [30, 60, 90, 120, 30]);
    let table = bench.device.global(bench.module, "table").unwrap();
    assert_eq!(table.bytes, 16);
    assert!(bench.device.global(bench.module, "nothing").is_err());
    assert!(bench.end(&[y]).is_clean());
}

#[test]
fn what_a_kernel_prints_can_be_read() {
    let bench = seeded();
    bench.launch("speak", 1, 32, &7_u32.to_le_bytes());
    bench.device.synchronize(bench.stream).unwrap();
    assert_eq!(String::from_utf8(bench.machine.printed()).unwrap(), "hello 7 from block 0\n");
    assert!(bench.end(&[]).is_clean());
}

#[test]
fn a_write_past_the_end_loses_the_device_and_is_told_with_line_and_thread() {
    let bench = seeded();
    let y = bench.memory(&[0; 8]);
    let arguments = pack(&[&y.address.0.to_le_bytes(), &8_u32.to_le_bytes()]);
    bench.launch("past_the_end", 1, 32, &arguments);
    let error = bench.device.synchronize(bench.stream).unwrap_err();
    assert!(error.is_sticky() && error.code().unwrap().0 == 700, "{error}");
    let report = bench.end(&[]);
    let texts: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    assert!(
        texts.iter().any(|text| text.contains("kernels.cu:6") && text.contains("past_the_end")),
        "{texts:#?}"
    );
    assert_eq!(report.count(&FindingKind::OutOfBounds), 1, "{texts:#?}");
}

#[test]
fn a_race_in_shared_memory_is_found_and_its_ordered_twin_is_not() {
    let bench = seeded();
    let y = bench.memory(&[0; 64]);
    bench.launch("ordered", 1, 64, &y.address.0.to_le_bytes());
    bench.device.synchronize(bench.stream).unwrap();
    assert!(bench.end(&[y]).is_clean());
    let bench = seeded();
    let y = bench.memory(&[0; 64]);
    bench.launch("raced", 1, 64, &y.address.0.to_le_bytes());
    bench.device.synchronize(bench.stream).unwrap();
    let report = bench.end(&[y]);
    assert!(report.count(&FindingKind::InKernel) > 0, "{report}");
}

#[test]
fn launches_on_two_streams_race_in_global_memory_unless_they_are_ordered_or_atomic() {
    for (kernel, ordered, clean) in
        [("count", false, true), ("ordered", true, true), ("ordered", false, false)]
    {
        let bench = seeded();
        let other = bench.device.create_stream(StreamRequest::New { priority: 0 }).unwrap();
        let event = bench.device.create_event(EventRequest::Plain).unwrap();
        let y = bench.memory(&[0; 64]);
        bench.launch(kernel, 1, 64, &y.address.0.to_le_bytes());
        if ordered {
            bench.device.order(bench.stream, event, other).unwrap();
        }
        let second = Bench {
            stream: other,
            machine: bench.machine.clone(),
            device: bench.device.clone(),
            module: bench.module,
        };
        second.launch(kernel, 1, 64, &y.address.0.to_le_bytes());
        bench.device.synchronize(other).unwrap();
        bench.device.synchronize(bench.stream).unwrap();
        bench.device.destroy(event.into()).unwrap();
        bench.device.destroy(other.into()).unwrap();
        let report = bench.end(&[y]);
        assert_eq!(report.is_clean(), clean, "{kernel}, ordered {ordered}: {report}");
    }
}

#[test]
fn a_kernel_that_does_not_end_is_stopped_by_the_step_limit() {
    let engine = Arc::new(PtxEngine::default().step_limit(100_000));
    let bench = bench(MachineConfig::seeded(1).engine(engine));
    let y = bench.memory(&[0; 1]);
    bench.launch("forever", 1, 1, &y.address.0.to_le_bytes());
    let waited = bench
        .device
        .wait(WaitTarget::Stream(bench.stream), Timeout::After(std::time::Duration::from_secs(1)));
    assert!(waited.is_err() || !waited.unwrap().is_done());
    let report = bench.end(&[]);
    assert!(!report.is_clean());
}

#[test]
fn text_that_is_no_ptx_is_refused_with_its_place() {
    let machine = Machine::new(MachineConfig::seeded(1).engine(Arc::new(PtxEngine::default())));
    let error =
        machine.device(0).unwrap().load(&Image::Ptx(".version 8.0\n.target sm_80\nnonsense")).unwrap_err();
    assert!(error.is_refused() && error.to_string().contains('3'), "{error}");
}
