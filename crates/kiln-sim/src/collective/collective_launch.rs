//! Launches of collectives: from the submission to the end.

use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::Arc;

use kiln_driver::{CallingLine, Error, Refusal, Result};
use kiln_operation::{CommunicatorId, CommunicatorRank};

use crate::check::access_origin::Mark;
use crate::check::finding::FindingKind;
use crate::collective::collective_kernel::Exchange;
use crate::collective::communicator::{Contribution, MeetingPlace};
use crate::collective::description::Description;
use crate::schedule::machine_state::State;
use crate::schedule::stream_queue::{Ready, Step};
use crate::schedule::task::Task;

/// The collectives of a launch, with their counts.
#[derive(Debug)]
pub(crate) struct CollectiveCall {
    pub(crate) rank: CommunicatorRank,
    pub(crate) descriptions: Vec<Description>,
}

/// One run of a launch of collectives.
#[derive(Clone, Debug)]
pub(crate) struct CollectiveRun {
    pub(crate) call: Arc<CollectiveCall>,
    /// Which launch of its rank it is.
    number: u64,
    /// Where each collective meets the others.
    pub(crate) places: Vec<MeetingPlace>,
    pub(crate) phase: Phase,
    /// When the last of all ranks arrived, on the virtual clock.
    pub(crate) met_ns: u64,
    /// Where the program called it, if that is known.
    pub(crate) line: Option<&'static Location<'static>>,
}

/// A collective of a launch that is refused, since another rank called something else there.
#[derive(Debug)]
struct Differing {
    communicator: CommunicatorId,
    place: MeetingPlace,
    called: Description,
    /// What it differs in, and its own value of that.
    what: &'static str,
    value: String,
}

/// Why a launch is refused, and what differs where that is the reason.
type Refused = (Error, Option<Box<Differing>>);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Queued,
    /// It has read, and waits for the others.
    Arrived,
    /// Its rank was aborted before it was done, after it had arrived or before.
    Ended {
        arrived: bool,
    },
}

impl CollectiveRun {
    /// It does not wait for other ranks any more.
    fn end(&mut self) {
        if !matches!(self.phase, Phase::Ended { .. }) {
            self.phase = Phase::Ended { arrived: self.phase == Phase::Arrived };
        }
    }
}

impl State {
    /// Takes the places of a launch in its communicator, or of those of a graph. Nothing is changed if another rank called something else.
    pub(crate) fn submit_collectives(
        &mut self,
        call: &'static str,
        device: u32,
        tasks: &[&Task],
        is_captured: bool,
    ) -> Result<Vec<Option<CollectiveRun>>> {
        let calls: Vec<_> = tasks.iter().map(|task| task.collectives()).collect();
        if calls.iter().all(Option::is_none) {
            return Ok(vec![None; tasks.len()]);
        }
        // A single collective that is refused has changed nothing.
        let count: usize = calls.iter().flatten().map(|calls| calls.descriptions.len()).sum();
        let before = (count > 1).then(|| self.communicators.clone());
        let submitted: std::result::Result<Vec<_>, Refused> = calls
            .iter()
            .map(|calls| calls.map(|calls| self.submit_launch(call, calls, is_captured)).transpose())
            .collect();
        let (error, differing) = match submitted {
            Ok(runs) => return Ok(runs),
            Err(refused) => refused,
        };
        if let Some(before) = before {
            self.communicators = before;
        }
        // A launch that is refused for another reason, such as that its communicator was ended, differs from none.
        if let Some(differing) = differing {
            self.note_refused(&calls, &differing, is_captured);
            if let Some(difference) = error.refusal() {
                let kind = FindingKind::CollectiveMismatch;
                self.find_object(kind, device, difference.to_string(), None, None);
            }
        }
        Err(error)
    }

