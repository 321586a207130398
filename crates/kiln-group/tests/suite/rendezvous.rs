//! Ranks that meet, exchange values and lose each other; and everything that keeps them from meeting, told within the time limit.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kiln::group::{MeetingPoint, Rendezvous, RendezvousConfig, RendezvousError};

/// A port of this host that was free a moment ago.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn config(port: u16, rank: u32, size: u32) -> RendezvousConfig {
    let point = MeetingPoint { host: "127.0.0.1".into(), port, is_taken: false };
    let mut config = RendezvousConfig::new(point, rank, size);
    config.timeout = Duration::from_secs(20);
    config
}

/// Runs a function as each rank of a job.
fn ranks<T: Send + 'static>(size: u32, run: impl Fn(Rendezvous) -> T + Clone + Send + 'static) -> Vec<T> {
    let port = free_port();
    let threads: Vec<JoinHandle<T>> = (0..size)
        .map(|rank| {
            let run = run.clone();
            thread::spawn(move || run(Rendezvous::join(&config(port, rank, size)).unwrap()))
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

#[test]
fn ranks_exchange_values_by_rank() {
    let all = ranks(8, |job| {
        job.put(&format!("own {}", job.rank()), &job.rank().to_le_bytes()).unwrap();
        let next = job.get(&format!("own {}", (job.rank() + 1) % 8)).unwrap();
        let all = job.exchange("all", &[job.rank() as u8; 3]).unwrap();
        job.barrier("end").unwrap();
        (job.rank(), next, all)
    });
    for (rank, next, all) in all {
        assert_eq!(next, ((rank + 1) % 8).to_le_bytes());
        assert_eq!(all, (0..8).map(|rank| Some(vec![rank; 3])).collect::<Vec<_>>());
    }
}

#[test]
fn a_name_of_an_exchange_or_a_barrier_is_used_once() {
    ranks(2, |job| {
        job.exchange("step", b"first").unwrap();
        for told in [job.exchange("step", b"second").map(drop), job.barrier("step")] {
            let told = told.unwrap_err();
            assert!(matches!(&told, RendezvousError::NameUsed { name } if name == "step"), "{told}");
        }
        job.barrier("step 2").unwrap();
    });
}

#[test]
fn a_job_of_one_rank_meets_itself() {
    let all = ranks(1, |job| (job.exchange("x", b"y").unwrap(), job.keeps_store()));
    assert_eq!(all, [(vec![Some(b"y".to_vec())], true)]);
}

#[test]
fn a_time_limit_without_end_is_taken() {
    let mut config = config(free_port(), 0, 1);
    config.timeout = Duration::MAX;
    let job = Rendezvous::join(&config).unwrap();
    assert_eq!(job.exchange("x", b"y").unwrap(), [Some(b"y".to_vec())]);
}

#[test]
fn ranks_that_do_not_come_are_named_within_the_limit() {
    let port = free_port();
    let start = Instant::now();
    let joins: Vec<_> = [0, 2]
        .map(|rank| {
            let mut config = config(port, rank, 4);
            config.timeout = Duration::from_millis(600);
            thread::spawn(move || Rendezvous::join(&config).unwrap_err())
        })
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    assert!(start.elapsed() < Duration::from_secs(5));
    // The store goes when rank 0 gives up, so the other rank may see either first.
    let texts: Vec<String> = joins.iter().map(ToString::to_string).collect();
    assert!(
        matches!(&joins[0], RendezvousError::MissingRanks { missing, size: 4, .. } if missing.contains(&1) && missing.contains(&3)),
        "{texts:?}"
    );
    assert!(texts[0].contains("did not join within 0.6 s"), "{texts:?}");
    assert!(
        matches!(joins[1], RendezvousError::MissingRanks { .. } | RendezvousError::StoreLost { .. }),
        "{texts:?}"
    );
}

#[test]
fn a_job_of_more_ranks_than_there_are_is_refused_at_once() {
    for size in [65_537, 4_294_967_295] {
        let error = Rendezvous::join(&config(free_port(), 0, size)).unwrap_err();
        assert!(matches!(error, RendezvousError::TooManyRanks { .. }), "{error}");
        assert!(error.to_string().contains("correct the number of ranks"), "{error}");
    }
}

#[test]
fn a_rank_whose_thread_panics_is_lost() {
    let port = free_port();
    let other = thread::spawn(move || {
        let job = Rendezvous::join(&config(port, 1, 2)).unwrap();
        job.barrier("both").unwrap();
        panic!("rank 1 panics while it holds the job");
    });
    let job = Rendezvous::join(&config(port, 0, 2)).unwrap();
    job.barrier("both").unwrap();
    let lost = job.wait_for_loss(Duration::from_secs(20)).unwrap().unwrap();
    assert_eq!(lost.rank, 1);
    assert!(other.join().is_err());
}

#[test]
fn a_rank_that_came_to_a_barrier_and_was_lost_then_has_come() {
    let port = free_port();
    let other = thread::spawn(move || {
        let mut config = config(port, 1, 2);
        config.timeout = Duration::from_millis(500);
        let job = Rendezvous::join(&config).unwrap();
        // It comes, and waits longer than it may.
        assert!(job.exchange("both", b"one").is_err());
        panic!("rank 1 panics while it holds the job");
    });
    let job = Rendezvous::join(&config(port, 0, 2)).unwrap();
    let lost = job.wait_for_loss(Duration::from_secs(20)).unwrap().unwrap();
    assert_eq!(lost.rank, 1);
    assert!(other.join().is_err());
    let values = job.exchange("both", b"zero").unwrap();
    assert_eq!(values, [Some(b"zero".to_vec()), Some(b"one".to_vec())]);
    let error = job.barrier("next").unwrap_err();
    assert!(matches!(error, RendezvousError::RankLost { rank: 1, .. }), "{error}");
}

#[test]
fn a_rank_zero_that_does_not_answer_is_told() {
    let mut config = config(free_port(), 1, 2);
    config.timeout = Duration::from_millis(300);
    let error = Rendezvous::join(&config).unwrap_err();
    assert!(matches!(error, RendezvousError::NoAnswer { .. }), "{error}");
    assert!(error.to_string().contains("rank 0 does not answer at 127.0.0.1:"), "{error}");
}

#[test]
fn a_port_in_use_is_told_to_rank_zero() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let error = Rendezvous::join(&config(taken.local_addr().unwrap().port(), 0, 2)).unwrap_err();
    assert!(matches!(error, RendezvousError::PortInUse { .. }), "{error}");
    assert!(error.to_string().contains("KILN_MEETING_POINT"), "{error}");
}

#[test]
fn a_port_that_is_given_back_soon_is_waited_for() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let holder = thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        drop(taken);
    });
    let mut short = config(port, 0, 1);
    short.timeout = Duration::from_millis(1);
    let error = Rendezvous::join(&short).unwrap_err();
    assert!(matches!(error, RendezvousError::PortInUse { .. }), "not after its time limit: {error}");
    Rendezvous::join(&config(port, 0, 1)).unwrap();
    holder.join().unwrap();
}

