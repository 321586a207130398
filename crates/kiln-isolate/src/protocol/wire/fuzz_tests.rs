//! Random and damaged bytes: no decoder panics, none allocates more than its message could hold, and what was written is
//! read back unchanged.

use proptest::prelude::*;

use super::samples::{read_all, requests};
use crate::protocol::device_spec::DeviceSpec;

use super::{Ask, Farewell, Hello, Put, Reader, Request, Take, Welcome, Writer};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    #[test]
    fn random_bytes_are_an_answer_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        read_all(&bytes);
    }

    #[test]
    fn requests_arrive_as_they_were_and_damage_is_noticed(
        numbers in any::<[u64; 4]>(),
        arguments in proptest::collection::vec(any::<u8>(), 0..40),
        at in any::<proptest::sample::Index>(),
        byte in any::<u8>(),
    ) {
        for request in requests(numbers, &arguments) {
            let mut bytes = Writer::of(&request);
            prop_assert_eq!(Request::take(&bytes).unwrap(), request);
            for end in 0..bytes.len() {
                prop_assert!(Request::take(&bytes[..end]).is_err());
            }
            bytes.push(0);
            prop_assert!(Request::take(&bytes).is_err());
            bytes.pop();
            let place = at.index(bytes.len());
            bytes[place] = byte;
            read_all(&bytes);
        }
    }
}

#[test]
fn a_list_that_says_it_is_long_allocates_nothing() {
    // A graph of four billion nodes in a message of a few bytes.
    let mut writer = Writer::new();
    [8u8, 0, 0, 0, 0, 0, 0, 0, 0, 16].iter().for_each(|byte| writer.u8(*byte));
    writer.u64(1);
    writer.u32(u32::MAX);
    assert!(Request::take(writer.bytes()).is_err());
    let mut writer = Writer::new();
    writer.u32(u32::MAX);
    assert!(<Vec<u64> as Take>::take(&mut Reader::new(writer.bytes())).is_err());
    assert!(<String as Take>::take(&mut Reader::new(writer.bytes())).is_err());
}

#[test]
fn a_batch_of_batches_is_refused() {
    let asks = vec![Ask::Batch { asks: vec![Ask::Ready] }];
    let nested = Request::Ask { number: 1, ask: Ask::Batch { asks } };
    assert!(Request::take(&Writer::of(&nested)).is_err());
}

#[test]
fn handshakes_of_another_version_are_refused() {
    let hello = Hello { spin_ns: 5, device: DeviceSpec::custom("sim", [1, 2]) };
    let bytes = Writer::of(&hello);
    assert_eq!(Hello::take(&mut Reader::new(&bytes)).unwrap(), hello);
    for place in 0..12 {
        let mut other = bytes.clone();
        other[place] ^= 1;
        assert!(Hello::take(&mut Reader::new(&other)).is_err());
    }
    let farewell = Farewell { findings: "none".into() };
    assert_eq!(Farewell::take(&mut Reader::new(&Writer::of(&farewell))).unwrap(), farewell);
    let refused = Welcome::Refused { absent: true, text: "no device".into() };
    assert_eq!(Welcome::take(&mut Reader::new(&Writer::of(&refused))).unwrap(), refused);
    let mut nothing = Writer::new();
    true.put(&mut nothing);
    assert!(Welcome::take(&mut Reader::new(nothing.bytes())).is_err());
}
