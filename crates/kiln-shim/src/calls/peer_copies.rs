//! The order of copies between two devices that name no stream.
//!
//! Such a copy begins when all work of the contexts is done that was queued before, on blocking streams and others, and what is queued later comes after it.

use std::sync::Arc;

use kiln_driver::{Command, EventId};

use crate::boundary::{Answer, OrCode};
use crate::calls::context::Context;
use crate::calls::events::wait_for_foreign;
use crate::calls::process_state::ProcessState;
use crate::calls::stream_order::StreamChoice;

/// The contexts, beside the current one, of the memory that a copy between devices reads and writes; none for any other copy.
pub(crate) fn others(state: &ProcessState, current: &Context, ends: [u64; 2]) -> Vec<Arc<Context>> {
    let mut others: Vec<Arc<Context>> = Vec::new();
    for (allocation, _) in ends.into_iter().filter_map(|address| state.memory.around(address)) {
        if allocation.is_of_host() || allocation.device == current.device {
            continue;
        }
        let owner = state.contexts.find_object(|context| context.number == allocation.context);
        others.extend(owner.filter(|owner| owner.is_there()));
    }
    others
}

/// Queues a copy on the legacy stream of a context, in one order with all work of that context and of others.
pub(crate) fn in_order(
    current: &Arc<Context>,
    mut others: Vec<Arc<Context>>,
    copy: impl FnOnce() -> Answer,
) -> Answer {
    others.sort_by_key(|context| context.number);
    others.dedup_by_key(|context| context.number);
    others.retain(|context| context.number != current.number);
    if others.is_empty() {
        return copy();
    }
    current.order()?.get()?.gather()?;
    for other in &others {
        follow(other, current)?;
    }
    copy()?;
    for other in &others {
        follow(current, other)?;
        other.order()?.get()?.scatter()?;
    }
    current.order()?.get()?.scatter()
}

/// Puts the legacy stream of one context behind all work of another.
fn follow(before: &Context, after: &Context) -> Answer {
    let event = {
        let mut order = before.order()?;
        let order = order.get()?;
        let legacy = order.gather()?;
        let event = order.event()?;
        before.driver.submit(legacy, &Command::Signal(event)).or_code()?;
        event
    };
    let waited = wait_across(before, event, after);
    before.order()?.get()?.give_back(event);
    waited
}

fn wait_across(before: &Context, event: EventId, after: &Context) -> Answer {
    let mut order = after.order()?;
    let order = order.get()?;
    let mut submit = |command: &Command<'_>| order.submit(&StreamChoice::Legacy, command);
    if before.device == after.device {
        return submit(&Command::Wait(event));
    }
    wait_for_foreign((&*before.driver, event), &*after.driver, &mut submit)
}
