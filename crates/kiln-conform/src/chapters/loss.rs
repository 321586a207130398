//! A device that is lost. On hardware that ends the process's use of it, so each of these laws has a device, or a
//! separate process.

use std::time::Duration;

use kiln_driver::{
    Command, DriverExt, Error, Health, MemoryRequest, PageRequest, Place, Protection, StreamId,
    StreamRequest, Submission, Timeout, WaitTarget,
};

use crate::expect::{equal, holds, inapplicable, same_bytes};
use crate::fixture::{Rig, read_host};
use crate::kernels::Arguments;
use crate::law::{Law, LawVerdict, Stop, fail};

pub(crate) const LAWS: &[Law] = &[
    Law {
        name: "loss.fault_ends_waits",
        says: "a kernel that faults ends every wait with the fault",
        run: fault_ends_waits,
    },
    Law {
        name: "loss.once_lost_always_lost",
        says: "after a fault every call that needs the device answers with it",
        run: once_lost_always_lost,
    },
    Law {
        name: "loss.late_failure_names_its_command",
        says: "a fault names the submission it belongs to, as well as the driver can tell",
        run: late_failure_names_its_command,
    },
    Law {
        name: "loss.waiting_threads_end",
        says: "threads that wait while the device is lost end with the fault",
        run: waiting_threads_end,
    },
    Law {
        name: "loss.read_only_write",
        says: "a kernel that writes to read-only pages faults",
        run: read_only_write,
    },
    Law {
        name: "loss.host_bytes_survive",
        says: "host blocks and what the device is can still be read",
        run: host_bytes_survive,
    },
    Law {
        name: "loss.giving_back_ends",
        says: "objects of a lost device can be given up, and no call hangs or panics",
        run: giving_back_ends,
    },
    Law {
        name: "loss.other_device_goes_on",
        says: "another device of the process does its work as before, and no copy with the lost one is taken",
        run: other_device_goes_on,
    },
];

/// Longer than any driver takes to notice a fault.
const NOTICE: Timeout = Timeout::After(Duration::from_secs(30));

/// Queues the kernel that faults.
fn fault(rig: &Rig<'_>, stream: StreamId) -> Result<Submission, Stop> {
    let kernel = rig.kernel("fault")?;
    Ok(rig.launch(stream, kernel.id, 1, 1, &Arguments::new())?)
}

/// The fault behind an answer that must be one.
fn lost<T>(what: &str, answer: Result<T, Error>) -> Result<Error, Stop> {
    match answer {
        Err(error) if error.is_sticky() => Ok(error),
        Err(error) => Err(fail(format!("{what} to say that the device is lost"), error)),
        Ok(_) => Err(fail(format!("{what} to say that the device is lost"), "that it worked")),
    }
}

/// A rig whose device has been lost, and the error that said so.
fn lose(rig: &Rig<'_>) -> Result<Error, Stop> {
    let stream = rig.stream()?;
    fault(rig, stream)?;
    lost("a wait for a kernel that faults", rig.driver.wait(WaitTarget::Stream(stream), NOTICE))
}

fn fault_ends_waits(rig: &Rig<'_>) -> LawVerdict {
    let (stream, other, event) = (rig.stream()?, rig.stream()?, rig.event()?);
    rig.busy(stream)?;
    fault(rig, stream)?;
    // A driver may notice at once, or only when it is waited for.
    if rig.driver.submit(stream, &Command::Signal(event)).is_ok() {
        lost("a wait for an event behind the fault", rig.driver.wait(WaitTarget::Event(event), NOTICE))?;
    }
    let error = lost("a wait for the stream", rig.driver.wait(WaitTarget::Stream(stream), Timeout::Never))?;
    let code = error.code().ok_or_else(|| fail("a code with the fault", "none"))?;
    holds(code.is_sticky(), "a code that is sticky", code)?;
    lost("a wait for another stream", rig.driver.wait(WaitTarget::Stream(other), Timeout::Never))?;
    lost("a look at another stream", rig.driver.wait(WaitTarget::Stream(other), Timeout::Poll)).map(drop)
}

fn once_lost_always_lost(rig: &Rig<'_>) -> LawVerdict {
    let (stream, event) = (rig.stream()?, rig.event()?);
    let memory = rig.words(4)?;
    let kernel = rig.kernel("store_value")?;
    let first = lose(rig)?;
    let driver = &rig.driver;
    for _ in 0..2 {
        let errors = [
            lost("memory_info", driver.memory_info())?,
            lost("allocate", driver.allocate(MemoryRequest::Direct { bytes: 64 }))?,
            lost("create_stream", driver.create_stream(StreamRequest::New { priority: 0 }))?,
            lost("submit of a fill", driver.fill(stream, memory.id.into(), 1, 4))?,
            lost("submit of a signal", driver.submit(stream, &Command::Signal(event)))?,
            lost("progress", driver.progress(stream))?,
            lost("a look", driver.wait(WaitTarget::Stream(stream), Timeout::Poll))?,
            lost("load", driver.load(&rig.kernels().image()))?,
            lost(
                "a launch",
                rig.launch(stream, kernel.id, 1, 1, &Arguments::new().address(memory.address).u32(1)),
            )?,
        ];
        for error in errors {
            equal("the code of the fault", error.code(), first.code())?;
        }
        match driver.health() {
            Health::Lost(error) => equal("the code health tells", error.code(), first.code())?,
            Health::Healthy => return Err(fail("a lost device not to be healthy", "healthy")),
        }
    }
    Ok(())
}

