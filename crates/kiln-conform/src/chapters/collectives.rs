//! Laws about communicators: one rank alone, the ranks of two devices, and a rank that is aborted.

mod together;

use std::sync::OnceLock;

use kiln_driver::{Command, DriverExt, Function, GraphNode, Health, Image, ModuleId, Refusal, StreamId};

use crate::expect::{equal, holds, inapplicable, refused, same_bytes};
use crate::fixture::{Rig, as_words, noise, plain_launch};
use crate::kernels::Arguments;
use crate::law::{Law, LawVerdict, Stop, fail};

pub(crate) const LAWS: &[Law] = &[
    Law {
        name: "collectives.one_rank",
        says: "every collective of one rank is a copy, in the order of its stream",
        run: one_rank,
    },
    Law {
        name: "collectives.one_rank_in_a_graph",
        says: "collectives are nodes of a graph, which can be replayed",
        run: one_rank_in_a_graph,
    },
    Law {
        name: "collectives.two_ranks",
        says: "ranks on two devices get what each collective says, after the work before it on both devices",
        run: together::two_ranks,
    },
    Law {
        name: "collectives.sent_and_received",
        says: "ranks that send to each other and receive in one group have each other's blocks",
        run: together::sent_and_received,
    },
    Law {
        name: "collectives.two_ranks_in_graphs",
        says: "graphs with collectives of two ranks are replayed in the order of both ranks",
        run: together::in_graphs,
    },
    Law {
        name: "collectives.bad_text",
        says: "a text that is no rank, and a name that is no collective, are refused with what is wrong",
        run: bad_text,
    },
    Law {
        name: "collectives.bad_arguments",
        says: "arguments of another size are refused, and nothing is queued",
        run: bad_arguments,
    },
    Law {
        name: "collectives.abort",
        says: "a rank that is aborted ends what it has queued and takes nothing more; the device and its memory stay",
        run: abort,
    },
];

/// How long ranks wait for each other. A driver that does not end what is aborted is found after that time.
const DEADLINE_MS: u64 = 2_000;

