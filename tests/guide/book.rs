//! The pages as a book: links, the table of contents, and what mdBook says.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::root;

/// Names the program.
pub(crate) const MDBOOK: &str = "LM_BENCH_TEST_MDBOOK";

/// All pages in a folder and below.
pub(crate) fn pages(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder of pages");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => pages(&path),
            false => vec![path],
        })
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect()
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The lines of a page that are no code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

fn links(text: &str) -> Vec<&str> {
    let after = prose(text).flat_map(|line| line.split("](").skip(1));
    after
        .filter_map(|rest| rest.split_once(')'))
        .map(|(link, _)| link)
        .collect()
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> Vec<String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    let anchor = |line: &str| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

/// Each link between files of the repository leads to a file, and to a heading where it names one.
pub(crate) fn links_lead_somewhere() -> Result<(), String> {
    let mut found = pages(&root().join("docs"));
    found.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root().join(name)),
    );
    let mut broken = Vec::new();
    for page in &found {
        let text = read(page)?;
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => page.clone(),
                path => page.with_file_name("").join(path),
            };
            let leads = target.exists()
                && (anchor.is_empty() || anchors(&read(&target)?).iter().any(|a| a == anchor));
            if !leads {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    match broken.is_empty() {
        true => Ok(()),
        false => Err(format!("links that lead nowhere:\n{}", broken.join("\n"))),
    }
}

/// A page that the table of contents does not name is not in the book.
pub(crate) fn summary_lists_each_page() -> Result<(), String> {
    let docs = root().join("docs");
    let summary = docs.join("SUMMARY.md");
    let text = read(&summary)?;
    let listed: Vec<PathBuf> = links(&text).into_iter().map(|link| docs.join(link)).collect();
    let missing: Vec<String> = pages(&docs)
        .into_iter()
        .filter(|page| *page != summary && !listed.contains(page))
        .map(|page| page.display().to_string())
        .collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(format!("docs/SUMMARY.md does not list {}", missing.join(", "))),
    }
}

/// mdBook makes the book and warns of nothing.
pub(crate) fn builds() -> Result<(), String> {
    let out = tempfile::tempdir().map_err(|error| error.to_string())?;
    let program = std::env::var_os(MDBOOK).ok_or("no mdbook")?;
    let output = Command::new(program)
        .arg("build")
        .arg(root().join("docs"))
        .arg("--dest-dir")
        .arg(out.path())
        .output()
        .map_err(|error| format!("mdbook: {error}"))?;
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    let warned = ["WARN", "ERROR"].iter().any(|level| said.contains(level));
    let whole = out.path().join("plugins/first-collector.html").exists();
    match output.status.success() && !warned && whole {
        true => Ok(()),
        false => Err(said),
    }
}