    /// A launch or a graph was refused, since one of its collectives differs: ranks that wait for any of them are told of that.
    fn note_refused(
        &mut self,
        calls: &[Option<&Arc<CollectiveCall>>],
        differing: &Differing,
        is_captured: bool,
    ) {
        let mut refused: BTreeMap<(CommunicatorId, u32), Vec<Description>> = BTreeMap::new();
        for calls in calls.iter().flatten() {
            let known = refused.entry((calls.rank.id, calls.rank.rank)).or_default();
            known.extend(&calls.descriptions);
        }
        let whole = if is_captured { "graph" } else { "group" };
        let Differing { communicator, place: at, called: wrong, what, value } = differing;
        for ((id, rank), descriptions) in refused {
            let Some(known) = self.communicators.get_mut(&id) else { continue };
            let places = known.next_places(rank, &descriptions);
            let Some(member) = known.members.get_mut(rank as usize) else { continue };
            let said = |(place, called): (MeetingPlace, Description)| {
                let said = if (id, place) == (*communicator, *at) {
                    format!("called {called} there with another {what}, {value}, and was refused")
                } else {
                    let of = match id == *communicator {
                        true => String::new(),
                        false => format!(" of communicator {}", communicator.short()),
                    };
                    format!(
                        "called {called} there in a {whole} that was refused: its {wrong} in {at}{of} has another {what}, {value}"
                    )
                };
                (place, said)
            };
            member.refused = places.into_iter().zip(descriptions).map(said).collect();
        }
    }

    fn submit_launch(
        &mut self,
        call: &'static str,
        calls: &Arc<CollectiveCall>,
        is_captured: bool,
    ) -> std::result::Result<CollectiveRun, Refused> {
        let invalid = |what: String, next| (Error::invalid(call, what, next), None);
        let CommunicatorRank { id, rank, .. } = calls.rank;
        let Some(communicator) = self.communicators.get_mut(&id) else {
            let what = format!("communicator {} is over", id.short());
            return Err(invalid(what, "keep the communicator while it is used"));
        };
        if communicator.member(rank).is_some_and(|member| member.is_aborted) {
            let what = format!("rank {rank} of communicator {} was aborted", id.short());
            return Err(invalid(what, "make another communicator"));
        }
        let mut places = Vec::with_capacity(calls.descriptions.len());
        for called in &calls.descriptions {
            let called = Description { is_captured, ..*called };
            let place = communicator.submit(rank, called).map_err(|(place, other_rank, difference)| {
                let (what, value, other_value) = difference;
                let differing = Differing { communicator: id, place, called, what, value: value.clone() };
                let disagreement = Refusal::Disagreement {
                    communicator: id.short(),
                    rank,
                    other_rank,
                    what: format!("the {what} of {place}"),
                    value,
                    other_value,
                    next: match what {
                        "capture" => "put it into a graph on every rank, or on none",
                        _ => "let all ranks call the same collectives in the same order",
                    },
                };
                (Error::refused(call, disagreement), Some(Box::new(differing)))
            })?;
            places.push(place);
        }
        let Some(member) = communicator.members.get_mut(rank as usize) else {
            return Err(invalid(format!("there is no rank {rank}"), "count ranks from 0"));
        };
        let number = member.launches;
        member.launches += 1;
        let line = CallingLine::current();
        Ok(CollectiveRun { call: calls.clone(), number, places, phase: Phase::Queued, met_ns: 0, line })
    }

    /// The run of a collective at the head of a stream or in a graph there.
    pub(crate) fn collective_run(&self, ready: Ready) -> Option<&CollectiveRun> {
        let head = self.streams.get(&ready.lane)?.queue.front()?;
        match (&head.step, ready.node) {
            (Step::Graph(run), Some(node)) => run.collectives.get(&node),
            _ => head.collective.as_ref(),
        }
    }

    fn collective_run_mut(&mut self, ready: Ready) -> Option<&mut CollectiveRun> {
        let head = self.streams.get_mut(&ready.lane)?.queue.front_mut()?;
        match (&mut head.step, ready.node) {
            (Step::Graph(run), Some(node)) => run.collectives.get_mut(&node),
            _ => head.collective.as_mut(),
        }
    }

