//! What the store of rank 0 answers.

use super::super::told_absences::WhyAbsent;
use super::*;

/// What the ranks of a job bring at most, in tests that do not say it.
const LIMIT: u64 = 16 << 30;

fn store(size: u32) -> Store {
    Store::new(size, LIMIT)
}

#[test]
fn all_are_told_once_the_last_rank_is_there() {
    let mut store = store(2);
    assert_eq!(store.join(1), []);
    assert_eq!(
        store.request(1, Message::WhoIsMissing { id: 3 }),
        [(1, Message::Missing { id: 3, ranks: vec![0] })]
    );
    assert_eq!(store.join(0), [(0, Message::Complete), (1, Message::Complete)]);
}

#[test]
fn wrong_ranks_are_refused() {
    let mut store = store(2);
    store.join(1);
    assert_eq!(store.admit(0, 3), Err(Refusal::Size { size: 2 }));
    assert_eq!(store.admit(2, 2), Err(Refusal::Range));
    assert_eq!(store.admit(1, 2), Err(Refusal::Taken));
    assert_eq!(store.admit(0, 2), Ok(()));
}

#[test]
fn a_lost_rank_is_told_to_all_and_to_its_replacement_it_is_not() {
    let mut store = store(3);
    (0..3).for_each(|rank| drop(store.join(rank)));
    let lost = |rank| Message::Lost { rank, cause: "closed".into() };
    assert_eq!(store.leave(1, Some("closed".into())), [(0, lost(1)), (2, lost(1))]);
    assert_eq!(store.leave(1, Some("closed".into())), []);
    store.leave(2, Some("closed".into()));
    let back = store.join(1);
    let told = [Message::Back { rank: 1 }, lost(2), Message::Complete].map(|message| (1, message));
    assert_eq!(back[0], (0, Message::Back { rank: 1 }));
    assert_eq!(back[1..], told);
}

#[test]
fn a_rank_that_comes_back_before_all_have_met_is_no_replacement() {
    let mut store = store(2);
    store.join(1);
    store.leave(1, Some("closed".into()));
    assert_eq!(store.join(1), []);
}

#[test]
fn values_of_a_lost_rank_alone_go_away_with_it() {
    let mut store = store(12);
    [0, 1, 11].into_iter().for_each(|rank| drop(store.join(rank)));
    let put = |store: &mut Store, key: String| {
        store.request(1, Message::Put { id: 1, key, value: vec![5; 10] });
    };
    put(&mut store, own_keys(11) + "a");
    put(&mut store, "k".into());
    let kept = store.bytes;
    put(&mut store, own_keys(1) + "a");
    store.leave(1, Some("closed".into()));
    assert_eq!((store.bytes, store.values.len()), (kept, 2));
}

#[test]
fn values_reach_those_that_wait_and_those_that_come_later() {
    let mut store = store(2);
    (0..2).for_each(|rank| drop(store.join(rank)));
    assert_eq!(store.request(0, Message::Get { id: 1, key: "k".into() }), []);
    let put = Message::Put { id: 2, key: "k".into(), value: vec![5] };
    let value = |id| Message::Value { id, value: vec![5] };
    assert_eq!(store.request(1, put), [(1, Message::Done { id: 2 }), (0, value(1))]);
    assert_eq!(store.request(0, Message::Get { id: 3, key: "k".into() }), [(0, value(3))]);
    store.request(0, Message::Remove { id: 4, key: "k".into() });
    assert_eq!(store.request(0, Message::Get { id: 5, key: "k".into() }), []);
    assert_eq!(store.bytes, 0);
}

#[test]
fn a_rank_that_has_left_is_told_to_those_that_wait_for_its_value() {
    let mut store = store(3);
    (0..3).for_each(|rank| drop(store.join(rank)));
    let of = |id, key: &str| Message::GetOf { id, rank: 2, key: key.into() };
    store.request(2, Message::Put { id: 1, key: "there".into(), value: vec![7] });
    assert_eq!(store.request(0, of(2, "absent")), []);
    assert_eq!(store.request(1, Message::Get { id: 3, key: "absent".into() }), []);
    let told = store.leave(2, None);
    let left = Message::Left { rank: 2 };
    assert_eq!(told, [(0, left.clone()), (1, left.clone()), (0, Message::Gone { id: 2 })]);
    assert_eq!(store.request(1, of(4, "absent")), [(1, Message::Gone { id: 4 })]);
    assert_eq!(store.request(1, of(5, "there")), [(1, Message::Value { id: 5, value: vec![7] })]);
    store.leave(1, Some("closed".into()));
    assert!(store.join(1).contains(&(1, left)));
    assert!(store.join(2).contains(&(0, Message::Back { rank: 2 })));
    assert_eq!(store.request(0, of(6, "absent")), []);
}

