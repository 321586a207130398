//! A kernel that faults on one stream, and work behind it and beside it: what of that is done again. For any device.

use std::sync::Arc;
use std::time::Duration;

use kiln::recovery::{DeviceSpec, Outcome, PostMortem, Process, Replay, ReplayRefusal};
use kiln::{DeviceRuntime, Result, Ticket, buffer::Stale};

use crate::{replay_kernels, rig};

/// The fault may come before everything is queued, if the machine is busy with something else; then the scene is set again.
const TRIES: u32 = 20;

/// What was queued, in this order.
struct Queued {
    fault: Ticket,
    behind: Ticket,
    elsewhere: Ticket,
    behind_elsewhere: Ticket,
    uploaded: Ticket,
    on_lost: Ticket,
    repaired: Ticket,
}

/// Plays the scene and returns the report of its takeover. `rounds` is how long the kernel goes around before it faults.
pub(crate) fn run(backend: &DeviceSpec, rounds: u32, standby: bool) -> Arc<PostMortem> {
    let played = (0..TRIES).find_map(|_| play(backend, rounds, standby));
    played.expect("the fault never came late enough")
}

fn play(backend: &DeviceSpec, rounds: u32, standby: bool) -> Option<Arc<PostMortem>> {
    let process = Process {
        standby,
        watchdog: Some(Duration::from_secs(20)),
        replay: Replay::NotStarted,
        ..rig::process()
    };
    let gpu = rig::open_on(backend, process);
    let [a, b, c] = [(); 3].map(|()| gpu.stream().unwrap());
    let kernel = |name| gpu.kernel(replay_kernels::PTX, name).unwrap();
    let (late, bump, copy) = (kernel("late"), kernel("bump"), kernel("copy"));
    let [x, y, v, w, z, r] = [0_u32, 10, 0, 5, 0, 0].map(|value| gpu.upload(&[value]).unwrap());
    let large = gpu.zeros::<u32>(100_000).unwrap();
    gpu.synchronize().unwrap();
    if standby {
        // For the standby to become ready; without one a fresh worker does the same.
        std::thread::sleep(Duration::from_millis(300));
    }
    let numbers: Vec<u32> = (0..100_000).collect();
    let queue = || -> Result<_> {
        // SAFETY: the first is to fault; the others touch one element of each buffer.
        unsafe {
            let fault = gpu.launch(&late).grid(1).block(1).on(&a).write(&x).value(rounds).submit()?;
            let behind = gpu.launch(&bump).grid(1).block(1).on(&a).read_write(&y).submit()?;
            let elsewhere = gpu.launch(&copy).grid(1).block(1).on(&b).read(&y).write(&v).submit()?;
            let behind_elsewhere = gpu.launch(&bump).grid(1).block(1).on(&b).read_write(&w).submit()?;
            let uploaded = large.upload_on(&b, &numbers)?;
            let on_lost = gpu.launch(&copy).grid(1).block(1).on(&c).read(&x).write(&z).submit()?;
            let read = v.download_async_on(&b)?;
            // Overwritten with something that is there, so that nothing of the fault shows.
            gpu.launch(&copy).grid(1).block(1).on(&a).read(&x).write(&r).submit()?;
            let repaired = r.copy_from_on(&a, &w)?;
            Ok((Queued { fault, behind, elsewhere, behind_elsewhere, uploaded, on_lost, repaired }, read))
        }
    };
    let (queued, read) = queue().ok()?;
    assert!(queued.fault.wait().unwrap_err().is_lost());
    for done in
        [&queued.behind, &queued.elsewhere, &queued.behind_elsewhere, &queued.uploaded, &queued.repaired]
    {
        done.wait().unwrap();
    }
    assert!(queued.on_lost.wait().unwrap_err().is_lost());
    let executor = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(executor.block_on(read).unwrap(), [11], "what was asked for arrives anyway");
    let report = rig::recovered(&gpu, 0);
    let kept = [&y, &v, &w, &r].map(|buffer| buffer.download().unwrap()[0]);
    assert_eq!(kept, [11, 11, 6, 6], "{report}");
    assert!(large.download().unwrap() == numbers, "{report}");
    assert_eq!([x.access(), z.access()], [Err(Stale::Lost), Err(Stale::Lost)], "{report}");
    let outcome = |ticket: &Ticket| {
        report.unfinished.iter().find(|work| work.stamp == ticket.stamp()).map(|work| work.outcome)
    };
    assert_eq!(outcome(&queued.fault), Some(Outcome::Failed(ReplayRefusal::MayHaveStarted)), "{report}");
    assert_eq!(
        outcome(&queued.on_lost),
        Some(Outcome::Failed(ReplayRefusal::NeedsLost(x.block_id()))),
        "{report}"
    );
    assert_eq!(outcome(&queued.behind), Some(Outcome::Replayed), "{report}");
    assert_eq!(report.replayed_work().count(), 6, "{report}");
    goes_on(&gpu);
    Some(report)
}

/// The device is what it was.
fn goes_on(gpu: &DeviceRuntime) {
    let bump = gpu.kernel(replay_kernels::PTX, "bump").unwrap();
    let next = gpu.upload(&[1_u32]).unwrap();
    // SAFETY: the kernel touches one element.
    unsafe { gpu.launch(&bump).grid(1).block(1).read_write(&next).submit() }.unwrap();
    assert_eq!(next.download().unwrap(), [2]);
    gpu.synchronize().unwrap();
}