#[test]
fn another_service_at_the_port_is_told() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        let _ = stream.read(&mut [0; 64]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let error = Rendezvous::join(&config(port, 1, 2)).unwrap_err();
    assert!(matches!(error, RendezvousError::SomethingElse { .. }), "{error}");
}

#[test]
fn a_wrong_token_another_size_and_a_rank_twice_are_refused_and_the_job_goes_on() {
    let port = free_port();
    let with_token = move |rank, size, token: &str| {
        let mut config = config(port, rank, size);
        config.token = Some(token.into());
        config
    };
    let zero = thread::spawn(move || Rendezvous::join(&with_token(0, 3, "right")).unwrap());
    let two = thread::spawn(move || Rendezvous::join(&with_token(2, 3, "right")).unwrap());
    let refuse = |rank, size, token: &str| Rendezvous::join(&with_token(rank, size, token)).unwrap_err();
    let token = refuse(1, 3, "wrong");
    assert!(matches!(token, RendezvousError::WrongToken { .. }), "{token}");
    assert!(token.to_string().contains("KILN_JOB_TOKEN") && !token.to_string().contains("wrong"), "{token}");
    let size = refuse(1, 4, "right");
    assert!(matches!(size, RendezvousError::Size { rank: 1, size: 4, expected: 3 }), "{size}");
    // Rank 2 is in the store once it is named no more as missing; until then its double could be the first.
    let first = thread::spawn(move || Rendezvous::join(&with_token(1, 3, "right")).unwrap());
    let (zero, two, first) = (zero.join().unwrap(), two.join().unwrap(), first.join().unwrap());
    let twice = refuse(2, 3, "right");
    assert!(matches!(twice, RendezvousError::RankTaken { rank: 2 }), "{twice}");
    let range = refuse(5, 3, "right");
    assert!(matches!(range, RendezvousError::NoSuchRank { rank: 5, size: 3 }), "{range}");
    for job in [&zero, &first, &two] {
        job.put(&format!("still {}", job.rank()), b"here").unwrap();
    }
    assert_eq!(first.get("still 2").unwrap(), b"here");
}