#[test]
fn a_rank_that_leaves_because_another_one_is_late_says_so_before() {
    let mut store = store(3);
    (0..3).for_each(|rank| drop(store.join(rank)));
    let late = |why| ToldAbsence { ranks: vec![2], why };
    let told = |why| Message::Told { rank: 1, absence: late(why) };
    let is_late = || WhyAbsent::LateInExchange("x".into());
    assert_eq!(store.request(1, told(is_late())), []);
    let expected = [0, 2].map(|rank| (rank, told(is_late())));
    let left = [0, 2].map(|rank| (rank, Message::Left { rank: 1 }));
    assert_eq!(store.leave(1, None), [expected, left.clone()].concat());
    // Not if that one has come since.
    store.join(1);
    store.request(1, told(is_late()));
    store.request(1, told(WhyAbsent::HasCome));
    assert_eq!(store.leave(1, None), left);
    // What rank 0 is told, and what is over of it, goes to the others at once.
    for why in [is_late(), WhyAbsent::HasCome] {
        let told = Message::Told { rank: 0, absence: late(why) };
        assert_eq!(store.request(0, told.clone()), [(2, told)]);
    }
}

#[test]
fn what_collectives_bring_has_its_own_room_and_goes_when_all_ranks_have_ended() {
    let mut store = store(2);
    (0..2).for_each(|rank| drop(store.join(rank)));
    let name = transfer::communicator_name("ab");
    let keys = transfer::collective_keys(&name);
    let put = |store: &mut Store, key: String, value: Vec<u8>| {
        let answers = store.request(0, Message::Put { id: 1, key, value });
        assert_eq!(answers[0], (0, Message::Done { id: 1 }));
    };
    (0..65).for_each(|at| put(&mut store, format!("{keys}0/0/{at}"), vec![0; 1 << 20]));
    assert!(store.exchanged > MAX_BYTES && store.bytes == 0);
    put(&mut store, Transfer { from: 0, to: 1, number: 0 }.key(&name) + "/0", vec![1]);
    let end = transfer::end_value(2, &BTreeMap::new(), false);
    put(&mut store, transfer::end_key(&name, 1), end.clone());
    assert_eq!(store.values.len(), 67);
    put(&mut store, transfer::end_key(&name, 0), end);
    assert_eq!(store.values.len(), 3, "a send is there until it is received");
    store.request(0, Message::Forget { prefix: "k".into() });
    assert_eq!(store.values.len(), 3);
    store.request(0, Message::Forget { prefix: format!("{name}/") });
    assert_eq!((store.values.len(), store.exchanged), (0, 0));
}

#[test]
fn a_receiver_is_told_of_sends_that_wait_for_each_other() {
    let mut store = store(2);
    (0..2).for_each(|rank| drop(store.join(rank)));
    let name = transfer::communicator_name("ab");
    let crossing = [(0, 1), (1, 0)].map(|(from, to)| Transfer { from, to, number: 0 });
    for sent in crossing {
        let key = format!("{}/0", sent.key(&name));
        store.request(sent.from, Message::Put { id: 1, key, value: vec![1] });
    }
    let mut receive = |transfer: Transfer| {
        let met = MetTransfer { transfer, sent_in: 0, received_in: 1, said: format!("of {}", transfer.from) };
        let put = Message::Put { id: 2, key: met.key(&name), value: met.value() };
        store.request(transfer.to, put)
    };
    assert_eq!(receive(crossing[0]), [(1, Message::Done { id: 2 })]);
    assert_eq!(receive(crossing[1]), [(0, Message::Value { id: 2, value: b"of 1\nof 0".to_vec() })]);
    assert_eq!(store.values.len(), 2, "what receivers say is not kept");
}

#[test]
fn what_collectives_bring_beyond_the_limit_is_refused_to_the_byte() {
    let mut store = store(2);
    (0..2).for_each(|rank| drop(store.join(rank)));
    let key = transfer::collective_keys(&transfer::communicator_name("ab")) + "0/0/0";
    // So much was brought before, in values that need not be there.
    store.exchanged = LIMIT - room(&key, &[0; 1000]);
    let mut put =
        |bytes: usize| store.request(1, Message::Put { id: 1, key: key.clone(), value: vec![0; bytes] });
    assert_eq!(put(1001), [(1, Message::Full { id: 1, limit: LIMIT })]);
    assert_eq!(put(1000), [(1, Message::Done { id: 1 })]);
    assert_eq!(store.exchanged, LIMIT);
    assert_eq!(store.bytes, 0, "what programs put has its own room");
}

