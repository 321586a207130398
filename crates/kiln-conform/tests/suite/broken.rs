//! Laws that cannot fail prove nothing: each flaw of a driver is found by the law that is about it.

use std::sync::Arc;

use kiln_conform::{Chapter, LawOutcome, Opened, Subject, Summary, all_laws, run_all, run_chapter};
use kiln_sim::{Machine, Mode};

use crate::flawed::{Flaw, Flawed};
use crate::simulated;

/// Which laws must find which flaw.
const FOUND_BY: &[(Flaw, &[&str])] = &[
    (
        Flaw::LosesWaits,
        &[
            "order.event",
            "order.chain",
            "order.fan_out_fan_in",
            "order.wait_holds_everything",
            "peers.ordered_on_both_sides",
        ],
    ),
    (Flaw::KeepsFirstSignal, &["streams.signalled_again", "streams.event_moves", "order.ping_pong"]),
    (Flaw::EventsDoneAtOnce, &["streams.signalled", "order.through_the_host", "threads.many_waiters"]),
    (Flaw::ProgressRunsAhead, &["streams.completed_work_is_visible"]),
    (Flaw::NumbersFromZero, &["streams.numbers", "threads.one_stream", "work.zero_bytes"]),
    (Flaw::GivesUpEarly, &["streams.timeouts"]),
    (Flaw::ForgetsBounds, &["work.copy_past_the_end", "work.fill_past_the_end"]),
    (Flaw::AcceptsStale, &["memory.free_is_final", "threads.one_destroy_wins", "handles.never_repeat"]),
    (
        Flaw::ConfusesForeign,
        &[
            "handles.foreign_in_commands",
            "handles.foreign_memory",
            "handles.foreign_streams_and_events",
            "handles.foreign_code",
            "handles.foreign_destroy",
        ],
    ),
    (Flaw::MapsHalf, &["pages.map_is_all_or_nothing"]),
    (Flaw::MapsBackwards, &["pages.map_many"]),
    (Flaw::UnmapsTooMuch, &["pages.partial_unmap_refused"]),
    (Flaw::ForgetsProtection, &["loss.read_only_write"]),
    (Flaw::IgnoresAddress, &["pages.fixed_address"]),
    (Flaw::LeaksMemory, &["device.free_memory_is_live", "memory.freed_memory_returns"]),
    (Flaw::ShrinksRequests, &["memory.sizes"]),
    (Flaw::DirtyHostBlocks, &["host.starts_as_zeros"]),
    (Flaw::RegistersTwice, &["host.registered_once"]),
    (Flaw::FillsTooFew, &["work.fills"]),
    (
        Flaw::ForgetsLimits,
        &["work.shapes_refused", "work.dynamic_shared_refused", "work.cooperative_refused"],
    ),
    (
        Flaw::LosesEdges,
        &[
            "graphs.edges",
            "graphs.diamond",
            "graphs.large",
            "collectives.one_rank_in_a_graph",
            "collectives.two_ranks_in_graphs",
        ],
    ),
    (
        Flaw::DropsUpdates,
        &["graphs.update", "graphs.update_leaves_queued_launches_alone", "graphs.cooperative"],
    ),
    (Flaw::UpdatesAnyKind, &["graphs.update_refused", "graphs.update_keeps_the_shape"]),
    (Flaw::FindsAnyKernel, &["code.unknown_name", "collectives.bad_text"]),
    (Flaw::TimeStandsStill, &["streams.elapsed"]),
    (Flaw::ClaimsHealth, &["loss.once_lost_always_lost"]),
    (Flaw::LosesSites, &["loss.late_failure_names_its_command"]),
    (Flaw::ForgetsLoss, &["loss.once_lost_always_lost", "loss.other_device_goes_on"]),
    (Flaw::DeniesPeers, &["peers.one_answer"]),
    (Flaw::ForgetsPeerOffsets, &["peers.scatter_and_gather", "work.peer_copies"]),
    (Flaw::DropsCopiesToPeers, &["peers.through_kernels", "peers.scatter_and_gather"]),
    (Flaw::ImportsFreshPages, &["peers.pages_on_both", "peers.pages_outlive_their_owner"]),
    (Flaw::ConfusesReductions, &["collectives.two_ranks", "collectives.two_ranks_in_graphs"]),
    (
        Flaw::DropsCollectives,
        &[
            "collectives.one_rank",
            "collectives.two_ranks",
            "collectives.sent_and_received",
            "collectives.bad_arguments",
        ],
    ),
    (Flaw::DropsAborts, &["collectives.abort"]),
    (Flaw::TakesAfterAbort, &["collectives.abort"]),
];

/// The simulator below a flaw. Its own checks are off, except in the control: a law must find the flaw by itself.
fn subject(flaw: Flaw) -> Subject {
    simulated::subject_of("a flawed driver", move |seed| {
        let machine = Machine::new(simulated::config().mode(Mode::Seeded(seed)));
        let open = |ordinal| machine.device(ordinal).map_err(|error| error.to_string());
        let driver = Arc::new(Flawed::new(open(0)?, flaw).map_err(|error| error.to_string())?);
        let (watched, peer) = (driver.clone(), open(1)?);
        let opened = Opened::new(driver).with_peer(peer);
        Ok(match flaw {
            Flaw::None => opened.with_verdict(move || {
                watched.finish().map_err(|error| error.to_string())?;
                simulated::verdict(&machine)
            }),
            _ => opened,
        })
    })
    .rounds(3)
}

#[test]
fn without_a_flaw_every_law_is_kept() {
    let summary = run_all(&subject(Flaw::None));
    assert!(summary.holds(), "{summary}");
}

#[test]
fn every_flaw_is_found_by_the_laws_about_it() {
    for (flaw, expected) in FOUND_BY {
        let about = |chapter: &&Chapter| chapter.laws().iter().any(|law| expected.contains(&law.name));
        let chapters = Chapter::ALL.iter().filter(about);
        let summary = chapters.map(|chapter| run_chapter(&subject(*flaw), *chapter)).reduce(Summary::and);
        let summary = summary.unwrap_or_else(|| panic!("no law is about {flaw:?}"));
        let failed = |name: &str| {
            let mut results = summary.results().iter();
            results.any(|result| result.law.name == name && matches!(result.outcome, LawOutcome::Failed(_)))
        };
        for name in *expected {
            assert!(all_laws().any(|law| law.name == *name), "{name} is no law");
            assert!(failed(name), "{flaw:?} is not found by {name}:\n{summary}");
        }
        println!("{flaw:?} is found by {} of {} laws", summary.failed(), summary.results().len());
    }
}