#[test]
fn ranks_of_other_hosts_need_a_token() {
    let point = MeetingPoint { host: "192.0.2.1".into(), port: free_port(), is_taken: false };
    let error = Rendezvous::join(&RendezvousConfig::new(point, 1, 2)).unwrap_err();
    assert!(matches!(error, RendezvousError::NoToken { .. }), "{error}");
    assert!(error.to_string().contains("KILN_JOB_TOKEN"), "{error}");
}

#[test]
fn a_host_that_is_not_known_is_told() {
    let point = MeetingPoint { host: "no-such-host.invalid".into(), port: 29_500, is_taken: false };
    let error = Rendezvous::join(&RendezvousConfig::new(point, 1, 2)).unwrap_err();
    assert!(matches!(error, RendezvousError::UnknownHost { .. }), "{error}");
}

#[test]
fn bytes_from_strangers_do_not_disturb_a_job() {
    let port = free_port();
    let zero = thread::spawn(move || Rendezvous::join(&config(port, 0, 2)).unwrap());
    let connect = || loop {
        if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
            break stream;
        }
        thread::sleep(Duration::from_millis(5));
    };
    let mut silent = Vec::new();
    for n in 0..20_u8 {
        let mut stream = connect();
        let _ = stream.write_all(&vec![n.wrapping_mul(37); usize::from(n) * 13]);
        silent.push(stream);
    }
    let one = Rendezvous::join(&config(port, 1, 2)).unwrap();
    let zero = zero.join().unwrap();
    zero.put("k", b"v").unwrap();
    assert_eq!(one.get("k").unwrap(), b"v");
}

#[test]
fn values_and_keys_are_bounded_and_missing_ones_named() {
    let port = free_port();
    let mut config = config(port, 0, 1);
    config.timeout = Duration::from_millis(200);
    let job = Rendezvous::join(&config).unwrap();
    let large = job.put("k", &vec![0; (1 << 20) + 1]).unwrap_err();
    assert!(matches!(large, RendezvousError::TooLarge { what: "the value", bytes: 1_048_577 }), "{large}");
    let key = job.put(&"k".repeat(513), &[]).unwrap_err();
    assert!(matches!(key, RendezvousError::TooLarge { what: "the key", bytes: 513 }), "{key}");
    assert!(matches!(job.put("a\0b", &[]).unwrap_err(), RendezvousError::ZeroInKey));
    let none = job.get("never").unwrap_err();
    assert!(matches!(&none, RendezvousError::NoValue { key, .. } if key == "never"), "{none}");
    let full = (0..100).find_map(|n| job.put(&format!("{n}"), &vec![0; 1 << 20]).err()).unwrap();
    assert!(matches!(full, RendezvousError::Full { .. }), "{full}");
    job.remove("0").unwrap();
    job.put("again", &vec![0; 1 << 19]).unwrap();
}

