//! The server: who is answered, what, and who is not; requests made up of anything; clients that hang or leave.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use kiln_watch::{WatchError, WatchOptions, WatchServer};

use crate::client::{Served, parsed};
use crate::samples::{Random, Recording, planted, random_events};

#[test]
fn the_page_is_one_document_that_asks_only_its_own_address() {
    let recording = Recording::of(&planted(), 3);
    let served = Served::new(&recording.0);
    let page = served.ask("");
    assert_eq!(page.status, 200);
    assert!(
        page.head.contains("Content-Security-Policy: default-src 'self'; script-src 'nonce-"),
        "{}",
        page.head
    );
    assert!(page.head.contains("X-Content-Type-Options: nosniff") && page.head.contains("no-referrer"));
    let nonce = page.head.split("script-src 'nonce-").nth(1).unwrap().split('\'').next().unwrap();
    assert_eq!(page.body.matches(&format!("nonce=\"{nonce}\"")).count(), 2);
    assert!(
        !page.body.contains("http://") && !page.body.contains("https://") && !page.body.contains("NONCE")
    );
    assert!(!page.body.contains("/* scripts */") && !page.body.contains("/* styles */"));
    assert_ne!(served.ask("").head, page.head, "each page has another nonce");
    assert_eq!(served.ask("icon.svg").status, 200);
}

#[test]
fn without_the_token_and_under_another_name_there_is_nothing() {
    let recording = Recording::of(&planted(), 3);
    let served = Served::new(&recording.0);
    let host = format!("127.0.0.1:{}", served.port);
    let mut other = served.token.clone();
    other.replace_range(..1, if other.starts_with('0') { "1" } else { "0" });
    for path in [
        "/",
        "/state",
        "//state",
        "/favicon.ico",
        &*format!("/{other}/state"),
        &*format!("/{}x/", served.token),
    ] {
        let answer = served.ask_as(&host, path);
        assert_eq!(answer.status, 403, "{path}");
        assert!(!answer.body.contains("train") && !answer.head.contains(&served.token));
    }
    let path = format!("/{}/state", served.token);
    for host in ["evil.example", "127.0.0.1", "localhost", &*format!("evil.example:{}", served.port), ""] {
        assert_eq!(served.ask_as(host, &path).status, 403, "{host}");
    }
    for host in [host, format!("localhost:{}", served.port), format!("LocalHost:{}", served.port)] {
        assert_eq!(served.ask_as(&host, &path).status, 200, "{host}");
    }
    assert_eq!(
        served.ask_as(&format!("localhost:{}", served.port), &format!("/{}", served.token)).status,
        404
    );
}

