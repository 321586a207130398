//! Processes that do not know the token of a job and speak its protocol.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use kiln::group::{Rendezvous, RendezvousError};

use crate::job_rig::{config, free_port};

#[test]
fn a_process_that_gives_the_proof_of_the_store_for_its_own_is_no_rank() {
    let port = free_port();
    let zero = thread::spawn(move || {
        let mut config = config(port, 0, 2);
        config.timeout = Duration::from_secs(2);
        Rendezvous::join(&config)
    });
    let mut stream = loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => break stream,
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    };
    let mut send = |message: &[u8]| {
        stream.write_all(&(message.len() as u32).to_le_bytes()).unwrap();
        stream.write_all(message).unwrap();
        let mut length = [0; 4];
        stream.read_exact(&mut length).unwrap();
        let mut answer = vec![0; u32::from_le_bytes(length) as usize];
        stream.read_exact(&mut answer).unwrap();
        answer
    };
    // It asks, and answers the number of the store with what the store has proved.
    let challenge = send(&[&[0][..], b"kilnrdv7", &[5; 32]].concat());
    assert_eq!((challenge[0], challenge.len()), (1, 65));
    let numbers = [1_u32, 2, 500].map(u32::to_le_bytes).concat();
    let answer = send(&[&[2][..], &numbers, &challenge[33..]].concat());
    assert_eq!(answer[0], 4, "it was taken: {answer:?}");
    let told = zero.join().unwrap().unwrap_err();
    assert!(matches!(&told, RendezvousError::MissingRanks { missing, .. } if missing[..] == [1]), "{told}");
}
