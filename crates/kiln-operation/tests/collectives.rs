//! Texts of collectives, groups and communicators.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::time::Duration;

use kiln_operation::{
    Collective, CollectiveGroup, CollectiveKind, CollectiveStep, CollectiveType, CommunicatorId,
    CommunicatorRank, OperandEffect, Reduction,
};

fn all() -> Vec<Collective> {
    let mut all = Vec::new();
    for kind in CollectiveKind::ALL {
        for element in CollectiveType::ALL {
            let one = Collective::new(*kind, *element);
            all.extend([one, one.in_place(), one.root(3), one.reduction(Reduction::Average)]);
            all.push(one.step_of(CollectiveStep::Split));
        }
    }
    all
}

#[test]
fn every_collective_is_its_text() {
    for collective in all() {
        let text = collective.to_string();
        assert_eq!(text.parse::<Collective>().as_ref(), Ok(&collective), "{text}");
        assert_eq!(text.split(' ').next(), Some(collective.name()));
    }
    let group = CollectiveGroup::new(all().into_iter().take(128).collect()).unwrap();
    assert_eq!(group.to_string().parse::<CollectiveGroup>(), Ok(group));
    assert!(CollectiveGroup::new(Vec::new()).is_err());
    assert!(CollectiveGroup::new(all().into_iter().cycle().take(129).collect()).is_err());
}

#[test]
fn a_step_of_another_call_is_called_by_its_name() {
    let gather = Collective::new(CollectiveKind::AllGather, CollectiveType::U8);
    let step = gather.step_of(CollectiveStep::Split);
    assert_eq!((gather.called(), step.called(), step.name()), ("all_gather", "split", "all_gather"));
    assert_eq!(step.to_string(), "all_gather element=u8 in_place=false step_of=split");
    // No other collective is one.
    let barrier = Collective::new(CollectiveKind::Barrier, CollectiveType::U8);
    assert_eq!(barrier.step_of(CollectiveStep::Split), barrier);
}

#[test]
fn a_text_that_is_no_collective_is_refused_with_what_is_wrong() {
    for (text, words) in [
        ("", "there is no operation ``; there are: all_reduce, reduce,"),
        ("all_reduce element=f32", "`reduction` is missing"),
        ("all_reduce element=f32 reduction=mean in_place=false", "one of sum product min max average"),
        ("broadcast element=f99 root=0", "one of i8 u8"),
        ("broadcast element=f32 root=-1", "a number below 2^64"),
        ("barrier element=f32", "`element` is unknown"),
        ("send element=f32 root=1", "`root` is unknown"),
        ("broadcast element=f32 root=0 step_of=split", "`step_of` is unknown"),
        ("all_gather element=f32 in_place=false step_of=merge", "one of split"),
        ("send element=f32 peer=1;", "there is no operation ``"),
        ("send element=f32 peer", "is no `key=value`"),
    ] {
        let error = text.parse::<CollectiveGroup>().unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn buffers_follow_from_the_rank() {
    use OperandEffect::{Overwrites, Reads, ReadsAndWrites};
    let of = |collective: Collective, rank: u32| -> Vec<(&str, OperandEffect, u64)> {
        let operands = collective.operands(rank, 4);
        operands.into_iter().map(|operand| (operand.name, operand.effect, operand.blocks)).collect()
    };
    let new = |kind| Collective::new(kind, CollectiveType::F32);
    assert_eq!(of(new(CollectiveKind::AllGather), 2), [("send", Reads, 1), ("recv", Overwrites, 4)]);
    assert_eq!(of(new(CollectiveKind::AllGather).in_place(), 2), [("buffer", ReadsAndWrites, 4)]);
    assert_eq!(of(new(CollectiveKind::Gather).root(2), 1), [("send", Reads, 1)]);
    assert_eq!(of(new(CollectiveKind::Gather).root(2), 2), [("send", Reads, 1), ("recv", Overwrites, 4)]);
    assert_eq!(of(new(CollectiveKind::Broadcast).root(2), 2), [("buffer", Reads, 1)]);
    assert_eq!(of(new(CollectiveKind::Broadcast).root(2), 0), [("buffer", Overwrites, 1)]);
    assert_eq!(of(new(CollectiveKind::Scatter).root(2).in_place(), 2), [("buffer", Reads, 4)]);
}

#[test]
fn a_communicator_is_its_text() {
    let id = CommunicatorId::new(std::array::from_fn(|at| at as u8));
    let rank = CommunicatorRank { id, rank: 1, size: 2, deadline: Duration::from_millis(1500) };
    let text = rank.to_string();
    assert!(text.ends_with(" rank=1 size=2 deadline_ms=1500"), "{text}");
    assert_eq!(text.parse(), Ok(rank));
    for (changed, words) in [
        (text.replace("rank=1", "rank=2"), "rank 2 of a communicator of 2 ranks"),
        (text.replace("size=2", "size=0"), "no ranks"),
        (text.replace("size=2", "size=4294967296"), "a number below 2^32"),
        (text.replace("size=2", "size=4294967295"), "where there can be 65536"),
        (text.replace("deadline_ms=1500", "deadline_ms=0"), "a deadline of 0ns"),
        (text.replace("id=00", "id=0"), "256 hexadecimal digits"),
        (text.replace("communicator", "communicators"), "there is no operation"),
    ] {
        let error = changed.parse::<CommunicatorRank>().unwrap_err().to_string();
        assert!(error.contains(words), "{changed}: {error}");
    }
}
