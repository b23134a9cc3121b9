//! The frame of the page: policy, styles and scripts around a body and its data.

use crate::packed::{digest, packed};
use minijinja::{Environment, context};
use std::sync::LazyLock;

/// The library and our script. The script is in parts, which share one scope. Its comments
/// and indentation are removed.
const LIBRARY: &str = include_str!("../assets/plot.min.js");
const PARTS: [&str; 10] = [
    include_str!("../script/numbers.js"),
    include_str!("../script/state.js"),
    include_str!("../script/draw.js"),
    include_str!("../script/forest.js"),
    include_str!("../script/cells.js"),
    include_str!("../script/sweeps.js"),
    include_str!("../script/capacity.js"),
    include_str!("../script/tables.js"),
    include_str!("../script/download.js"),
    include_str!("../script/show.js"),
];
const LOADER: &str = include_str!("../script/loader.js");
const STYLE: &str = include_str!("../templates/page.css");

/// The script, packed, and its digest: the same for every page.
static CODE: LazyLock<(String, String)> = LazyLock::new(|| {
    let lines = PARTS.iter().flat_map(|part| part.lines()).map(str::trim_start);
    let lines: Vec<&str> =
        lines.filter(|line| !line.is_empty() && !line.starts_with("//")).collect();
    let code = format!("{LIBRARY}\n(() => {{\n\"use strict\";\n{}\n}})();\n", lines.join("\n"));
    (packed(&code), digest(&code))
});

/// A source of newer bodies and data, for a page that follows a race.
#[derive(Clone, Copy, Debug)]
pub struct Feed<'a> {
    /// URL of a stream of server-sent events on the same server. The data of each event is a JSON object
    /// with `body` (as from [`crate::body`]) and `data` (as from [`crate::data`], but as an object).
    pub url: &'a str,
}

/// Joins the parts of a page. `title` is not yet escaped; `body` is HTML, `data` is JSON.
pub fn shell(title: &str, body: &str, data: &str, feed: Option<Feed<'_>>) -> String {
    let mut templates = Environment::new();
    templates
        .add_template("page.html", include_str!("../templates/page.html"))
        .expect("the template is part of the program and tested");
    let (code, code_digest) = &*CODE;
    let page = context! {
        title, body, code,
        style => STYLE,
        loader => LOADER,
        scripts => format!("{} {code_digest}", digest(LOADER)),
        data => packed(data),
        feed => feed.map(|feed| feed.url),
    };
    templates
        .get_template("page.html")
        .and_then(|template| template.render(page))
        .expect("the template only uses these values")
}
