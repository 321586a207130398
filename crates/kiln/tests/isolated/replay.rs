//! Work that is done again after a takeover, case by case.

use std::sync::Arc;
use std::time::Duration;

use kiln::recovery::{BlockOutcome, DeviceSpec, Outcome, PostMortem, Process, Replay, ReplayRefusal};
use kiln::service::{DeviceService, Readback, ServiceConfig};
use kiln::{
    DeviceRuntime, GpuRef, Kernel, Ticket,
    error::{ErrorKind, Misuse},
};
use kiln_driver::Access;

use crate::{kernels, replay_kernels, replay_scene, rig};

fn open(seed: u64) -> DeviceRuntime {
    let watchdog = Some(Duration::from_secs(10));
    rig::open(seed, Process { watchdog, replay: Replay::NotStarted, ..rig::process() })
}

/// Keeps a stream busy with a kernel that never ends, so that nothing behind it starts.
fn hold(gpu: &DeviceRuntime, victim: &GpuRef<u32>) -> Ticket {
    let endless = gpu.kernel(replay_kernels::PTX, "endless").unwrap();
    // SAFETY: it writes one element, for ever.
    let ticket =
        unsafe { gpu.launch(&endless).grid(1).block(1).on(gpu.main_stream()).write(victim).submit() }
            .unwrap();
    // Long enough for the worker to get there. If it does not, the kernel is done again and the watchdog ends it: a failure, not a success.
    assert!(!ticket.wait_within(Duration::from_millis(300)).unwrap());
    ticket
}

fn outcome(report: &PostMortem, ticket: &Ticket) -> Outcome {
    report.unfinished.iter().find(|work| work.stamp == ticket.stamp()).unwrap().outcome
}

fn bump(gpu: &DeviceRuntime, kernel: &Kernel, at: &GpuRef<u32>) -> Ticket {
    // SAFETY: the kernel touches one element.
    unsafe { gpu.launch(kernel).grid(1).block(1).on(gpu.main_stream()).read_write(at).submit() }.unwrap()
}

#[test]
fn work_behind_a_fault_and_beside_it_is_done_again() {
    for standby in [false, true] {
        let report = replay_scene::run(&DeviceSpec::simulated(70), 2000, standby);
        let page = report.to_string();
        assert!(page.contains("; done again") && page.contains("which is lost"), "{page}");
        assert!(page.contains("it may have started"), "{page}");
    }
}

#[test]
fn what_must_not_be_done_twice_is_not() {
    let gpu = open(71);
    let kernel = gpu.kernel(replay_kernels::PTX, "bump").unwrap();
    let with_variables = gpu.kernel(kernels::PTX, "copy").unwrap();
    let [held, one, two, three, five] = [1_u32, 1, 2, 3, 5].map(|value| gpu.upload(&[value]).unwrap());
    let mut builder = gpu.graph();
    // SAFETY: the kernel touches one element.
    unsafe { builder.launch(&kernel).grid(1).block(1).read_write(&two).record() }.unwrap();
    let graph = builder.build().unwrap();
    gpu.synchronize().unwrap();
    let holding = hold(&gpu, &held);
    let done = bump(&gpu, &kernel, &one);
    let graph = graph.replay().unwrap();
    // SAFETY: as above.
    let timed = unsafe { gpu.launch(&kernel).grid(1).block(1).read_write(&three).submit_timed() }.unwrap();
    // SAFETY: the kernel touches one element of each.
    let variables =
        unsafe { gpu.launch(&with_variables).grid(1).block(1).read(&one).write(&five).submit() }.unwrap();
    let report = rig::kill(&gpu);
    assert_eq!(outcome(&report, &holding), Outcome::Failed(ReplayRefusal::MayHaveStarted), "{report}");
    assert_eq!(outcome(&report, &done), Outcome::Replayed, "{report}");
    for (ticket, why) in [(&graph, "graph"), (timed.ticket(), "time"), (&variables, "variables")] {
        let Outcome::Failed(ReplayRefusal::Unsuited(said)) = outcome(&report, ticket) else {
            panic!("{report}")
        };
        assert!(said.contains(why) && ticket.wait().unwrap_err().is_lost(), "{said}");
    }
    assert_eq!(one.download().unwrap(), [2]);
    assert!([&two, &three, &five].iter().all(|buffer| buffer.access().is_err()), "{report}");
}