fn late_failure_names_its_command(rig: &Rig<'_>) -> LawVerdict {
    let (stream, other) = (rig.stream()?, rig.stream()?);
    let word = rig.words(1)?;
    let done = rig.store(stream, &word, 1)?;
    rig.driver.synchronize(stream)?;
    let guilty = fault(rig, stream)?;
    let error = lost("a wait", rig.driver.wait(WaitTarget::Stream(stream), NOTICE))?;
    let seen = match rig.driver.health() {
        Health::Lost(error) => error,
        Health::Healthy => return Err(fail("a lost device not to be healthy", "healthy")),
    };
    let mut named = false;
    for site in [error.site(), seen.site()].into_iter().flatten() {
        named = true;
        holds(site.stream != other, "a stream with work to be named", site.stream)?;
        equal("the stream the fault is said to come from", site.stream, stream)?;
        let possible = site.submission > done && site.submission <= guilty;
        holds(possible, format!("a submission after {done} and not after {guilty}"), site.submission)?;
    }
    holds(named, "the wait or health to name the submission", "neither does")
}

fn waiting_threads_end(rig: &Rig<'_>) -> LawVerdict {
    let (stream, event) = (rig.stream()?, rig.event()?);
    rig.busy_for(stream, 20)?;
    fault(rig, stream)?;
    if rig.driver.submit(stream, &Command::Signal(event)).is_err() {
        return lost("a wait", rig.driver.wait(WaitTarget::Stream(stream), NOTICE)).map(drop);
    }
    let wait = |target| lost("a wait of a thread", rig.driver.wait(target, Timeout::Never)).map(drop);
    std::thread::scope(|scope| {
        let waiters = [
            scope.spawn(|| wait(WaitTarget::Stream(stream))),
            scope.spawn(|| wait(WaitTarget::Event(event))),
            scope.spawn(|| wait(WaitTarget::Stream(stream))),
        ];
        for waiter in waiters {
            waiter.join().map_err(|_| fail("a waiting thread to end", "a panic"))??;
        }
        Ok(())
    })
}

fn read_only_write(rig: &Rig<'_>) -> LawVerdict {
    if !rig.driver.info().features.pages {
        return inapplicable("the device has no pages");
    }
    let stream = rig.stream()?;
    let reservation = rig.reservation(1)?;
    let pages = rig.pages(1)?;
    rig.map(reservation.id, 0, pages, 1)?;
    rig.put(reservation.id, &[1; 64])?;
    rig.driver.protect(reservation.id, 0, rig.granule(), Protection::Read)?;
    let arguments = Arguments::new().address(reservation.address).u32(1);
    rig.launch(stream, rig.kernel("store_value")?.id, 1, 1, &arguments)?;
    lost("a wait for a write to read-only pages", rig.driver.wait(WaitTarget::Stream(stream), NOTICE))
        .map(drop)
}

fn host_bytes_survive(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let memory = rig.memory_with(&[0x31; 64])?;
    let host = rig.host(64)?;
    rig.driver.download(stream, memory.id.into(), &host, 64)?;
    rig.driver.synchronize(stream)?;
    let info = rig.driver.info().clone();
    lose(rig)?;
    same_bytes("a host block", &read_host(&host)?, &[0x31; 64])?;
    equal("what the device is", rig.driver.info().clone(), info)?;
    let clock = rig.driver.clock();
    holds(clock.now() <= clock.now(), "the clock to go on", "that it goes back")
}

fn giving_back_ends(rig: &Rig<'_>) -> LawVerdict {
    let (stream, event, host) = (rig.stream()?, rig.event()?, rig.host(64)?);
    let memory = rig.memory(64)?;
    let module = rig.load()?;
    lose(rig)?;
    // Whether they succeed is up to the driver; what matters is that each one answers, and that no answer is a
    // refusal for a handle that is good.
    let answers = [
        rig.driver.free(memory.id, None),
        rig.driver.destroy(event.into()),
        rig.driver.destroy(module.into()),
        rig.driver.destroy(host.id().into()),
        rig.driver.destroy(stream.into()),
        rig.driver.create_pages(PageRequest { bytes: 2 << 20, exportable: false }).map(drop),
    ];
    for error in answers.into_iter().filter_map(Result::err) {
        holds(error.is_sticky() || error.is_unsupported(), "the fault as the answer, or none", error)?;
    }
    Ok(())
}

fn other_device_goes_on(rig: &Rig<'_>) -> LawVerdict {
    let beside = rig.beside()?;
    let (here, there) = (rig.memory_with(&[1; 64])?, beside.memory_with(&[2; 64])?);
    let (stream, far) = (rig.stream()?, beside.stream()?);
    let words = beside.words(64)?;
    beside.busy(far)?;
    beside.increment(far, &words, 64)?;
    lose(rig)?;
    beside.increment(far, &words, 64)?;
    beside.driver.synchronize(far)?;
    equal("work of the other device before and after", beside.get_words(&words, 64)?, vec![2; 64])?;
    same_bytes("memory of the other device", &beside.get(there.id, 64)?, &[2; 64])?;
    if let Health::Lost(error) = beside.driver.health() {
        return Err(fail("the other device to be healthy", error));
    }
    let (from, to) = (Place::Peer(there.id.into()), Place::Device(here.id.into()));
    lost("a copy to the lost device", rig.driver.submit(stream, &Command::Copy { from, to, bytes: 64 }))?;
    let (from, to) = (Place::Peer(here.id.into()), Place::Device(there.id.into()));
    let pulled = beside.driver.submit(far, &Command::Copy { from, to, bytes: 64 });
    holds(pulled.is_err(), "a copy from the lost device not to be taken", "that it was taken")?;
    beside.driver.synchronize(far)?;
    same_bytes("what it was to overwrite", &beside.get(there.id, 64)?, &[2; 64])?;
    beside.finish()
}