#[test]
fn a_rank_that_does_not_come_is_named_without_a_key_of_the_store() {
    let port = free_port();
    let start = |rank: u32| {
        thread::spawn(move || {
            let mut config = config(port, rank, 2);
            config.timeout = Duration::from_millis(400);
            let job = Rendezvous::join(&config).unwrap();
            let told = (rank == 0).then(|| job.barrier("end").unwrap_err());
            // Rank 0 is waited for, so that no rank is lost.
            (0..50).find(|_| rank == 0 || job.get("done").is_ok());
            job.put("done", b"").unwrap();
            told
        })
    };
    let told = [start(0), start(1)].map(|thread| thread.join().unwrap());
    let told = told[0].as_ref().unwrap().to_string();
    assert!(told.contains("rank 1 did not come to `end` within") && !told.contains("end/1"), "{told}");
}

#[test]
fn a_rank_that_has_left_in_order_is_told_at_once_to_those_that_wait_for_it() {
    for leaves in [0, 1] {
        let started = Instant::now();
        let errors = ranks(3, move |job| {
            job.barrier("all").unwrap();
            if job.rank() == leaves {
                job.put("last/9", b"x").unwrap();
                return None;
            }
            let error = job.barrier("never").unwrap_err();
            // What it had put is there.
            assert_eq!(job.get("last/9").unwrap(), b"x");
            Some(error.to_string())
        });
        for error in errors.into_iter().flatten() {
            assert!(
                error.starts_with(&format!(
                    "rank {leaves} has left the job in order and does not come to `never`"
                )),
                "{error}"
            );
        }
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    }
}

#[test]
fn a_rank_that_has_left_and_given_its_value_is_not_missed() {
    let all = ranks(2, |job| {
        if job.rank() == 0 {
            thread::sleep(Duration::from_millis(200));
        }
        job.exchange("values", &[job.rank() as u8]).unwrap()
    });
    assert_eq!(all[0], [Some(vec![0]), Some(vec![1])]);
}

#[test]
fn times_of_zero_are_refused() {
    type Change = fn(&mut RendezvousConfig);
    let changes: [(&str, Change); 4] = [
        ("timeout", |config| config.timeout = Duration::ZERO),
        ("heartbeat", |config| config.heartbeat = Duration::ZERO),
        ("silence", |config| config.silence = Duration::ZERO),
        ("heartbeat", |config| config.heartbeat = config.silence),
    ];
    for (name, change) in changes {
        let mut config = config(free_port(), 0, 1);
        change(&mut config);
        let error = Rendezvous::join(&config).unwrap_err().to_string();
        assert!(error.contains(&format!("`{name}`")), "{error}");
    }
}