#[test]
fn copies_from_and_to_pinned_memory_are_done_again() {
    for seed in 79..83 {
        let gpu = open(seed);
        let plus = gpu.kernel(replay_kernels::PTX, "bump").unwrap();
        let [held, source, target] = [1_u32, 40, 0].map(|value| gpu.upload(&[value]).unwrap());
        let [mut read, mut lost, mut up] = [(); 3].map(|()| gpu.pinned::<u32>(1).unwrap());
        up.write().unwrap()[0] = 7;
        gpu.synchronize().unwrap();
        hold(&gpu, &held);
        bump(&gpu, &plus, &source);
        let readback = read.copy_from(&source).unwrap();
        let of_lost = lost.copy_from(&held).unwrap();
        let from_lost = lost.copy_to(&source).unwrap();
        let upload = up.copy_to(&target).unwrap();
        // Dropped with its copy under way: the memory is not given to another owner before that is over.
        let mut dropped = gpu.pinned::<u32>(1).unwrap();
        let unread = dropped.copy_from(&target).unwrap();
        drop(dropped);
        let report = rig::kill(&gpu);
        for ticket in [&readback, &upload, &unread] {
            assert_eq!(outcome(&report, ticket), Outcome::Replayed, "{report}");
            ticket.wait().unwrap();
        }
        assert_eq!(
            outcome(&report, &of_lost),
            Outcome::Failed(ReplayRefusal::NeedsLost(held.block_id())),
            "{report}"
        );
        let Outcome::Failed(ReplayRefusal::Unsuited(said)) = outcome(&report, &from_lost) else {
            panic!("{report}")
        };
        assert!(said.contains("pinned memory"), "{said}");
        assert!(of_lost.wait().unwrap_err().is_lost() && from_lost.wait().unwrap_err().is_lost());
        assert_eq!(read.read().unwrap(), [41], "seed {seed}: {report}");
        assert_eq!(target.download().unwrap(), [7], "seed {seed}");
        assert!(lost.read().unwrap_err().is_lost(), "its contents never came");
        assert!(source.access().is_err(), "lost memory was to be copied there");
    }
}

/// What a device service does for each readback.
#[test]
fn readbacks_of_a_service_are_answered_after_a_takeover() {
    for seed in 83..86 {
        let gpu = open(seed);
        let plus = gpu.kernel(replay_kernels::PTX, "bump").unwrap();
        let [held, source] = [1_u32, 9].map(|value| gpu.upload(&[value]).unwrap());
        gpu.synchronize().unwrap();
        hold(&gpu, &held);
        let before = bump(&gpu, &plus, &source).stamp().number;
        let service = DeviceService::over(gpu.clone(), ServiceConfig::default()).unwrap();
        let replies: Vec<_> = (0..4).map(|_| service.submit(Readback::new(source.clone()))).collect();
        while gpu.main_stream().ticket().unwrap().stamp().number < before + 4 {
            std::thread::yield_now();
        }
        rig::kill(&gpu);
        for reply in replies {
            assert_eq!(reply.wait().unwrap(), [10], "seed {seed}");
        }
    }
}

/// A takeover enters every stream, and work that may be done again is waited for until it is over.
#[test]
fn who_is_inside_of_a_stream_does_not_wait_for_a_takeover() {
    let gpu = open(75);
    let (stream, [held, used]) =
        (gpu.stream().unwrap(), [1_u32, 2].map(|value| gpu.upload(&[value]).unwrap()));
    gpu.synchronize().unwrap();
    let holding = hold(&gpu, &held);
    let generation = gpu.status().generation.0;
    let prepared = gpu.prepare_block_use(&stream, &[used.used_as(Access::Read)]).unwrap();
    gpu.isolated_device().unwrap().kill_worker();
    for answer in [holding.wait(), gpu.synchronize(), holding.wait_within(Duration::from_secs(60)).map(drop)]
    {
        let error = answer.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Misuse(Misuse::Prepared { .. })), "{error}");
    }
    assert!(!holding.is_done().unwrap(), "to ask is not to wait");
    drop(prepared);
    rig::recovered(&gpu, generation);
    assert!(holding.wait().unwrap_err().is_lost());
    assert_eq!(used.download().unwrap(), [2]);
}

