//! A recording says what happened, and can be run again.

use std::io::{self, Write};
use std::sync::Arc;

use kiln_driver::call_trace::{Trace, replay};
use kiln_driver::layer::{Layered, RecordingLayer, TraceBuffer};
use kiln_driver::{
    Access, Command, Driver, DriverExt, EventRequest, Image, LaunchCommand, MemoryRequest, Result,
    StreamRequest, Vouched,
};
use kiln_sim::{HostKernel, KernelLibrary, Machine, MachineConfig};

fn machine() -> Machine {
    let store = HostKernel::new("store").pointer(Access::Write).value::<u32>().body(|launch| {
        launch.port().store(launch.address(0)?, launch.value::<u32>(1)?)?;
        Ok(())
    });
    Machine::new(MachineConfig::seeded(4).library(KernelLibrary::new("tests").kernel(store)))
}

/// Writes 77 to a word by a kernel and brings it to the host.
fn program(driver: &dyn Driver, words_before: u64) -> Result<u32> {
    // Moves the addresses of what follows.
    let before = driver.allocate(MemoryRequest::Direct { bytes: words_before * 4096 })?;
    let stream = driver.create_stream(StreamRequest::New { priority: 0 })?;
    let event = driver.create_event(EventRequest::Plain)?;
    let memory = driver.allocate(MemoryRequest::Direct { bytes: 4 })?;
    let host = driver.allocate_host(4)?;
    let module = driver.load(&Image::HostKernels("tests"))?;
    let mut arguments = memory.address.0.to_le_bytes().to_vec();
    arguments.extend(77u32.to_le_bytes());
    let launch = LaunchCommand {
        function: driver.function(module, "store")?.id,
        grid: 1.into(),
        block: 1.into(),
        cluster: None,
        dynamic_shared_bytes: 0,
        cooperative: false,
        arguments: &arguments,
        declared: None,
        // SAFETY: the kernel is a host function that writes the word it is given.
        vouched: unsafe { Vouched::new() },
    };
    driver.submit(stream, &Command::Launch(launch))?;
    driver.download(stream, memory.id.into(), &host, 4)?;
    driver.submit(stream, &Command::Signal(event))?;
    driver.synchronize(stream)?;
    driver.free(memory.id, None)?;
    assert!(driver.free(memory.id, None).is_err());
    for object in [stream.into(), event.into(), host.id().into(), module.into()] {
        driver.destroy(object)?;
    }
    driver.free(before.id, None)?;
    let mut word = [0; 4];
    assert!(host.read(0, &mut word));
    Ok(u32::from_le_bytes(word))
}

fn record() -> String {
    let buffer = TraceBuffer::default();
    let driver = Layered::new(machine().device(0).unwrap(), RecordingLayer::to(buffer.clone()));
    assert_eq!(program(&driver, 1).unwrap(), 77);
    driver.layer().finish().unwrap();
    buffer.text()
}

#[test]
fn the_text_is_the_same_each_time_and_names_no_device() {
    let text = record();
    assert_eq!(text, record());
    assert!(text.starts_with("{\"kiln_trace\":1}\n"));
    assert!(text.contains("\"stream:0.1\"") && text.contains("\"refused: stale\""), "{text}");
    assert!(text.contains("4d000000"), "the packed 77 in hexadecimal digits: {text}");
}

#[test]
fn a_replay_puts_its_own_addresses_into_the_arguments() {
    // SAFETY: the kernel is a host function of the simulator, which reaches its own memory only.
    let trace = Trace::parse(&record()).unwrap().vouched(unsafe { Vouched::new() });
    let machine = machine();
    let device = machine.device(0).unwrap();
    // Takes the place the recorded block had.
    let taken = device.allocate(MemoryRequest::Direct { bytes: 1 << 20 }).unwrap();
    let report = replay(&trace, &*device);
    assert!(report.is_faithful(), "{report}");
    assert_eq!(report.calls, trace.len());
    device.free(taken.id, None).unwrap();
    let verdict = machine.finish();
    // A launch with the recorded address would have written outside of every block.
    assert!(verdict.findings.iter().all(|finding| finding.kind.name() == "double free"), "{verdict}");
}

#[test]
fn a_driver_that_answers_otherwise_is_told_apart() {
    // SAFETY: as above; here the kernel cannot even be found.
    let trace = Trace::parse(&record()).unwrap().vouched(unsafe { Vouched::new() });
    let bare = Machine::new(MachineConfig::seeded(4));
    let report = replay(&trace, &*bare.device(0).unwrap());
    assert_eq!(report.differences.len(), 1, "{report}");
    let difference = &report.differences[0];
    assert_eq!(difference.recorded, "a module");
    assert!(difference.replayed.starts_with("refused"), "{report}");
    let lines: Vec<_> = record().lines().map(str::to_owned).collect();
    assert!(lines[difference.line - 1].contains("\"load\""), "the line is that of the file");
    assert!(report.skipped.iter().all(|skipped| skipped.why.contains("the replay made no")), "{report}");
}

#[test]
fn a_writer_that_fails_is_reported_at_the_end() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let device: Arc<dyn Driver> = machine().device(0).unwrap();
    let driver = Layered::new(device, RecordingLayer::to(Full));
    assert_eq!(program(&driver, 1).unwrap(), 77, "the program is not disturbed");
    assert_eq!(driver.layer().finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
}
