//! The laws on a simulated device in a worker process.

#[path = "../../../kiln-conform/tests/simulated/mod.rs"]
mod simulated;

use std::sync::{Arc, Mutex};

use kiln_conform::Opened;
use kiln_isolate::{
    DeviceSpec, IsolatedDevice, IsolationConfig, OpenFailure, Worker, WorkerEntry, WorkerEvent,
};
use kiln_sim::{Machine, Mode};

#[test]
#[ignore = "helper process"]
fn worker() {
    let open = |argument: &[u8]| {
        let workers = usize::from(argument.first().copied().unwrap_or(0));
        let mode = if workers == 0 { Mode::Seeded(1) } else { Mode::Threaded { workers } };
        let machine = Machine::new(simulated::config().mode(mode));
        let device = machine.device(0).map_err(|error| OpenFailure::broken(error.to_string()))?;
        let findings = move || simulated::verdict(&machine).err().unwrap_or_default();
        Ok(kiln_isolate::OpenedDevice::new(device).with_findings(findings))
    };
    Worker::new().backend("laws", open).enter();
}

fn open(workers: u8, standby: bool) -> Result<Opened, String> {
    let said: Arc<Mutex<Option<String>>> = Arc::default();
    let listener = said.clone();
    let config = IsolationConfig::new(DeviceSpec::custom("laws", [workers]))
        .entry(WorkerEntry::Test("laws::worker".into()));
    let config = config.standby(standby).observe(move |news| {
        if let WorkerEvent::Closed { findings } = news {
            *listener.lock().unwrap() = Some(findings.clone().unwrap_or("no farewell".into()));
        }
    });
    let device = IsolatedDevice::open(config).map_err(|error| error.to_string())?;
    Ok(Opened::new(device).with_verdict(move || match said.lock().unwrap().take() {
        Some(findings) if findings.is_empty() => Ok(()),
        Some(findings) => Err(findings),
        None => Err("the worker is still there".into()),
    }))
}

mod seeded {
    use super::*;

    kiln_conform::laws!(simulated::subject_of("a worker with a seed", |_| open(0, false)));
}

mod threaded {
    use super::*;

    kiln_conform::laws!(simulated::subject_of("a worker with threads", |_| open(2, false)));
}

mod with_standby {
    use super::*;

    kiln_conform::laws!(simulated::subject_of("a worker with a standby", |_| open(2, true)));
}