#[test]
fn what_faults_when_it_is_done_again_is_the_last_that_is() {
    let gpu = open(72);
    let kernel = |name| gpu.kernel(replay_kernels::PTX, name).unwrap();
    let (late, plus) = (kernel("late"), kernel("bump"));
    let [held, before, victim, after] = [1_u32, 1, 1, 1].map(|value| gpu.upload(&[value]).unwrap());
    gpu.synchronize().unwrap();
    hold(&gpu, &held);
    let first = bump(&gpu, &plus, &before);
    // SAFETY: it is to fault.
    let fault = unsafe { gpu.launch(&late).grid(1).block(1).write(&victim).value(3_u32).submit() }.unwrap();
    let last = bump(&gpu, &plus, &after);
    let report = rig::kill(&gpu);
    assert_eq!(gpu.generation().0, 1, "one takeover for those who look from outside");
    assert_eq!(outcome(&report, &first), Outcome::Replayed, "{report}");
    for ticket in [&fault, &last] {
        assert_eq!(outcome(&report, ticket), Outcome::Failed(ReplayRefusal::Interrupted), "{report}");
        assert!(ticket.wait().unwrap_err().is_lost());
    }
    first.wait().unwrap();
    assert_eq!(before.download().unwrap(), [2], "once");
    assert!(victim.access().is_err() && after.access().is_err(), "{report}");
    assert_eq!(gpu.isolated_device().unwrap().generation(), 3, "two workers were replaced");
    assert_eq!(bump(&gpu, &plus, &before).wait().and_then(|()| before.download()).unwrap(), [3]);
}

#[test]
fn loss_after_loss_finds_the_marks_of_its_time() {
    let gpu = open(73);
    let plus = gpu.kernel(replay_kernels::PTX, "bump").unwrap();
    let counter = gpu.upload(&[0_u32]).unwrap();
    gpu.synchronize().unwrap();
    let mut expected = 0;
    for round in 0..8_u32 {
        let held = gpu.zeros::<u32>(1).unwrap();
        gpu.synchronize().unwrap();
        // A worker that is lost with nothing queued leaves the words of the last one.
        if round % 3 != 2 {
            hold(&gpu, &held);
            for _ in 0..=round {
                bump(&gpu, &plus, &counter);
                expected += 1;
            }
        }
        let report = rig::kill(&gpu);
        assert_eq!(counter.download().unwrap(), [expected], "round {round}: {report}");
    }
}

#[test]
fn a_broken_seal_spoils_what_was_done_with_the_block() {
    let gpu = open(74);
    let (wild, copy) =
        (gpu.kernel(kernels::PTX, "wild").unwrap(), gpu.kernel(replay_kernels::PTX, "copy").unwrap());
    let [sealed, declared, copied, beside] = [7_u32, 0, 0, 3].map(|value| gpu.upload(&[value]).unwrap());
    sealed.seal().unwrap().wait().unwrap();
    gpu.synchronize().unwrap();
    let words = (sealed.access().unwrap().address.0 as i64 - declared.access().unwrap().address.0 as i64) / 4;
    let words = i32::try_from(words).unwrap();
    // SAFETY: the first is not; that is the point. The others touch one element of each.
    let queued = unsafe {
        let fault = gpu.launch(&wild).grid(1).block(1).write(&declared).value(words).submit();
        fault.and_then(|_| {
            let on_broken = gpu.launch(&copy).grid(1).block(1).read(&sealed).write(&copied).submit()?;
            let on_kept = gpu.launch(&copy).grid(1).block(1).read(&beside).write(&copied).submit()?;
            Ok((on_broken, on_kept))
        })
    };
    // A fault that came before everything was queued shows nothing.
    let Ok((on_broken, on_kept)) = queued else { return };
    let report = rig::recovered(&gpu, 0);
    let standing = |buffer: &GpuRef<u32>| {
        report.blocks.iter().find(|record| record.block == buffer.block_id()).unwrap().outcome
    };
    assert_eq!(standing(&sealed), BlockOutcome::Broken, "{report}");
    assert_eq!(
        outcome(&report, &on_broken),
        Outcome::Failed(ReplayRefusal::NeedsLost(sealed.block_id())),
        "{report}"
    );
    assert!(on_broken.wait().is_err() && on_kept.wait().is_err() && copied.access().is_err());
    assert_eq!(beside.download().unwrap(), [3]);
}

#[test]
fn a_device_that_is_shut_down_does_not_finish_what_hangs() {
    let gpu = open(75);
    let [held, hangs] = [1_u32, 1].map(|value| gpu.upload(&[value]).unwrap());
    gpu.synchronize().unwrap();
    hold(&gpu, &held);
    let endless = gpu.kernel(replay_kernels::PTX, "endless").unwrap();
    // SAFETY: it writes one element, for ever.
    let again = unsafe { gpu.launch(&endless).grid(1).block(1).write(&hangs).submit() }.unwrap();
    gpu.isolated_device().unwrap().kill_worker();
    let waiting = std::thread::spawn({
        let again = again.clone();
        move || again.wait()
    });
    assert!(!again.wait_within(Duration::from_millis(300)).unwrap(), "it is not known yet");
    assert!(gpu.shutdown(Duration::from_secs(5)).is_err());
    assert!(waiting.join().unwrap().is_err());
    drop(gpu);
}

