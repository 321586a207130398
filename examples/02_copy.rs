//! Data to a device, on it, and back.
//!
//! `cargo run -p kiln --example 02_copy` runs on the GPU where there is one, and on the simulated device otherwise.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Instant;

use kiln::DeviceRuntime;

const LEN: usize = 1 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gpu = DeviceRuntime::auto()?;
    println!("{gpu:?}");

    // When an upload returns, the data may be changed or dropped: it went through pinned memory of a pool.
    let mut data: Vec<u32> = (0..LEN as u32).collect();
    let numbers = gpu.upload(&data)?;
    data.fill(0);

    // A download waits for whatever writes the buffer, and for nothing else.
    assert!(numbers.download()?.iter().copied().eq(0..LEN as u32));

    // Into memory of your own; the lengths must agree.
    numbers.download_into(&mut data)?;
    assert_eq!(data[LEN - 1], LEN as u32 - 1);
    let refused = numbers.download_into(&mut data[1..]).err().ok_or("the lengths differ")?;
    println!("refused: {refused}");

    // On the device: the first half over the second, then three words of a pattern.
    let (first, second) = (numbers.view(..LEN / 2)?, numbers.view(LEN / 2..)?);
    second.copy_from(&first)?;
    numbers.view(7..10)?.fill(0xabcd)?;
    let seen = numbers.download()?;
    assert_eq!(seen[6..11], [6, 0xabcd, 0xabcd, 0xabcd, 10]);
    assert_eq!(seen[LEN / 2 + 7], 7, "the copy was queued before the fill and so comes before it");

    // Pinned memory that you fill yourself copies at full speed while the host goes on.
    let mut pinned = gpu.pinned::<u32>(LEN)?;
    for (at, value) in pinned.write()?.iter_mut().enumerate() {
        *value = (at as u32).rotate_left(3);
    }
    let start = Instant::now();
    let ticket = pinned.copy_to(&numbers)?;
    println!("a copy of {} bytes was queued in {:?}", numbers.bytes(), start.elapsed());
    ticket.wait()?;
    println!("and was done {:?} after", start.elapsed());

    // Reading waits for the copy that writes it.
    let mut back = gpu.pinned::<u32>(LEN)?;
    back.copy_from(&numbers)?;
    assert!(back.read()?.iter().enumerate().all(|(at, value)| *value == (at as u32).rotate_left(3)));
    println!("{LEN} elements came back as they went");
    Ok(())
}
