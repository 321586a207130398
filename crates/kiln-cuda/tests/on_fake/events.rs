//! Events, waits and progress.

use std::time::Duration;

use kiln_driver::{
    Command, Driver, DriverExt, EventRequest, ForeignHandle, Object, Refusal, StreamRequest, Submission,
    Timeout, WaitTarget, Waited,
};

use crate::machine::{Machine, calls};
use crate::opened::Bench;

on_machine! {
    fn an_event_that_was_never_signalled_is_done_and_holds_back_nothing() on Machine::fake() => {
        let bench = Bench::new();
        let event = bench.device.create_event(EventRequest::Plain).unwrap();
        assert!(bench.device.is_done(event).unwrap());
        assert_eq!(bench.device.submit(bench.stream, &Command::Wait(event)).unwrap(), Submission(1));
        assert_eq!(calls("cuStreamWaitEvent").len(), 0);
        assert_eq!(calls("cuEventCreate"), ["2"]);
    }

    fn an_event_from_the_pool_has_forgotten_its_former_life() on Machine::fake() => {
        let bench = Bench::new();
        let first = bench.device.create_event(EventRequest::Plain).unwrap();
        bench.run("stall").unwrap();
        bench.device.submit(bench.stream, &Command::Signal(first)).unwrap();
        assert!(!bench.device.is_done(first).unwrap());
        let native = bench.device.native(Object::Event(first)).unwrap();
        bench.device.destroy(first.into()).unwrap();
        let second = bench.device.create_event(EventRequest::Plain).unwrap();
        assert_eq!(bench.device.native(Object::Event(second)).unwrap(), native);
        assert!(bench.device.is_done(second).unwrap());
        assert!(bench.device.is_done(first).unwrap_err().is_refused());
        assert_eq!((calls("cuEventCreate").len(), calls("cuEventDestroy_v2").len()), (1, 0));
    }

    fn a_wait_ends_by_its_timeout_and_goes_on_later() on Machine::fake() => {
        let bench = Bench::new();
        let event = bench.device.create_event(EventRequest::Plain).unwrap();
        bench.run("stall").unwrap();
        bench.device.submit(bench.stream, &Command::Signal(event)).unwrap();
        for target in [WaitTarget::Event(event), WaitTarget::Stream(bench.stream)] {
            for timeout in [Timeout::Poll, Timeout::After(Duration::from_millis(2))] {
                assert_eq!(bench.device.wait(target, timeout).unwrap(), Waited::TimedOut);
            }
        }
        assert_eq!(bench.device.progress(bench.stream).unwrap().completed, Submission(0));
        bench.run("resume").unwrap();
        for target in [WaitTarget::Event(event), WaitTarget::Stream(bench.stream)] {
            assert_eq!(bench.device.wait(target, Timeout::Never).unwrap(), Waited::Done);
        }
        let progress = bench.device.progress(bench.stream).unwrap();
        assert_eq!((progress.submitted, progress.completed), (Submission(3), Submission(3)));
    }

    fn an_event_that_is_done_moves_progress_along() on Machine::fake() => {
        let bench = Bench::new();
        let event = bench.device.create_event(EventRequest::Plain).unwrap();
        bench.run("nothing").unwrap();
        bench.device.submit(bench.stream, &Command::Signal(event)).unwrap();
        assert!(bench.device.is_done(event).unwrap());
        let queries = calls("cuStreamQuery").len();
        let progress = bench.device.progress(bench.stream).unwrap();
        assert_eq!((progress.submitted, progress.completed), (Submission(2), Submission(2)));
        assert_eq!(calls("cuStreamQuery").len(), queries, "known without asking");
    }

    fn submissions_are_numbered_per_stream() on Machine::fake() => {
        let bench = Bench::new();
        let other = bench.stream();
        let event = bench.device.create_event(EventRequest::Plain).unwrap();
        assert_eq!(bench.run("nothing").unwrap(), Submission(1));
        assert_eq!(bench.device.submit(bench.stream, &Command::Signal(event)).unwrap(), Submission(2));
        assert_eq!(bench.device.submit(other, &Command::Wait(event)).unwrap(), Submission(1));
        assert_eq!(calls("cuStreamWaitEvent"), ["0 1"]);
    }

    fn time_is_taken_between_timed_events_only() on Machine::fake() => {
        let bench = Bench::new();
        let make = |request| bench.device.create_event(request).unwrap();
        let (from, to, plain) = (make(EventRequest::Timed), make(EventRequest::Timed), make(EventRequest::Plain));
        let signal = |event| bench.device.submit(bench.stream, &Command::Signal(event)).unwrap();
        assert!(bench.device.elapsed(from, to).unwrap_err().is_refused(), "never signalled");
        signal(from);
        std::thread::sleep(Duration::from_millis(2));
        signal(to);
        signal(plain);
        assert!(bench.device.elapsed(from, to).unwrap() >= Duration::from_millis(1));
        assert!(bench.device.elapsed(to, from).unwrap_err().is_refused(), "backwards");
        assert!(bench.device.elapsed(from, plain).unwrap_err().is_refused(), "not timed");
        bench.run("stall").unwrap();
        signal(to);
        let early = bench.device.elapsed(from, to).unwrap_err();
        assert!(early.is_refused() && early.to_string().contains("not done"), "{early}");
    }

    fn streams_take_the_priorities_of_the_device() on Machine::fake() => {
        let bench = Bench::new();
        for priority in [0, -5] {
            bench.device.create_stream(StreamRequest::New { priority }).unwrap();
        }
        for priority in [1, -6] {
            let error = bench.device.create_stream(StreamRequest::New { priority }).unwrap_err();
            assert!(matches!(error.refusal(), Some(Refusal::Invalid { .. })));
        }
        assert_eq!(calls("cuStreamCreateWithPriority"), ["1 0", "1 0", "1 -5"]);
    }

    fn foreign_streams_and_events_are_used_and_left_alone() on Machine::fake() => {
        let bench = Bench::new();
        let native = bench.device.native(Object::Stream(bench.stream)).unwrap();
        // SAFETY: it is the handle of a stream that lives as long as the bench.
        let handle = unsafe { ForeignHandle::new(native) };
        let foreign = bench.device.create_stream(StreamRequest::Foreign(handle)).unwrap();
        let event = bench.device.create_event(EventRequest::Plain).unwrap();
        let native = bench.device.native(Object::Event(event)).unwrap();
        // SAFETY: as above, for an event.
        let handle = unsafe { ForeignHandle::new(native) };
        let foreign_event = bench.device.create_event(EventRequest::Foreign(handle)).unwrap();
        assert_eq!(bench.device.submit(foreign, &Command::Signal(foreign_event)).unwrap(), Submission(1));
        assert_eq!(bench.device.submit(foreign, &Command::Wait(foreign_event)).unwrap(), Submission(2));
        bench.device.synchronize(foreign).unwrap();
        assert!(bench.device.is_done(foreign_event).unwrap());
        bench.device.destroy(foreign.into()).unwrap();
        bench.device.destroy(foreign_event.into()).unwrap();
        assert_eq!(calls("cuStreamDestroy_v2").len() + calls("cuEventDestroy_v2").len(), 0);
        bench.run("nothing").unwrap();
    }

    fn a_stream_that_never_rests_still_shows_progress() on Machine::fake() => {
        let bench = Bench::new();
        bench.run("stall").unwrap();
        let progress = || bench.device.progress(bench.stream).unwrap().completed;
        assert_eq!(progress(), Submission(0));
        let records = calls("cuEventRecord").len();
        assert_eq!(progress(), Submission(0));
        assert_eq!(calls("cuEventRecord").len(), records, "one marker at a time");
        bench.run("resume").unwrap();
        assert_eq!(progress(), Submission(2));
    }
}
