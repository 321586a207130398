//! A device service as an actor: typed messages, typed replies, and the service's own refusals.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::time::Duration;

use kameo::actor::Spawn;
use kameo::error::SendError;
use kiln_runtime::DeviceRuntime;
use kiln_service::{DeviceActor, DeviceService, Readback, RefusalReason, ServiceConfig, Upload};

#[test]
fn requests_are_messages_with_typed_replies() {
    let executor = tokio::runtime::Builder::new_current_thread().build().unwrap();
    executor.block_on(async {
        let make = || DeviceRuntime::simulated(1);
        let service = DeviceService::start(ServiceConfig::default(), make).unwrap();
        let actor = DeviceActor::spawn(DeviceActor::new(service.clone()));
        let data: Vec<u32> = (0..100).collect();
        let buffer = actor.ask(Upload::new(data.clone())).await.unwrap();
        assert_eq!(actor.ask(Readback::new(buffer)).await.unwrap(), data);

        assert!(service.shutdown(Duration::from_secs(10)));
        let refused = match actor.ask(Upload::new(data.clone())).await {
            Err(SendError::HandlerError(refused)) => refused,
            other => panic!("{:?}", other.map(|buffer| buffer.len())),
        };
        assert!(matches!(refused.why, RefusalReason::Closed), "{refused}");
        assert_eq!(refused.request.data, data, "the host buffer comes back");
    });
}
