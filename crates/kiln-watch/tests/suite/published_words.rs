//! The words that the book uses for the page are on it.

use crate::client::Served;
use crate::samples::{Recording, planted};

/// The page of the book.
const PAGE: &str = include_str!("../../../../docs/book/src/watch.md");

/// The rows of the table that begins so, by their first two cells.
fn rows(head: &str) -> Vec<(&'static str, &'static str)> {
    let rows = PAGE.lines().skip_while(|line| !line.starts_with(head)).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split_once('|').unwrap())
        .map(|(one, two)| (one.trim(), two.trim()))
        .collect()
}

#[test]
fn views_and_keys_of_the_book_are_those_of_the_page() {
    let recording = Recording::of(&planted(), 3);
    let page = Served::new(&recording.0).ask("").body;
    let views = rows("| view | shows |");
    assert!(views.len() >= 5, "{views:?}");
    for (view, _) in views {
        assert!(page.contains(&format!(" {view}</button>")), "the view {view}");
    }
    let keys = rows("| key | does |");
    assert!(keys.len() >= 9, "{keys:?}");
    for (keys, does) in keys {
        // Each key stands in the page's list of keys, or is told by its action there.
        let names = keys.split('`').skip(1).step_by(2);
        for key in names {
            let is_told = [format!("\"{key}"), format!("{key}\""), format!(" {key} "), format!("{key}:")];
            assert!(is_told.iter().any(|told| page.contains(told)), "{key}, which {does}");
        }
    }
    for words in ["Go to it", "(submitted)", "Post-mortem of device", "To repeat it: "] {
        assert!(page.contains(words), "{words}");
    }
}
