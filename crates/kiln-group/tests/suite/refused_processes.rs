//! A process that rank 0 does not take as a rank: it is told at once, and those who wait for the rank are told why it did not come.

use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use kiln::group::{MeetingPoint, Rendezvous, RendezvousConfig, RendezvousError};

fn config(port: u16, rank: u32, size: u32) -> RendezvousConfig {
    let point = MeetingPoint { host: "127.0.0.1".into(), port, is_taken: false };
    let mut config = RendezvousConfig::new(point, rank, size);
    config.timeout = Duration::from_millis(1500);
    config.token = Some("the secret of the job".into());
    config
}

/// Ranks 0 and 1 of three, and a process that is to be the third one; what each of them answers.
fn joined(third: impl FnOnce(&mut RendezvousConfig)) -> [RendezvousError; 3] {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut other = config(port, 2, 3);
    third(&mut other);
    let began = Instant::now();
    let configs = [config(port, 0, 3), config(port, 1, 3), other];
    let threads = configs.map(|config| thread::spawn(move || Rendezvous::join(&config).unwrap_err()));
    let errors = threads.map(|thread| thread.join().unwrap());
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    errors
}

fn told(error: &RendezvousError, why: &str) {
    assert!(
        matches!(error, RendezvousError::MissingRanks { missing, refused: Some(refused), .. } if *missing == [2] && refused == why),
        "{error}"
    );
    let text = error.to_string();
    let end = format!(" s: 2 (rank 0 refused {why}); look at their logs");
    assert!(text.starts_with("1 of 3 ranks did not join within ") && text.ends_with(&end), "{text}");
}

// It sees itself that rank 0 has another token, and does not say which rank it is.
#[test]
fn a_process_with_another_token_is_told_itself_and_the_others_are_told_which_rank_is_missing() {
    let [zero, one, third] = joined(|config| config.token = Some("the secret of another job".into()));
    assert!(matches!(third, RendezvousError::WrongToken { .. }), "{third}");
    for error in [zero, one] {
        assert!(
            matches!(&error, RendezvousError::MissingRanks { missing, .. } if *missing == [2]),
            "{error}"
        );
    }
}

#[test]
fn ranks_that_wait_for_one_of_another_number_of_ranks_are_told_of_it() {
    let [zero, one, third] = joined(|config| config.size = 4);
    assert!(matches!(third, RendezvousError::Size { rank: 2, size: 4, expected: 3 }), "{third}");
    let why = "rank 2, which was started as one of 4 ranks and rank 0 as one of 3";
    told(&zero, why);
    told(&one, why);
}

#[test]
fn ranks_that_wait_while_another_one_was_started_twice_are_told_of_it() {
    let [zero, one, third] = joined(|config| config.rank = 1);
    let errors = [zero, one, third];
    let taken = errors.iter().filter(|error| matches!(error, RendezvousError::RankTaken { rank: 1 }));
    assert_eq!(taken.count(), 1, "{errors:?}");
    told(&errors[0], "a second process that was started as rank 1");
}

#[test]
fn ranks_that_wait_for_one_that_nothing_was_heard_of_are_told_of_nothing_else() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let text = Rendezvous::join(&config(port, 0, 2)).unwrap_err().to_string();
    assert!(
        text.starts_with("1 of 2 ranks did not join") && text.ends_with(" s: 1; look at their logs"),
        "{text}"
    );
}
