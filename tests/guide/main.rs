//! The author's guide, executed: each page of `docs/plugins/` is followed in a scratch folder as a reader would. Its files
//! are written, its commands run, and what it shows of their output is compared with what they print.
//!
//! What a page may say of a block of code, in a comment before it (see `page.rs`):
//!
//! * `<!-- file PATH -->`: the block is written to this file
//! * `<!-- from PATH -->`: the block quotes a file of a new project, or of this repository
//! * `<!-- not run: WHY -->`: neither; to be used where nothing else is possible
//!
//! Blocks of the language `console` are run. `…` stands for any text in a line, a line `…` for any lines.
//! `<!-- after PAGE -->` starts where another page ends, `<!-- needs VARIABLE -->` skips a page whose tools are not there;
//! `tests/all.sh` fetches the tools and sets the variables.
#![expect(
    clippy::print_stderr,
    reason = "this file brings its own test harness, which captures nothing"
)]

mod book;
mod console;
mod page;
mod reader;
mod snippets;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};

use page::Page;
use reader::Reader;

/// The repository.
fn root() -> PathBuf {
    let host = Path::new(env!("CARGO_MANIFEST_DIR"));
    host.parent().expect("the folder above the host's").to_owned()
}

fn skipped(name: &str, variable: &str) -> bool {
    let missing = std::env::var_os(variable).is_none();
    if missing {
        eprintln!("SKIPPED {name}: {variable} is not set; run tests/all.sh");
    }
    missing
}

fn page_trial(name: String, reader: &Arc<Reader>) -> Trial {
    let page = Page::read(&root().join("docs/plugins").join(&name));
    let needs = page.as_ref().ok().and_then(|page| page.needs.clone());
    let ignored = needs.is_some_and(|variable| skipped(&name, &variable));
    let reader = Arc::clone(reader);
    let trial = format!("page_{}", name.trim_end_matches(".md"));
    Trial::test(trial, move || {
        page?;
        Ok(reader.follow(&name).map(drop)?)
    })
    .with_ignored_flag(ignored)
}

fn main() {
    let reader = Arc::new(Reader::default());
    let mut trials = vec![
        Trial::test("links_lead_somewhere", || Ok(book::links_lead_somewhere()?)),
        Trial::test("summary_lists_each_page", || Ok(book::summary_lists_each_page()?)),
        Trial::test("book_builds_without_a_warning", || Ok(book::builds()?))
            .with_ignored_flag(skipped("book_builds_without_a_warning", book::MDBOOK)),
        Trial::test("differences_are_found", || Ok(console::differences_are_found()?)),
        Trial::test("unmarked_blocks_are_refused", || {
            Ok(page::unmarked_blocks_are_refused()?)
        }),
        Trial::test("snippets_do_what_they_say", || {
            snippets::do_what_they_say();
            Ok(())
        }),
    ];
    let mut pages = book::pages(&root().join("docs/plugins"));
    pages.sort();
    for page in pages {
        let name = page.file_name().expect("a file").to_string_lossy().into_owned();
        trials.push(page_trial(name, &reader));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
