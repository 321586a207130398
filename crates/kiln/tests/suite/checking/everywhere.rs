//! A finding reaches every kind of caller: a service, a ticket that outlives its runtime, and the log if no caller asks.

use kiln::checking::{FindingRule, Findings};
use kiln::service::{DeviceService, RefusalReason, Request, ServiceConfig, Started};
use kiln::{DeviceRuntime, Error, Kernel, Result, Ticket};

use super::failing::{check, scene};
use crate::probe::lines;

/// Writes so many elements of a buffer of 256.
struct Store {
    kernel: Kernel,
    elements: u32,
}

impl Request for Store {
    type Output = ();

    fn start(&mut self, device: &DeviceRuntime) -> Result<Started<()>> {
        let data = device.zeros::<u32>(256)?;
        let mut launch = device.launch(&self.kernel);
        launch.threads(u64::from(self.elements)).write(&data).value(self.elements);
        // SAFETY: the simulator checks every access.
        Ok(Started::then(unsafe { launch.submit() }?, || Ok(())))
    }
}

#[test]
fn a_request_of_a_service_is_refused_with_the_finding_and_comes_back() {
    let scene = scene(20, Findings::Fail);
    let service = DeviceService::over(scene.gpu.clone(), ServiceConfig::default()).unwrap();
    let store = |elements: u32| service.submit(Store { kernel: scene.store.clone(), elements }).wait();
    store(256).map_err(|refused| refused.why).unwrap();
    let refused = store(260).err().unwrap();
    assert_eq!(refused.request.elements, 260, "the request comes back");
    assert!(!refused.why.is_retryable(), "{}", refused.why);
    let RefusalReason::Device(error) = &refused.why else { panic!("{}", refused.why) };
    check(error);
    store(256).map_err(|refused| refused.why).unwrap();
}

#[test]
fn a_ticket_that_outlives_its_runtime_keeps_the_finding() {
    let scene = scene(21, Findings::Fail);
    let (bad, good) = (scene.launch(260), scene.neighbour.fill(3).unwrap());
    let super::failing::Scene { gpu, store, data, neighbour } = scene;
    drop((store, data, neighbour));
    let said = lines(|| drop(gpu));
    let rule =
        |ticket: &Ticket| ticket.wait().err().as_ref().and_then(Error::finding).map(|found| found.rule);
    assert_eq!(rule(&bad), Some(FindingRule::Undeclared));
    assert_eq!(said.len(), 1, "{said:?}");
    // Work that comes after it in the order of the stream was submitted before a caller was told.
    assert_eq!(rule(&good), Some(FindingRule::Undeclared));
}

#[test]
fn what_no_caller_was_told_is_in_the_log_when_the_runtime_is_dropped() {
    let said = |asks: bool| {
        let scene = scene(22, Findings::Fail);
        let _ = scene.launch(260);
        if asks {
            check(&scene.gpu.synchronize().unwrap_err());
        }
        lines(|| drop(scene))
    };
    let unread = said(false);
    assert_eq!(unread.len(), 1, "{unread:?}");
    assert!(unread[0].contains("past the end of argument 0 (`data`)"), "{unread:?}");
    assert_eq!(said(true), Vec::<String>::new());
}
