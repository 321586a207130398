//! Collectives in recordings.

use std::panic::Location;

use kiln::group::{DeviceCommunicator, DeviceGroup, Reduction};
use kiln::sim::{DeviceConfig, Machine, MachineConfig};
use kiln::trace::{SubmissionKind, TraceEvent, export_perfetto};

use crate::Recorded;

fn two() -> (DeviceGroup, Vec<DeviceCommunicator>) {
    let config = MachineConfig::seeded(1).device(DeviceConfig::default()).device(DeviceConfig::default());
    let machine = Machine::new(config);
    let devices = [machine.device(0).unwrap(), machine.device(1).unwrap()];
    let group = DeviceGroup::over(devices, &Default::default()).unwrap();
    let ranks = group.communicators(&Default::default()).unwrap();
    (group, ranks)
}

#[test]
fn a_collective_has_its_kind_bytes_rank_and_communicator() {
    let files = [Recorded::new(), Recorded::new()];
    let (group, ranks) = two();
    for (rank, file) in files.iter().enumerate() {
        group.runtime(rank).unwrap().trace(file).unwrap();
    }
    let buffers = [0, 1].map(|rank| group.runtime(rank).unwrap().upload(&[1.0_f32; 1000]).unwrap());
    let mut line = 0;
    for (rank, buffer) in ranks.iter().zip(&buffers) {
        line = line!() + 1;
        rank.all_reduce_in_place(buffer, Reduction::Sum).submit().unwrap();
    }
    assert_eq!(buffers[0].download().unwrap(), [2.0; 1000]);
    assert_eq!(buffers[1].download().unwrap(), [2.0; 1000]);
    drop((buffers, ranks, group));
    let mut communicators = Vec::new();
    for (rank, file) in files.iter().enumerate() {
        let mut calls = Vec::new();
        file.each(|event| match event {
            TraceEvent::Collective(call) => {
                calls.push((call.name.to_owned(), call.rank, call.ranks, call.bytes, call.stamp));
                communicators.push(call.communicator);
            }
            TraceEvent::Submission(work) if work.kind == SubmissionKind::Collective => {
                assert_eq!(calls.last().map(|call| call.4), Some(work.stamp), "the collective comes first");
                assert_eq!(work.line.map(|line| (line.file, line.line)), Some((file!(), line)));
                assert!(work.bytes == 4000 && work.device.is_some_and(|ran| ran.ns() > 0), "{work:?}");
            }
            _ => {}
        });
        let [(name, own, size, bytes, _)] = &*calls else { panic!("{calls:?}") };
        assert_eq!((&**name, *own, *size, *bytes), ("all_reduce", rank as u32, 2, 4000));
        let text = file.explained().to_string();
        let said = "`all_reduce` once, 3.9 KiB altogether";
        assert!(text.contains(said) && text.contains(&format!("(rank {rank} of 2, communicator ")), "{text}");
        let mut trace = Vec::new();
        export_perfetto(&mut file.reader(), &mut trace).unwrap();
        assert!(trace.windows(12).any(|bytes| bytes == b"communicator"));
    }
    assert_eq!(communicators.len(), 2);
    assert_eq!(communicators[0], communicators[1], "one word on all ranks");
}

#[test]
fn a_split_belongs_to_the_line_of_the_program() {
    let files = [Recorded::new(), Recorded::new()];
    let (group, ranks) = two();
    for (rank, file) in files.iter().enumerate() {
        group.runtime(rank).unwrap().trace(file).unwrap();
    }
    let here = Location::caller().file();
    let line = line!() + 3;
    std::thread::scope(|scope| {
        for rank in &ranks {
            scope.spawn(move || rank.split(Some(rank.rank()), 0).unwrap());
        }
    });
    drop((ranks, group));
    for file in &files {
        let mut lines = Vec::new();
        file.each(|event| match event {
            TraceEvent::HostWait(wait) => {
                lines.extend(wait.line.map(|line| (line.file.to_owned(), line.line)))
            }
            TraceEvent::Submission(work) => {
                lines.extend(work.line.map(|line| (line.file.to_owned(), line.line)));
            }
            _ => {}
        });
        assert!(lines.len() > 4, "{lines:?}");
        let expected = (here.to_owned(), line);
        assert!(lines.iter().filter(|at| **at == expected).count() > 4, "{lines:?}");
        assert!(!lines.iter().any(|(file, _)| file.contains("kiln-group")), "{lines:?}");
    }
}
