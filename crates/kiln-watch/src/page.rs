//! The page: one HTML document, with its styles and scripts.

const HTML: &str = include_str!("page/page.html");
const STYLES: &str = include_str!("page/page.css");
const SCRIPTS: [&str; 10] = [
    include_str!("page/words.js"),
    include_str!("page/server.js"),
    include_str!("page/view.js"),
    include_str!("page/timeline.js"),
    include_str!("page/memory.js"),
    include_str!("page/blocks.js"),
    include_str!("page/ranks.js"),
    include_str!("page/panels.js"),
    include_str!("page/keys.js"),
    include_str!("page/start.js"),
];

/// The page's icon.
pub(crate) const ICON: &str = include_str!("page/icon.svg");

/// The page. Its styles and scripts bear the nonce, without which a browser does not take them.
pub(crate) fn page(nonce: &str) -> String {
    let scripts = SCRIPTS.join("\n");
    HTML.replace("NONCE", nonce).replacen("/* styles */", STYLES, 1).replacen("/* scripts */", &scripts, 1)
}