#[test]
fn only_the_loopback_interface_is_served_and_a_port_in_use_says_what_to_do() {
    let recording = Recording::of(&planted(), 3);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let error = WatchServer::start(&recording.0, &WatchOptions { port, ..WatchOptions::default() });
    let error = error.map(|_| ()).unwrap_err();
    assert!(matches!(error, WatchError::PortInUse { port: used } if used == port), "{error}");
    assert!(error.next_step().unwrap().contains("--port"));
    drop(taken);
    let server = WatchServer::start(&recording.0, &WatchOptions { port, ..WatchOptions::default() }).unwrap();
    assert!(server.url().starts_with(&format!("http://127.0.0.1:{port}/")));
    drop(server);
    // The port is free again soon.
    let deadline = Instant::now() + Duration::from_secs(5);
    while TcpListener::bind(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn everything_the_page_asks_is_answered() {
    let recording = Recording::of(&planted(), 3);
    let served = Served::new(&recording.0);
    let state = served.ask("state").json();
    assert_eq!((&state["program"], &state["events"]), (&"train".into(), &planted().len().into()));
    let names = served.ask("names?first=0").json();
    assert!(names.as_array().unwrap().iter().any(|name| name == "consume"));
    assert_eq!(served.ask("names?first=999").json(), serde_json::json!([]));
    let tile = served.ask("tile?level=10&index=0&first=0&rows=64").json();
    assert_eq!(tile["rows"][0]["works"]["number"], serde_json::json!([1, 2, 3]));
    let row = tile["rows"][1]["row"].as_u64().unwrap();
    let work = served.ask(&format!("work?row={row}&number=1")).json();
    assert!(work["gap"]["sentences"][0].as_str().unwrap().contains("written by `produce`"), "{work}");
    assert_eq!(served.ask("find?q=CONS").json()[0]["text"], "consume");
    assert_eq!(served.ask("next?q=consume&from=0&back=0").json()["begin_ns"], 90_000);
    assert_eq!(served.ask("memory?begin=0&end=200000&points=9").json()[0]["peak_bytes"], 4 << 20);
    assert!(served.ask("explain").json()["text"].as_str().unwrap().contains("Recording of train"));
    for (status, what) in [
        (404, "nothing"),
        (404, "work?row=0&number=77"),
        (404, "work?row=9&number=1"),
        (404, "tile?level=99&index=0&first=0&rows=1"),
        (400, "tile"),
        (400, "tile?level=-1&index=0&first=0&rows=1"),
        (400, "names?first=x"),
        (400, "find"),
        (400, "find?q="),
        (400, "next?q=a&from=18446744073709551616"),
    ] {
        assert_eq!(served.ask(what).status, status, "{what}");
    }
}

#[test]
fn several_requests_go_over_one_connection() {
    let recording = Recording::of(&planted(), 3);
    let served = Served::new(&recording.0);
    let mut stream = served.connect();
    let request = |close: &str| {
        format!("HEAD /{}/state HTTP/1.1\r\nHost: localhost:{}\r\n{close}\r\n", served.token, served.port)
    };
    let both = request("") + &request("Connection: close\r\n");
    stream.write_all(both.as_bytes()).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2, "{answers}");
    assert!(!answers.contains("train"), "HEAD has no body");
}

#[test]
fn whatever_is_sent_the_server_goes_on() {
    let recording = Recording::of(&planted(), 3);
    let served = Served::new(&recording.0);
    let good = format!(
        "GET /{}/state HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n",
        served.token, served.port
    );
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let mut bytes = good.clone().into_bytes();
        match random.below(4) {
            0 => bytes = (0..random.below(600)).map(|_| random.below(256) as u8).collect(),
            1 => bytes.truncate(random.below(bytes.len() as u64) as usize),
            2 => {
                for _ in 0..1 + random.below(4) {
                    let at = random.below(bytes.len() as u64) as usize;
                    bytes[at] = random.below(256) as u8;
                }
            }
            _ => {
                let at = random.below(bytes.len() as u64) as usize;
                bytes.splice(at..at, std::iter::repeat_n(b'a', random.below(20_000) as usize));
            }
        }
        if let Some(answer) = served.send(&bytes) {
            assert!((200..=505).contains(&answer.status), "seed {seed}: {}", answer.head);
        }
    }
    assert_eq!(served.ask("state").status, 200);
}

#[test]
fn a_request_that_is_too_long_is_refused() {
    let recording = Recording::of(&planted(), 3);
    let served = Served::new(&recording.0);
    let host = format!("127.0.0.1:{}", served.port);
    for length in [9_000, 100_000, 2_000_000] {
        let path = "a".repeat(length);
        let answer = served.send(format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
        // The rest of it meets a closed connection, which may swallow the answer.
        assert!(answer.is_none_or(|answer| answer.status == 431), "{length}");
    }
    let answer =
        served.send(format!("POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\n\r\nhello").as_bytes());
    assert_eq!(answer.unwrap().status, 405);
    let answer = served
        .send(format!("GET / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 99999999999\r\n\r\n").as_bytes());
    assert_eq!(answer.unwrap().status, 413);
}

#[test]
fn clients_that_send_nothing_do_not_keep_others_out() {
    let recording = Recording::of(&planted(), 3);
    let served = Served::new(&recording.0);
    let silent: Vec<_> = (0..200)
        .map(|number| {
            let mut stream = served.connect();
            // Half of them begin a request.
            let _ = stream.write_all(if number % 2 == 0 { b"GET /" } else { b"" });
            stream
        })
        .collect();
    let begun = Instant::now();
    assert_eq!(served.ask("state").status, 200);
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    drop(silent);
    assert_eq!(served.ask("state").status, 200);
}

#[test]
fn a_browser_that_goes_away_in_the_middle_of_an_answer_is_forgotten() {
    let recording = Recording::of(&random_events(3, 8, 40_000), 2_000);
    let served = Served::new(&recording.0);
    let what = format!(
        "GET /{}/tile?level=22&index=0&first=0&rows=64 HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n",
        served.token, served.port
    );
    for _ in 0..100 {
        let mut stream = served.connect();
        stream.write_all(what.as_bytes()).unwrap();
        let mut some = [0; 64];
        let read = stream.read(&mut some).unwrap();
        assert!(read > 0);
    }
    // And one that does not read at all, while others are answered.
    let mut deaf = served.connect();
    for _ in 0..50 {
        let _ = deaf.write_all(what.as_bytes());
    }
    assert_eq!(served.ask("state").status, 200);
    let mut stream = served.connect();
    stream.write_all(what.replace("HTTP/1.1\r\n", "HTTP/1.0\r\n").as_bytes()).unwrap();
    let mut whole = Vec::new();
    stream.read_to_end(&mut whole).unwrap();
    assert!(parsed(&whole).unwrap().body.ends_with('}'));
    assert_eq!(served.server.recording().state().problem, None);
}
