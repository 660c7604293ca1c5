//! The evil corpus: plugins that misbehave, each beside well-behaved ones on one replay of one recording. A case is a test of its
//! own; README.md lists them all.
#![expect(
    clippy::print_stderr,
    reason = "this file brings its own test harness, which captures nothing"
)]

mod case;
mod files;
mod native;
mod readme;
mod reports;
mod stage;
mod wasm;
#[path = "../doors/written.rs"]
#[expect(dead_code, reason = "the tests of the doors use the rest of it")]
mod written;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let cases: Vec<case::Case> = [native::cases(), reports::cases(), wasm::cases(), files::cases()]
        .into_iter()
        .flatten()
        .collect();
    eprintln!("{} misbehaviours", cases.len());
    let page = readme::page(&cases);
    let mut trials: Vec<Trial> = cases.into_iter().map(case::Case::trial).collect();
    trials.push(Trial::test("the_page_lists_all_cases", move || {
        Ok(readme::check(&page)?)
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