    /// Whether a step waits for other ranks, or for an earlier launch of its communicator.
    pub(crate) fn waits_for_ranks(&self, ready: Ready) -> bool {
        let Some(run) = self.collective_run(ready) else { return false };
        let Some(communicator) = self.communicators.get(&run.call.rank.id) else { return false };
        match run.phase {
            Phase::Queued => {
                communicator.member(run.call.rank.rank).is_some_and(|member| member.finished != run.number)
            }
            Phase::Arrived => run.places.iter().any(|place| !communicator.missing(*place).is_empty()),
            Phase::Ended { .. } => false,
        }
    }

    /// Ends a rank: what it has queued ends without having been done, and it takes nothing more.
    pub(crate) fn abort_rank(&mut self, rank: &CommunicatorRank) {
        let Some(communicator) = self.communicators.get_mut(&rank.id) else { return };
        if let Some(member) = communicator.members.get_mut(rank.rank as usize) {
            member.is_aborted = true;
        }
        let is_of_rank = |run: &CollectiveRun| run.call.rank.id == rank.id && run.call.rank.rank == rank.rank;
        for queued in self.streams.values_mut().flat_map(|stream| stream.queue.iter_mut()) {
            queued.collective.iter_mut().filter(|run| is_of_rank(run)).for_each(CollectiveRun::end);
            if let Step::Graph(graph) = &mut queued.step {
                graph.collectives.values_mut().filter(|run| is_of_rank(run)).for_each(CollectiveRun::end);
            }
        }
        let now_ns = self.now_ns;
        self.journal.write(now_ns, format_args!("rank {} of {} is aborted", rank.rank, rank.id.short()));
    }

    /// What the next step of a collective does.
    pub(crate) fn begin_exchange(&mut self, ready: Ready) -> Option<Exchange> {
        let run = self.collective_run(ready)?;
        match run.phase {
            Phase::Queued => return Some(Exchange::Arrive),
            Phase::Ended { arrived } => return Some(Exchange::End { arrived }),
            Phase::Arrived => {}
        }
        let communicator = self.communicators.get(&run.call.rank.id);
        let at = |place: &MeetingPlace| communicator.map(|known| known.contributions(*place));
        let met: Vec<_> = run.places.iter().map(|place| at(place).unwrap_or_default()).collect();
        let met_ns = met.iter().map(|(_, arrived_ns)| *arrived_ns).max().unwrap_or(0);
        let brought = met.into_iter().map(|(brought, _)| brought).collect();
        self.collective_run_mut(ready)?.met_ns = met_ns;
        Some(Exchange::Leave(brought))
    }

    /// Takes over a step of a collective that ran. True if the launch is done.
    pub(crate) fn end_exchange(
        &mut self,
        ready: Ready,
        brought: Vec<Contribution>,
        mark: &Arc<Mark>,
    ) -> bool {
        let arrived_ns = self.earliest_ns(ready).unwrap_or(self.now_ns);
        let Some(run) = self.collective_run_mut(ready) else { return true };
        let (call, places, phase) = (run.call.clone(), run.places.clone(), run.phase);
        if matches!(phase, Phase::Ended { .. }) {
            return true;
        }
        run.phase = Phase::Arrived;
        let rank = call.rank.rank;
        if let Some(communicator) = self.communicators.get_mut(&call.rank.id) {
            match phase {
                Phase::Queued => {
                    for (place, bytes) in places.iter().zip(brought) {
                        communicator.arrive(rank, *place, bytes, arrived_ns);
                    }
                }
                Phase::Arrived => {
                    places.iter().for_each(|place| communicator.leave(*place));
                    if let Some(member) = communicator.members.get_mut(rank as usize) {
                        member.finished += 1;
                    }
                }
                Phase::Ended { .. } => {}
            }
        }
        if phase == Phase::Queued {
            let now_ns = self.now_ns;
            self.journal.write(now_ns, format_args!("rank {rank} arrived at {}", mark.actor));
        }
        phase == Phase::Arrived
    }
}