#[test]
fn a_value_that_is_not_waited_for_any_more_is_not_sent() {
    let mut store = store(2);
    (0..2).for_each(|rank| drop(store.join(rank)));
    for id in [1, 2] {
        assert_eq!(store.request(0, Message::Get { id, key: "k".into() }), []);
    }
    store.request(0, Message::Cancel { id: 1, key: "k".into() });
    let put = Message::Put { id: 3, key: "k".into(), value: vec![5] };
    let told = [(1, Message::Done { id: 3 }), (0, Message::Value { id: 2, value: vec![5] })];
    assert_eq!(store.request(1, put), told);
}

#[test]
fn a_full_store_refuses_and_keeps_what_it_has() {
    let mut store = store(1);
    store.join(0);
    let mut refused = 0;
    for n in 0..100 {
        let put = Message::Put { id: n, key: format!("k{n}"), value: vec![0; 1 << 20] };
        refused += u32::from(store.request(0, put) == [(0, Message::Full { id: n, limit: MAX_BYTES })]);
    }
    assert!((36..40).contains(&refused), "{refused}");
    assert!(matches!(
        store.request(0, Message::Get { id: 1, key: "k0".into() })[..],
        [(0, Message::Value { .. })]
    ));
}

/// What a rank puts of a transfer or a collective as its first piece.
fn first_piece(called: &str) -> Vec<u8> {
    let brought = transfer::Brought { called, said: "a call, at a line", call: 0, bytes: &[] };
    [&1_u64.to_le_bytes()[..], &brought.packed()].concat()
}

#[test]
fn a_send_that_a_group_receives_as_something_else_is_refused_and_not_kept() {
    let mut store = store(2);
    (0..2).for_each(|rank| drop(store.join(rank)));
    let name = transfer::communicator_name("ab");
    let sent = Transfer { from: 0, to: 1, number: 0 };
    let call = ComparedCall { called: "nine".into(), said: "a receive, at a line".into() };
    let group = compared_groups::packed(&[compared_groups::GroupPart { transfer: sent, call }]);
    let put = |store: &mut Store, rank: u32, key: String, value: Vec<u8>| {
        store.request(rank, Message::Put { id: 7, key, value })
    };
    let is_done = |told: &[Delivery]| matches!(told, [(_, Message::Done { id: 7 })]);
    assert!(is_done(&put(&mut store, 1, compared_groups::group_key(&name, 1), group.clone())));
    let piece = format!("{}/0", sent.key(&name));
    let told = put(&mut store, 0, piece.clone(), first_piece("eight"));
    assert!(matches!(&told[..], [(0, Message::Value { id: 7, .. })]), "{told:?}");
    assert!(!store.values.contains_key(&piece));
    assert!(is_done(&put(&mut store, 0, piece, first_piece("nine"))));
    // A group that comes second is compared with what is there.
    let call = ComparedCall { called: "ten".into(), said: "a receive, at a line".into() };
    let other = compared_groups::packed(&[compared_groups::GroupPart { transfer: sent, call }]);
    let told = put(&mut store, 1, compared_groups::group_key(&name, 1), other);
    assert!(matches!(&told[..], [(1, Message::Value { id: 7, .. })]), "{told:?}");
    assert!(is_done(&put(&mut store, 1, compared_groups::group_key(&name, 1), group)));
}

#[test]
fn a_collective_is_given_up_once_for_all_ranks_unless_all_have_come() {
    let mut store = store(2);
    (0..2).for_each(|rank| drop(store.join(rank)));
    let name = transfer::communicator_name("ab");
    let piece = |number: u64, rank: u32| format!("{}0", brought_keys(&name, number, rank));
    let put = |store: &mut Store, rank: u32, key: String, value: Vec<u8>| {
        store.request(rank, Message::Put { id: 7, key, value }).remove(0).1
    };
    let give_up = |store: &mut Store, rank: u32, number: u64| {
        let wanted = WantedEnd { rank, size: 2, collectives: vec![number], said: b"late".to_vec() };
        put(store, rank, WantedEnd::key(&name, rank), wanted.value())
    };
    put(&mut store, 0, piece(0, 0), first_piece("sum"));
    put(&mut store, 1, piece(0, 1), first_piece("sum"));
    assert!(matches!(give_up(&mut store, 0, 0), Message::Value { .. }), "all have come");
    assert!(store.values.contains_key(&piece(0, 0)));
    put(&mut store, 0, piece(1, 0), first_piece("sum"));
    assert!(matches!(give_up(&mut store, 0, 1), Message::Done { .. }));
    assert!(!store.values.contains_key(&piece(1, 0)), "it is taken back");
    assert_eq!(store.values.get(&transfer::given_up_key(&name, 0)).map(Vec::as_slice), Some(&b"late"[..]));
    let told = put(&mut store, 1, piece(1, 1), first_piece("sum"));
    assert_eq!(told, Message::Value { id: 7, value: 0_u32.to_le_bytes().to_vec() });
    assert!(!store.values.contains_key(&piece(1, 1)), "what comes later is not taken");
}
