//! The sessions of `kiln inspect`, `run` and `check` in docs/commands.md say what the command prints.

use std::path::Path;

use crate::folder::Folder;
use crate::outcome::{run, without_driver};
use crate::skip;

/// A command of the page, and what stands below it.
struct Session {
    words: Vec<String>,
    printed: String,
}

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    std::fs::read_to_string(path).unwrap()
}

/// The text between a fence of this kind and the next.
fn fenced<'a>(page: &'a str, fence: &'a str) -> impl Iterator<Item = &'a str> {
    let open = format!("```{fence}\n");
    let starts: Vec<usize> = page.match_indices(&open).map(|(at, _)| at + open.len()).collect();
    starts.into_iter().map(|at| page[at..].split("```").next().unwrap())
}

/// The commands of a block with what they print; a command may go on after a backslash.
fn sessions(block: &str) -> Vec<Session> {
    let whole = block.replace("\\\n", " ");
    let parts = format!("\n{whole}");
    let parts = parts.split("\n$ ").skip(1).map(|part| part.split_once('\n').unwrap_or((part, "")));
    parts
        .map(|(command, printed)| Session {
            words: command.split_whitespace().map(str::to_owned).collect(),
            printed: format!("{}\n", printed.trim_end()),
        })
        .collect()
}

#[test]
fn the_sessions_are_true() {
    if skip::without_nvrtc("the_sessions_are_true") {
        return;
    }
    let (folder, page) = (Folder::new(), page());
    let numbers: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    folder.floats("x.npy", &numbers);
    folder.floats("y.npy", &numbers);
    folder.write("saxpy.cu", fenced(&page, "cuda").next().unwrap());
    let mut checked = 0;
    for session in fenced(&page, "text").flat_map(sessions) {
        let words: Vec<&str> = session.words.iter().map(String::as_str).collect();
        match words[..] {
            ["cat", file] => drop(folder.write(file, &session.printed)),
            ["kiln", verb @ ("inspect" | "run" | "check"), ..] => {
                let mut command = without_driver(&words[1..]);
                command.current_dir(folder.path("")).env("XDG_CACHE_HOME", folder.path("cache"));
                let outcome = run(command);
                // The page is of a machine without a driver; here a variable hides the driver that there may be.
                let hidden = "KILN_LIBCUDA names a file that cannot be used";
                let outcome_text =
                    (outcome.stdout + &outcome.stderr).replace(hidden, "no NVIDIA driver was found");
                assert_eq!(outcome_text, session.printed, "{words:?}");
                let found = if outcome_text.ends_with("no findings\n") { Some(0) } else { Some(5) };
                assert!(verb != "check" || outcome.code == found, "{words:?} ended with {:?}", outcome.code);
                checked += 1;
            }
            _ => {}
        }
    }
    assert!(checked >= 9, "the page shows {checked} sessions");
}