#[test]
fn work_costs_a_command_more_where_it_may_be_done_again_and_else_nothing() {
    const LAUNCHES: u64 = 100;
    for (replay, each) in [(Replay::Never, 1), (Replay::NotStarted, 2)] {
        let gpu = rig::open(76, Process { replay, ..rig::process() });
        let plus = gpu.kernel(replay_kernels::PTX, "bump").unwrap();
        let counter = gpu.upload(&[0_u32]).unwrap();
        gpu.synchronize().unwrap();
        let device = gpu.isolated_device().unwrap().clone();
        let submitted = || device.known_progress(gpu.main_stream().id()).unwrap().submitted.0;
        let before = submitted();
        for _ in 0..LAUNCHES {
            bump(&gpu, &plus, &counter);
        }
        assert_eq!(submitted() - before, LAUNCHES * each, "{replay:?}");
        assert_eq!(counter.download().unwrap(), [LAUNCHES as u32]);
    }
}

#[test]
fn every_waiter_is_answered_once_with_what_became_of_it() {
    const EACH: usize = 8;
    let gpu = open(77);
    let plus = gpu.kernel(replay_kernels::PTX, "bump").unwrap();
    let [held, counter] = [1_u32, 0].map(|value| gpu.upload(&[value]).unwrap());
    gpu.synchronize().unwrap();
    let failing = hold(&gpu, &held);
    let done = bump(&gpu, &plus, &counter);
    let answers = Arc::new(std::sync::Mutex::new(Vec::new()));
    for (ticket, name) in [(&failing, "failing"), (&done, "done")] {
        for _ in 0..EACH {
            let answers = answers.clone();
            ticket.on_done(move |answer| answers.lock().unwrap().push((name, answer.is_ok())));
        }
    }
    std::thread::scope(|scope| {
        let blocked: Vec<_> = (0..EACH).map(|_| scope.spawn(|| done.wait())).collect();
        let failed: Vec<_> = (0..EACH).map(|_| scope.spawn(|| failing.wait())).collect();
        let awaited = scope.spawn({
            let (done, failing) = (done.clone(), failing.clone());
            move || {
                let executor = tokio::runtime::Builder::new_current_thread().build().unwrap();
                executor.block_on(async { (done.await.is_ok(), failing.await.is_ok()) })
            }
        });
        std::thread::sleep(Duration::from_millis(50));
        rig::kill(&gpu);
        assert!(blocked.into_iter().all(|thread| thread.join().unwrap().is_ok()));
        assert!(failed.into_iter().all(|thread| thread.join().unwrap().is_err()));
        assert_eq!(awaited.join().unwrap(), (true, false));
    });
    while answers.lock().unwrap().len() < 2 * EACH {
        std::thread::yield_now();
    }
    assert_eq!(counter.download().unwrap(), [1]);
    gpu.synchronize().unwrap();
    let answers = answers.lock().unwrap();
    assert_eq!(answers.len(), 2 * EACH);
    assert!(answers.iter().all(|(name, ok)| *ok == (*name == "done")), "{answers:?}");
}

#[test]
fn a_wait_for_everything_says_that_something_failed() {
    let gpu = open(78);
    let plus = gpu.kernel(replay_kernels::PTX, "bump").unwrap();
    let [held, counter] = [1_u32, 0].map(|value| gpu.upload(&[value]).unwrap());
    gpu.synchronize().unwrap();
    hold(&gpu, &held);
    let done = bump(&gpu, &plus, &counter);
    std::thread::scope(|scope| {
        let all = scope.spawn(|| gpu.synchronize());
        let stream = scope.spawn(|| gpu.main_stream().synchronize());
        std::thread::sleep(Duration::from_millis(50));
        rig::kill(&gpu);
        assert!(all.join().unwrap().is_err(), "the kernel that never ended was part of it");
        assert!(stream.join().unwrap().is_err());
    });
    done.wait().unwrap();
    let answers = || [gpu.synchronize().is_ok(), gpu.main_stream().synchronize().is_ok()];
    assert_eq!(
        answers(),
        [false; 2],
        "a caller that asks later is told, too, although the last thing was done again"
    );
    counter.fill(2).unwrap();
    assert_eq!(answers(), [true; 2], "this is about what is new");
    assert_eq!(counter.download().unwrap(), [2]);
}
