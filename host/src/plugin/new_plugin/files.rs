//! The files of a new project: where each goes, and what stands in it.

/// A path below the project's folder, and the text with placeholders.
pub(super) type File = (&'static str, &'static str);

macro_rules! files {
    ($language:literal: $($path:literal = $template:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("templates/", $language, "/", $template)))),*]
    };
}

pub(super) const RUST: &[File] = files! {
    "rust":
    "Cargo.toml" = "Cargo.toml.in",
    "src/lib.rs" = "src/lib.rs",
    "README.md" = "README.md",
    ".gitignore" = "gitignore",
};

pub(super) const C: &[File] = files! {
    "c":
    "plugin.toml" = "plugin.toml",
    "src/collector.c" = "src/collector.c",
    "src/lm_bench_plugin.h" = "../../../../../../plugin-sdk/include/lm_bench_plugin.h",
    "tests/collector_test.c" = "tests/collector_test.c",
    "Makefile" = "Makefile",
    "README.md" = "README.md",
    ".gitignore" = "gitignore",
};

pub(super) const JS: &[File] = files! {
    "js":
    "plugin.toml" = "plugin.toml",
    "package.json" = "package.json",
    "src/collector.js" = "src/collector.js",
    "test/collector.test.js" = "test/collector.test.js",
    "test/host.js" = "test/host.js",
    "README.md" = "README.md",
    ".gitignore" = "gitignore",
};

pub(super) const PYTHON: &[File] = files! {
    "python":
    "plugin.toml" = "plugin.toml",
    "requirements.txt" = "requirements.txt",
    "src/collector.py" = "src/collector.py",
    "tests/test_collector.py" = "tests/test_collector.py",
    "README.md" = "README.md",
    ".gitignore" = "gitignore",
};
