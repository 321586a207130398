//! The laws on the simulator in every order there is, as far as a limit of runs goes.

use kiln_conform::{Chapter, Law, Stop, run_once};
use kiln_sim::{ExploreCoverage, Mode, explore};

use crate::simulated;

const LIMIT_RUNS: u64 = 400;

/// Runs a law in all orders; how many there were, and whether that is all of them.
fn exhaust(law: &Law) -> (u64, bool) {
    let subject = simulated::subject("the simulator, exhaustive", Mode::Seeded);
    let seen = explore(simulated::config(), LIMIT_RUNS, |machine| {
        let opened = simulated::open(machine).map_err(|why| format!("it does not open: {why}"))?;
        match run_once(&subject, law, opened, 0) {
            Err(Stop::Failed(failure)) => Err(failure.to_string()),
            Ok(()) | Err(Stop::Inapplicable(_)) => Ok(()),
        }
    });
    for (outcome, schedule) in &seen.outcomes {
        assert_eq!(outcome, &Ok(()), "{} with schedule {schedule}", law.name);
    }
    (seen.runs, seen.verdict == ExploreCoverage::Complete)
}

#[test]
fn laws_hold_in_every_order() {
    // A program whose own threads race does not do the same thing twice, so there is nothing to enumerate.
    let raced = |law: &&Law| law.name == "loss.waiting_threads_end";
    let chapters = Chapter::ALL.iter().filter(|chapter| **chapter != Chapter::Threads);
    let laws = chapters.flat_map(|chapter| chapter.laws()).filter(|law| !raced(law));
    let (mut laws_run, mut complete, mut with_choice, mut runs) = (0, 0, 0, 0);
    for law in laws {
        let (orders, all) = exhaust(law);
        println!("{:45} {orders:4} orders{}", law.name, if all { "" } else { " and more" });
        laws_run += 1;
        runs += orders;
        complete += u32::from(all);
        with_choice += u32::from(orders > 1);
    }
    println!("{laws_run} laws in {runs} orders; all orders of {complete}; {with_choice} have more than one");
    assert!(complete > laws_run / 2 && with_choice > 10, "{complete} complete, {with_choice} with a choice");
}
