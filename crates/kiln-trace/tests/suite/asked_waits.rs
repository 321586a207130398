//! Waits that the program asked for, told apart from those that the order of the work needs.

use kiln_trace::WaitReason;

use crate::explain::explained;
use crate::samples::{asked, kernel, span, stamp, wait};

#[test]
fn a_wait_that_the_program_asked_for_is_its_own_doing_and_told_once() {
    let found = explained(&[
        kernel("produce", stamp(0, 1), 10, 100, span(1_000, 9_000)),
        kernel("other", stamp(2, 1), 11, 100, span(1_000, 2_000)),
        // The program asks for a wait, which has a number; the work behind it needs another one, which is over earlier.
        asked(stamp(1, 1), stamp(0, 1)),
        wait(stamp(1, 2), stamp(2, 1), 1, "activations"),
        kernel("consume", stamp(1, 2), 20, 120, span(9_000, 9_500)),
        wait(stamp(3, 1), stamp(0, 1), 1, "weights"),
        kernel("reduce", stamp(3, 1), 21, 130, span(9_000, 9_500)),
    ]);
    let device = &found.devices[0];
    let [asked] = &*device.asked_stalls else { panic!("{found}") };
    assert_eq!((asked.reason, asked.line.as_deref()), (WaitReason::Asked, Some("src/train.rs:40")));
    assert_eq!((&*asked.waiter.name, &*asked.writer.name, asked.block), ("consume", "produce", None));
    assert_eq!((asked.ns, asked.times), (9_000 - 120, 1));
    let [needed] = &*device.stalls else { panic!("one time is told under one reason: {found}") };
    assert_eq!((&*needed.waiter.name, &needed.line), ("reduce", &None));
    let text = found.to_string();
    let said = "  Waits that were the program's own doing:\n    8.9 us: `consume` (src/train.rs:20, stream 1, submission 2) waited for `produce` (src/train.rs:10, stream 0, submission 1), because the program asked for that at src/train.rs:40\n";
    assert!(text.contains(said), "{text}");
}