#[test]
fn a_loss_is_told_to_those_that_wait_although_a_replacement_comes_at_once() {
    for _ in 0..5 {
        let port = free_port();
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let lost = thread::spawn(move || {
            let _job = Rendezvous::join(&config(port, 1, 2)).unwrap();
            ends.recv().unwrap_err();
            std::panic::resume_unwind(Box::new("rank 1 is to end"));
        });
        let mut own = config(port, 0, 2);
        own.timeout = Duration::from_secs(5);
        let job = Arc::new(Rendezvous::join(&own).unwrap());
        let is_over = Arc::new(AtomicBool::new(false));
        let replacements: Vec<_> = (0..2)
            .map(|_| {
                let is_over = is_over.clone();
                thread::spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        match Rendezvous::join(&config(port, 1, 2)) {
                            Err(RendezvousError::RankTaken { .. }) => {
                                thread::sleep(Duration::from_micros(200));
                            }
                            joined => return Some(joined.unwrap()),
                        }
                    }
                    None
                })
            })
            .collect();
        let waiting: Vec<_> = (0..4)
            .map(|_| job.clone())
            .map(|job| thread::spawn(move || job.get("never").unwrap_err()))
            .collect();
        thread::sleep(Duration::from_millis(30));
        drop(end);
        for waiting in waiting {
            let error = waiting.join().unwrap();
            assert!(matches!(error, RendezvousError::RankLost { rank: 1, .. }), "{error}");
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(lost.join().is_err());
        drop(replacements.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>());
    }
}

#[test]
fn an_exchange_that_waits_is_told_of_a_loss_that_another_thread_acknowledges() {
    for _ in 0..4 {
        let port = free_port();
        let join = move |rank: u32| Rendezvous::join(&config(port, rank, 3)).unwrap();
        let lost = thread::spawn(move || {
            let _job = join(1);
            thread::sleep(Duration::from_millis(300));
            std::panic::resume_unwind(Box::new("this rank is to end"));
        });
        let other = thread::spawn(move || {
            let job = join(2);
            job.wait_for_loss(Duration::from_secs(20)).unwrap().unwrap();
            thread::sleep(Duration::from_millis(500));
            job.acknowledge_losses();
            let heard = job.exchange("b", b"2");
            // The others may read it until then.
            let _ = job.barrier("end");
            heard
        });
        let job = Arc::new(join(0));
        let began = Instant::now();
        let exchange = {
            let job = job.clone();
            thread::spawn(move || job.exchange("b", b"0"))
        };
        job.wait_for_loss(Duration::from_secs(20)).unwrap().unwrap();
        job.acknowledge_losses();
        match exchange.join().unwrap() {
            Ok(heard) => assert_eq!(heard, [Some(b"0".to_vec()), None, Some(b"2".to_vec())]),
            Err(error) => assert!(matches!(error, RendezvousError::RankLost { rank: 1, .. }), "{error}"),
        }
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
        let _ = job.barrier("end");
        assert!(lost.join().is_err());
        assert_eq!(other.join().unwrap().unwrap(), [Some(b"0".to_vec()), None, Some(b"2".to_vec())]);
    }
}

#[test]
fn a_token_of_blanks_is_none() {
    for token in ["", " ", "\t\n"] {
        let mut config = config(free_port(), 0, 1);
        (config.meeting_point.host, config.token) = ("0.0.0.0".into(), Some(token.into()));
        let error = Rendezvous::join(&config).unwrap_err();
        assert!(matches!(error, RendezvousError::NoToken { .. }), "{token:?}: {error}");
    }
}

#[test]
fn a_heartbeat_that_is_longer_than_the_silence_of_rank_zero_is_refused() {
    let port = free_port();
    let zero = thread::spawn(move || {
        let mut config = config(port, 0, 2);
        (config.heartbeat, config.silence) = (Duration::from_millis(100), Duration::from_secs(1));
        Rendezvous::join(&config).unwrap()
    });
    let mut other = config(port, 1, 2);
    (other.heartbeat, other.silence) = (Duration::from_secs(5), Duration::from_secs(50));
    let error = Rendezvous::join(&other).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, RendezvousError::HeartbeatOfRank { rank: 1, .. }), "{text}");
    assert!(text.contains("5.0 s") && text.contains("1.0 s") && text.contains("same times"), "{text}");
    (other.heartbeat, other.silence) = (Duration::from_millis(200), Duration::from_secs(50));
    let joined = Rendezvous::join(&other).unwrap();
    let zero = zero.join().unwrap();
    zero.put("x", b"y").unwrap();
    assert_eq!(joined.get("x").unwrap(), b"y");
}
