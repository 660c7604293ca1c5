//! Reads the declarations of `src/lib.rs`: constants, modules of constants and `#[repr(C)]` structs, each with its
//! documentation. What it does not know it refuses, so that nothing of the contract is left out in silence.

/// A constant.
#[derive(Debug)]
pub(crate) struct Constant {
    pub(crate) docs: Vec<String>,
    pub(crate) name: String,
    /// The value as Rust writes it.
    pub(crate) value: String,
}

/// A field of a struct.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) docs: Vec<String>,
    pub(crate) name: String,
    /// The type as Rust writes it, on one line.
    pub(crate) ty: String,
}

/// What the contract consists of, in its order.
#[derive(Debug)]
pub(crate) enum Declaration {
    Constant(Constant),
    /// Constants with a common prefix.
    Module {
        docs: Vec<String>,
        name: String,
        constants: Vec<Constant>,
    },
    Struct {
        docs: Vec<String>,
        name: String,
        fields: Vec<Field>,
    },
}

/// Lines of the source, with what was said just before the current one.
struct Reader<'a> {
    lines: std::iter::Peekable<std::str::Lines<'a>>,
    docs: Vec<String>,
    attributes: String,
}

/// All declarations of the contract.
pub(crate) fn read(source: &str) -> Vec<Declaration> {
    let mut reader = Reader {
        lines: source.lines().peekable(),
        docs: Vec::new(),
        attributes: String::new(),
    };
    let mut found = Vec::new();
    while let Some(line) = reader.lines.next() {
        reader.declaration(line, &mut found);
    }
    found
}

impl Reader<'_> {
    fn declaration(&mut self, line: &str, found: &mut Vec<Declaration>) {
        if self.said(line) {
            return;
        }
        let docs = std::mem::take(&mut self.docs);
        let attributes = std::mem::take(&mut self.attributes);
        if let Some(rest) = line.strip_prefix("pub const ") {
            found.push(Declaration::Constant(constant(docs, rest)));
        } else if let Some(name) = between(line, "pub mod ", " {") {
            let (name, constants) = (name.to_owned(), self.constants());
            found.push(Declaration::Module {
                docs,
                name,
                constants,
            });
        } else if let Some(name) = between(line, "pub struct ", " {") {
            let fields = self.fields();
            // The root module of plugins in Rust is no part of the contract in C.
            if !attributes.contains("StableAbi") {
                assert!(attributes.contains("repr(C)"), "{name} has no layout");
                let name = name.to_owned();
                found.push(Declaration::Struct { docs, name, fields });
            }
        } else if line.starts_with("impl ") || line.starts_with("unsafe impl ") {
            // What Rust adds to the data.
            if !line.ends_with('}') {
                self.lines.by_ref().find(|line| *line == "}");
            }
        } else {
            assert!(
                line.is_empty() || line.starts_with("use "),
                "not understood: {line}"
            );
        }
    }

    /// Takes documentation, an attribute or a comment; whether the line was one.
    fn said(&mut self, line: &str) -> bool {
        let line = line.trim_start();
        if let Some(text) = line.strip_prefix("///") {
            self.docs.push(text.trim().to_owned());
        } else if line.starts_with("#[") {
            assert!(line.ends_with(']'), "an attribute of several lines: {line}");
            self.attributes += line;
        } else if line.starts_with("#![") {
            if !line.ends_with(']') {
                self.lines.by_ref().find(|line| *line == ")]");
            }
        } else if !line.starts_with("//") {
            return false;
        }
        true
    }

    fn constants(&mut self) -> Vec<Constant> {
        let mut found = Vec::new();
        while let Some(line) = self.lines.next() {
            if line == "}" {
                return found;
            }
            if !self.said(line) {
                let rest = line.trim_start().strip_prefix("pub const ");
                let rest = rest.unwrap_or_else(|| panic!("not understood: {line}"));
                found.push(constant(std::mem::take(&mut self.docs), rest));
            }
        }
        panic!("a module without an end")
    }

    fn fields(&mut self) -> Vec<Field> {
        let mut found = Vec::new();
        while let Some(line) = self.lines.next() {
            if line == "}" {
                return found;
            }
            if self.said(line) {
                continue;
            }
            let mut text = line.trim().to_owned();
            while depth(&text) > 0 || !text.ends_with(',') {
                let next = self.lines.next().expect("the rest of a field");
                text = text + " " + next.trim();
            }
            let text = text.strip_prefix("pub ").expect("a public field");
            let (name, ty) = text.trim_end_matches(',').split_once(':').expect("a field");
            found.push(Field {
                docs: std::mem::take(&mut self.docs),
                name: name.to_owned(),
                ty: ty.trim().to_owned(),
            });
            self.attributes.clear();
        }
        panic!("a struct without an end")
    }
}

/// Parentheses that are open at the end of a text.
fn depth(text: &str) -> usize {
    text.matches('(').count() - text.matches(')').count()
}

fn between<'a>(line: &'a str, start: &str, end: &str) -> Option<&'a str> {
    line.strip_prefix(start)?.strip_suffix(end)
}

/// `NAME: TYPE = VALUE;`
fn constant(docs: Vec<String>, text: &str) -> Constant {
    let (name, rest) = text.split_once(": ").expect("a constant with a type");
    let (_, value) = rest.split_once(" = ").expect("a constant with a value");
    Constant {
        docs,
        name: name.to_owned(),
        value: value.strip_suffix(';').expect("a whole line").to_owned(),
    }
}
