//! Copies and fills: which call they become, and what is refused before there is one.

use kiln_cuda::CudaDevice;
use kiln_driver::{
    Command, DevicePlace, Driver, DriverExt, MemoryRequest, Pattern, Place, Refusal, StreamRequest,
    Submission,
};

use crate::machine::{Machine, calls};
use crate::opened::Bench;

on_machine! {
    fn bytes_go_up_across_and_down() on Machine::fake() => {
        let bench = Bench::new();
        let (first, second) = (bench.memory(64), bench.memory(64));
        let data: Vec<u8> = (0..64).collect();
        let from = bench.host(&data);
        bench.device.upload(bench.stream, &from, first.id.into(), 64).unwrap();
        let across = Command::Copy {
            from: Place::Device(DevicePlace::from(first.id).plus(16)),
            to: Place::Device(second.id.into()),
            bytes: 32,
        };
        bench.device.submit(bench.stream, &across).unwrap();
        assert_eq!(bench.read(second.id, 32), data[16..48]);
        let beside = bench.host(&[0; 64]);
        let host = Command::Copy {
            from: Place::Host { block: from.id(), offset: 60 },
            to: Place::Host { block: beside.id(), offset: 1 },
            bytes: 4,
        };
        bench.device.submit(bench.stream, &host).unwrap();
        let mut copied = [0; 6];
        assert!(beside.read(0, &mut copied));
        assert_eq!(copied, [0, 60, 61, 62, 63, 0]);
        assert_eq!(calls("cuMemcpyHtoDAsync_v2"), ["64"]);
        assert_eq!(calls("cuMemcpyDtoDAsync_v2"), ["32"]);
        assert_eq!(calls("cuMemcpyDtoHAsync_v2"), ["32"]);
        assert_eq!(calls("cuMemcpyAsync"), ["4"]);
    }

    fn a_fill_writes_each_pattern() on Machine::fake() => {
        let bench = Bench::new();
        let memory = bench.memory(16);
        let fill = |offset, pattern, count| {
            let to = DevicePlace::from(memory.id).plus(offset);
            bench.device.submit(bench.stream, &Command::Fill { to, pattern, count })
        };
        fill(0, Pattern::U8(1), 16).unwrap();
        fill(2, Pattern::U16(0x0302), 3).unwrap();
        fill(8, Pattern::U32(0x0706_0504), 1).unwrap();
        assert_eq!(bench.read(memory.id, 16), [1, 1, 2, 3, 2, 3, 2, 3, 4, 5, 6, 7, 1, 1, 1, 1]);
        for (offset, pattern) in [(1, Pattern::U16(0)), (2, Pattern::U32(0))] {
            assert!(fill(offset, pattern, 1).unwrap_err().is_refused(), "not aligned");
        }
        for (offset, count) in [(0, 17), (16, 1), (17, 0), (0, u64::MAX), (u64::MAX, 1)] {
            let error = fill(offset, Pattern::U8(0), count).unwrap_err();
            assert!(matches!(error.refusal(), Some(Refusal::OutOfRange { size: 16, .. })), "{error}");
        }
        assert!(fill(0, Pattern::U32(0), u64::MAX).unwrap_err().is_refused());
    }

    fn a_copy_past_the_end_is_refused_with_nothing_changed() on Machine::fake() => {
        let bench = Bench::new();
        let memory = bench.memory(64);
        let block = bench.host(&[0; 32]);
        let copy = |offset, to_offset, bytes| {
            let from = Place::Host { block: block.id(), offset };
            let to = Place::Device(DevicePlace::from(memory.id).plus(to_offset));
            bench.device.submit(bench.stream, &Command::Copy { from, to, bytes })
        };
        for (offset, to_offset, bytes) in
            [(0, 0, 33), (1, 0, 32), (0, 33, 32), (33, 0, 0), (0, 65, 0), (0, 0, 1 << 63), (u64::MAX, 0, 2)]
        {
            let error = copy(offset, to_offset, bytes).unwrap_err();
            assert!(matches!(error.refusal(), Some(Refusal::OutOfRange { .. })), "{error}");
            assert_eq!(error.call(), "submit");
        }
        assert_eq!(bench.device.progress(bench.stream).unwrap().submitted, Submission(0));
        assert_eq!(copy(0, 32, 32).unwrap(), Submission(1));
    }

    fn zero_bytes_are_a_submission_and_no_call() on Machine::fake() => {
        let bench = Bench::new();
        let memory = bench.memory(8);
        let place = Place::Device(DevicePlace::from(memory.id).plus(8));
        let copy = Command::Copy { from: place, to: place, bytes: 0 };
        assert_eq!(bench.device.submit(bench.stream, &copy).unwrap(), Submission(1));
        assert_eq!(bench.device.fill(bench.stream, memory.id.into(), 0, 0).unwrap(), Submission(2));
        assert_eq!(calls("cuMemcpyDtoDAsync_v2").len() + calls("cuMemsetD8Async").len(), 0);
        bench.device.synchronize(bench.stream).unwrap();
        assert_eq!(bench.device.progress(bench.stream).unwrap().completed, Submission(2));
    }

    fn handles_of_another_device_are_foreign_unless_named_as_a_peers() on Machine::fake().devices(2) => {
        let bench = Bench::new();
        let other = CudaDevice::open(1).unwrap();
        let there = other.allocate(MemoryRequest::Direct { bytes: 32 }).unwrap();
        let stream = other.create_stream(StreamRequest::New { priority: 0 }).unwrap();
        other.fill(stream, there.id.into(), 5, 32).unwrap();
        let here = bench.memory(32);

        let own = |from| Command::Copy { from, to: Place::Device(here.id.into()), bytes: 32 };
        let error = bench.device.submit(bench.stream, &own(Place::Device(there.id.into()))).unwrap_err();
        assert!(matches!(error.refusal(), Some(Refusal::Foreign { .. })));
        let error = bench.device.submit(stream, &own(Place::Device(here.id.into()))).unwrap_err();
        assert!(matches!(error.refusal(), Some(Refusal::Foreign { .. })));

        bench.device.submit(bench.stream, &own(Place::Peer(there.id.into()))).unwrap();
        assert_eq!(bench.read(here.id, 32), [5; 32]);
        assert_eq!(calls("cuMemcpyPeerAsync"), ["c0000 c0001 32"]);
        bench.device.submit(bench.stream, &own(Place::Peer(here.id.into()))).unwrap();
        assert_eq!(calls("cuMemcpyPeerAsync").len(), 1, "a peer that is the device itself is no peer");

        let past_the_end = Place::Peer(DevicePlace::from(there.id).plus(1));
        assert!(bench.device.submit(bench.stream, &own(past_the_end)).unwrap_err().is_refused());
        let block = bench.host(&[0; 32]);
        let down = Command::Copy {
            from: Place::Peer(there.id.into()),
            to: Place::Host { block: block.id(), offset: 0 },
            bytes: 32,
        };
        assert!(bench.device.submit(bench.stream, &down).unwrap_err().is_unsupported());
        drop(other);
        let error = bench.device.submit(bench.stream, &own(Place::Peer(there.id.into()))).unwrap_err();
        assert!(matches!(error.refusal(), Some(Refusal::Foreign { .. })), "closed: {error}");
    }

    fn a_destroyed_stream_is_refused() on Machine::fake() => {
        let bench = Bench::new();
        let stream = bench.stream();
        bench.device.destroy(stream.into()).unwrap();
        let memory = bench.memory(8);
        let error = bench.device.fill(stream, memory.id.into(), 0, 8).unwrap_err();
        assert!(matches!(error.refusal(), Some(Refusal::Stale { .. })) && error.call() == "submit", "{error}");
        assert!(bench.device.progress(stream).unwrap_err().is_refused());
        assert_eq!(calls("cuStreamDestroy_v2").len(), 1);
    }
}
