//! Counts are exact, per call and per command.

use kiln_driver::call::CallKind;
use kiln_driver::layer::{CommandKind, Counting, Layered};
use kiln_driver::{Command, Driver, DriverExt, EventRequest, MemoryRequest, StreamRequest};
use kiln_sim::{Machine, MachineConfig};

#[test]
fn every_call_and_every_command_is_counted_once() {
    let device = Machine::new(MachineConfig::seeded(1)).device(0).unwrap();
    let driver = Layered::new(device, Counting::default());
    let stream = driver.create_stream(StreamRequest::New { priority: 0 }).unwrap();
    let event = driver.create_event(EventRequest::Plain).unwrap();
    let memory = driver.allocate(MemoryRequest::Direct { bytes: 64 }).unwrap();
    let before = driver.layer().counts();
    for _ in 0..3 {
        driver.fill(stream, memory.id.into(), 1, 64).unwrap();
    }
    driver.submit(stream, &Command::Signal(event)).unwrap();
    assert!(driver.fill(stream, memory.id.into(), 1, 65).is_err());
    driver.synchronize(stream).unwrap();
    let counts = driver.layer().counts().since(&before);
    let calls: Vec<_> = counts.iter().collect();
    assert_eq!(calls, [(CallKind::Wait, 1), (CallKind::Submit, 5)]);
    assert_eq!((counts.total(), counts.failed()), (6, 1));
    let commands: Vec<_> = CommandKind::ALL.iter().map(|kind| counts.submitted(*kind)).collect();
    assert_eq!(commands, [0, 3, 0, 1, 0, 0], "what was refused was not submitted");
}