/// The id of a new communicator, as 256 digits; a law does not apply where there are no collectives.
fn new_id(rig: &Rig<'_>) -> Result<String, Stop> {
    let made = OnceLock::new();
    match rig.load_image(&Image::CommunicatorId { id: &made }) {
        Ok(_) => {}
        Err(error) => match error.refusal() {
            Some(Refusal::Library { library, .. }) => {
                return inapplicable(format!("{library} is not here"));
            }
            _ => return Err(error.into()),
        },
    }
    let id = made.get().ok_or_else(|| fail("an id when the load returns", "none"))?;
    equal("the bytes of an id", id.len(), 128)?;
    Ok(id.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A rank of a communicator.
fn rank(rig: &Rig<'_>, id: &str, rank: u32, size: u32) -> Result<ModuleId, Stop> {
    let text = format!("communicator id={id} rank={rank} size={size} deadline_ms={DEADLINE_MS}");
    Ok(rig.load_image(&Image::Communicator(&text))?)
}

/// The arguments of a collective: its buffers, the number of elements, and workspace where it takes some.
fn arguments(rig: &Rig<'_>, function: &Function, words: &[u64]) -> Result<Arguments, Stop> {
    let arguments = words.iter().fold(Arguments::new(), |arguments, word| arguments.u64(*word));
    Ok(match function.attributes.workspace_bytes {
        0 => arguments,
        bytes => arguments.address(rig.memory(bytes)?.address),
    })
}

/// Queues a collective.
fn call(rig: &Rig<'_>, on: StreamId, rank: ModuleId, name: &str, words: &[u64]) -> LawVerdict {
    let function = rig.driver.function(rank, name)?;
    let arguments = arguments(rig, &function, words)?;
    Ok(rig.launch(on, function.id, 1, 1, &arguments).map(drop)?)
}

/// What one rank may call, with two buffers.
const COPIES: [&str; 8] = [
    "all_reduce element=u32 reduction=sum in_place=false",
    "all_reduce element=u32 reduction=average in_place=false",
    "reduce element=u32 reduction=max root=0 in_place=false",
    "all_gather element=u32 in_place=false",
    "reduce_scatter element=u32 reduction=product in_place=false",
    "all_to_all element=u32",
    "gather element=u32 root=0 in_place=false",
    "scatter element=u32 root=0 in_place=false",
];

fn one_rank(rig: &Rig<'_>) -> LawVerdict {
    let alone = rank(rig, &new_id(rig)?, 0, 1)?;
    let stream = rig.stream()?;
    for name in COPIES {
        let data = noise(256, name.len() as u64);
        let (send, recv) = (rig.memory_with(&data)?, rig.words(64)?);
        call(rig, stream, alone, name, &[send.address.0, recv.address.0, 64])?;
        rig.increment(stream, &recv, 64)?;
        rig.driver.synchronize(stream)?;
        let expected: Vec<u32> = as_words(&data).iter().map(|word| word.wrapping_add(1)).collect();
        equal(format!("what `{name}` copied, and one more"), rig.get_words(&recv, 64)?, expected)?;
    }
    let data = noise(256, 5);
    let kept = rig.memory_with(&data)?;
    for name in ["broadcast element=u32 root=0", "all_reduce element=u32 reduction=sum in_place=true"] {
        call(rig, stream, alone, name, &[kept.address.0, 64])?;
    }
    rig.driver.synchronize(stream)?;
    same_bytes("a buffer of one rank", &rig.get(kept.id, 256)?, &data)
}

fn one_rank_in_a_graph(rig: &Rig<'_>) -> LawVerdict {
    let alone = rank(rig, &new_id(rig)?, 0, 1)?;
    let stream = rig.stream()?;
    let (send, recv) = (rig.words(64)?, rig.words(64)?);
    let gather = rig.driver.function(alone, "all_gather element=u32 in_place=false")?;
    let gathered = arguments(rig, &gather, &[send.address.0, recv.address.0, 64])?;
    let increment = rig.kernel("increment")?;
    let more = Arguments::new().address(send.address).u32(64);
    let nodes = [
        GraphNode { command: Command::Launch(plain_launch(increment.id, 1, 64, &more)), after: &[] },
        GraphNode { command: Command::Launch(plain_launch(gather.id, 1, 1, &gathered)), after: &[0] },
    ];
    let graph = rig.graph(&nodes)?;
    for replay in 1..=5 {
        rig.driver.submit(stream, &Command::Graph(graph))?;
        rig.driver.synchronize(stream)?;
        equal(format!("what replay {replay} gathered"), rig.get_words(&recv, 64)?, vec![replay; 64])?;
    }
    Ok(())
}

fn bad_text(rig: &Rig<'_>) -> LawVerdict {
    let id = new_id(rig)?;
    let texts = [
        String::new(),
        format!("communicator id={id} rank=0 size=2"),
        format!("communicator id={id} rank=2 size=2 deadline_ms=1000"),
        format!("communicator id={id} rank=0 size=0 deadline_ms=1000"),
        format!("communicator id={id} rank=0 size=2 deadline_ms=0"),
        format!("communicator id={} rank=0 size=2 deadline_ms=1000", &id[2..]),
        format!("communicator id={} rank=0 size=2 deadline_ms=1000", "0".repeat(256)),
    ];
    for text in texts {
        let loaded = rig.driver.load(&Image::Communicator(&text));
        let words = text.replace(&id, "ID");
        let has_log =
            |reason: &Refusal| matches!(reason, Refusal::Image { log, .. } if !log.trim().is_empty());
        refused(format!("`{words}`"), loaded, has_log)?;
    }
    let alone = rank(rig, &id, 0, 1)?;
    for name in
        ["", "all_reduced element=u32", "broadcast element=u32 root=1", "send element=u32 peer=0", "spin"]
    {
        let found = rig.driver.function(alone, name);
        holds(
            found.as_ref().is_err_and(|error| error.is_refused()),
            format!("`{name}` to be refused"),
            found.map_or_else(|error| error.to_string(), |_| "that it was found".into()),
        )?;
    }
    Ok(())
}

fn bad_arguments(rig: &Rig<'_>) -> LawVerdict {
    let alone = rank(rig, &new_id(rig)?, 0, 1)?;
    let stream = rig.stream()?;
    let memory = rig.memory_with(&[3; 64])?;
    for words in [&[][..], &[memory.address.0], &[memory.address.0; 5]] {
        let called = call(rig, stream, alone, "all_gather element=u32 in_place=false", words);
        holds(
            called.is_err(),
            format!("a refusal of {} bytes of arguments", 8 * words.len()),
            "that it was taken",
        )?;
    }
    rig.driver.synchronize(stream)?;
    same_bytes("what was there", &rig.get(memory.id, 64)?, &[3; 64])
}

fn abort(rig: &Rig<'_>) -> LawVerdict {
    // The other rank never comes.
    let waits = rank(rig, &new_id(rig)?, 0, 2)?;
    let (stream, beside) = (rig.stream()?, rig.stream()?);
    let data = noise(4096, 31);
    let (kept, summed) = (rig.memory_with(&data)?, rig.words(64)?);
    let name = "all_reduce element=u32 reduction=sum in_place=true";
    let words = [summed.address.0, 64];
    // Found before: a driver may be busy with the collective until it is ended.
    let abort = rig.driver.function(waits, "abort")?;
    together::while_it_waits(
        rig,
        || call(rig, stream, waits, name, &words),
        || Ok(rig.launch(beside, abort.id, 1, 1, &Arguments::new()).map(drop)?),
    )?;
    // What the collective was told is known by then; the device goes on in any case.
    for ended in [rig.driver.synchronize(beside), rig.driver.synchronize(stream)] {
        if let Err(error) = ended {
            holds(!error.is_sticky(), "an abort not to lose the device", error)?;
        }
    }
    if let Health::Lost(error) = rig.driver.health() {
        return Err(fail("an abort not to lose the device", error));
    }
    same_bytes("memory that the rank did not use", &rig.get(kept.id, 4096)?, &data)?;
    let words_after = rig.words(64)?;
    rig.increment(stream, &words_after, 64)?;
    rig.driver.synchronize(stream)?;
    equal("work after the abort", rig.get_words(&words_after, 64)?, vec![1; 64])?;
    let taken = call(rig, stream, waits, name, &words).and_then(|()| Ok(rig.driver.synchronize(stream)?));
    holds(taken.is_err(), "a rank that was aborted to take nothing more", "that it took a collective")?;
    let next = rank(rig, &new_id(rig)?, 0, 1)?;
    call(rig, stream, next, name, &[words_after.address.0, 64])?;
    rig.driver.synchronize(stream)?;
    equal("a collective of another communicator", rig.get_words(&words_after, 64)?, vec![1; 64])
}
