//! A device that is lost says so, names who may have done it, and can still be put away.

use kiln_cuda::CudaDevice;
use kiln_driver::{
    Code, Command, Driver, DriverExt, EventRequest, Health, MemoryRequest, Refusal, StreamRequest,
    Submission, Timeout, WaitTarget,
};

use crate::machine::{Machine, calls, log};
use crate::opened::Bench;

on_machine! {
    fn a_fault_is_found_by_a_wait_and_names_its_kernel() on Machine::fake() => {
        let bench = Bench::new();
        bench.run("nothing").unwrap();
        bench.device.synchronize(bench.stream).unwrap();
        bench.run("crash").unwrap();
        let error = bench.device.wait(WaitTarget::Stream(bench.stream), Timeout::Never).unwrap_err();
        assert!(error.is_sticky() && error.code() == Some(Code::ILLEGAL_ADDRESS));
        let site = error.site().unwrap();
        assert_eq!((site.stream, site.submission), (bench.stream, Submission(2)));
        assert_eq!(site.command, "launch crash");
        let Health::Lost(health) = bench.device.health() else { panic!() };
        assert_eq!(health.site(), error.site());
    }

    fn a_site_that_is_not_certain_says_so() on Machine::fake() => {
        let bench = Bench::new();
        for name in ["nothing", "crash", "nothing"] {
            bench.run(name).unwrap();
        }
        let error = bench.device.progress(bench.stream).unwrap_err();
        let site = error.site().unwrap();
        assert_eq!((site.submission, site.command.as_str()), (Submission(1), "launch nothing, or one of the 2 after it"));
    }

    fn work_on_another_stream_is_mentioned() on Machine::fake() => {
        let bench = Bench::new();
        let other = bench.stream();
        let nothing = bench.function("nothing");
        let launch = Command::Launch(crate::opened::launch(&nothing, &[]));
        bench.device.submit(other, &launch).unwrap();
        bench.run("crash").unwrap();
        let error = bench.device.progress(other).unwrap_err();
        let site = error.site().unwrap();
        assert_eq!((site.stream, site.command.as_str()), (other, "launch nothing, or work on another stream"));
    }

    fn the_only_stream_with_unfinished_work_is_blamed() on Machine::fake() => {
        let bench = Bench::new();
        let other = bench.stream();
        let event = bench.device.create_event(EventRequest::Plain).unwrap();
        bench.device.submit(other, &Command::Signal(event)).unwrap();
        bench.device.synchronize(other).unwrap();
        bench.run("crash").unwrap();
        let error = bench.device.is_done(event).unwrap_err();
        assert_eq!(error.site().unwrap().stream, bench.stream);
    }

    fn once_lost_every_call_answers_so() on Machine::fake() => {
        let bench = Bench::new();
        let memory = bench.memory(8);
        let event = bench.device.create_event(EventRequest::Plain).unwrap();
        bench.run("crash").unwrap();
        assert!(!bench.device.health().is_healthy());
        let before = log().len();
        let device = &bench.device;
        let answers = [
            device.memory_info().map(drop),
            device.allocate(MemoryRequest::Direct { bytes: 1 }).map(drop),
            device.allocate_host(1).map(drop),
            device.create_stream(StreamRequest::New { priority: 0 }).map(drop),
            device.create_event(EventRequest::Plain).map(drop),
            device.fill(bench.stream, memory.id.into(), 0, 8).map(drop),
            device.is_done(event).map(drop),
            device.progress(bench.stream).map(drop),
            device.function(bench.module, "set").map(drop),
            device.native(bench.stream.into()).map(drop),
            device.trim_pool(0),
        ];
        for answer in answers {
            let error = answer.unwrap_err();
            assert!(error.is_sticky() && error.code() == Some(Code::ILLEGAL_ADDRESS), "{error}");
        }
        assert_eq!(log().len(), before, "the driver is not asked again");
        assert!(CudaDevice::open(0).unwrap_err().is_sticky());
    }

    fn a_lost_device_is_put_away_quietly() on Machine::fake() => {
        let bench = Bench::new();
        let memory = bench.memory(8);
        let block = bench.host(b"kept");
        let event = bench.device.create_event(EventRequest::Plain).unwrap();
        bench.run("crash").unwrap();
        assert!(bench.device.synchronize(bench.stream).unwrap_err().is_sticky());
        bench.device.free(memory.id, None).unwrap();
        for object in [event.into(), bench.stream.into(), bench.module.into(), block.id().into()] {
            bench.device.destroy(object).unwrap();
        }
        assert!(bench.device.destroy(event.into()).unwrap_err().is_refused());
        let mut bytes = [0; 4];
        assert!(block.read(0, &mut bytes));
        assert_eq!(&bytes, b"kept");
        drop(block);
        drop(bench);
        assert_eq!(calls("cuStreamDestroy_v2").len() + calls("cuMemFree_v2").len(), 0);
        assert_eq!(calls("cuDevicePrimaryCtxRelease_v2").len(), 1);
    }

    fn a_sticky_code_from_a_submission_loses_the_device() on Machine::fake().plan("cuMemsetD8Async=719") => {
        let bench = Bench::new();
        let memory = bench.memory(8);
        bench.run("nothing").unwrap();
        let error = bench.device.fill(bench.stream, memory.id.into(), 0, 8).unwrap_err();
        assert!(error.is_sticky() && error.code() == Some(Code::LAUNCH_FAILED));
        assert_eq!(error.site().unwrap().submission, Submission(1), "the fill itself was never queued");
        assert!(!bench.device.health().is_healthy());
    }

    fn other_codes_leave_the_device_usable() on Machine::fake().plan("cuMemsetD8Async=999@1,cuMemsetD8Async=801@2") => {
        let bench = Bench::new();
        let memory = bench.memory(8);
        let error = bench.device.fill(bench.stream, memory.id.into(), 0, 8).unwrap_err();
        assert_eq!(error.refusal(), Some(&Refusal::Driver(Code::UNKNOWN)));
        assert!(bench.device.fill(bench.stream, memory.id.into(), 0, 8).unwrap_err().is_unsupported());
        assert_eq!(bench.device.fill(bench.stream, memory.id.into(), 0, 8).unwrap(), Submission(1));
        assert!(bench.device.health().is_healthy());
    }
}
