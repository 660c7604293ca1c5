//! A table that fits the width: numbers stay in one piece, and names and labels are broken only where the row has no room
//! for them.

use comfy_table::{CellAlignment, ContentArrangement, Table};

use super::style::Style;
use super::wrap;

/// Spaces before the first column.
const INDENT: usize = 2;
/// Spaces between two columns.
const GAP: usize = 2;
/// A piece of text longer than this is shortened where room is short.
const LONGEST_PIECE: usize = 16;
/// Ends a shortened piece.
const CUT: &str = "..";

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Names and labels: may be broken.
    Text,
    /// Units and states: in one piece, aligned left.
    Word,
    /// In one piece, aligned right.
    Number,
}

/// A column and its cells.
#[derive(Clone, Debug)]
struct Column {
    title: String,
    shape: Shape,
    /// Whether it is left out where room is short; the last such column goes first.
    spare: bool,
    cells: Vec<String>,
}

/// Rows of cells under titles.
#[derive(Clone, Debug, Default)]
pub(super) struct Grid {
    columns: Vec<Column>,
}

impl Grid {
    /// With another column of names or labels.
    pub(super) fn text(self, title: &str) -> Self {
        self.column(title, Shape::Text, false)
    }

    /// With another column of short words.
    pub(super) fn word(self, title: &str) -> Self {
        self.column(title, Shape::Word, false)
    }

    /// With another column of numbers.
    pub(super) fn number(self, title: &str) -> Self {
        self.column(title, Shape::Number, false)
    }

    /// With another column of numbers that is left out where room is short.
    pub(super) fn spare(self, title: &str) -> Self {
        self.column(title, Shape::Number, true)
    }

    fn column(mut self, title: &str, shape: Shape, spare: bool) -> Self {
        self.columns.push(Column {
            title: title.to_owned(),
            shape,
            spare,
            cells: Vec::new(),
        });
        self
    }

    /// Adds a row; cells beyond the columns are dropped.
    pub(super) fn push(&mut self, cells: impl IntoIterator<Item = String>) {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.cells.push(cell);
        }
    }

    /// Whether everything has room in one piece.
    pub(super) fn fits_whole(&self, style: Style) -> bool {
        let natural: usize = self.columns.iter().map(Column::natural).sum();
        frame(self.columns.len()) + natural <= usize::from(style.width)
    }

    /// Whether everything has room, with texts broken.
    fn fits(&self, style: Style) -> bool {
        let least: usize = self.columns.iter().map(Column::least).sum();
        frame(self.columns.len()) + least <= usize::from(style.width)
    }

    /// The table as text. Columns without any content are left out, and so are spare ones that have no room; a line below
    /// names the latter.
    pub(super) fn render(mut self, style: Style) -> String {
        self.columns
            .retain(|column| column.cells.iter().any(|cell| !cell.is_empty()));
        let mut left_out = Vec::new();
        while !self.fits(style) {
            let Some(last) = self.columns.iter().rposition(|column| column.spare) else {
                break;
            };
            left_out.insert(0, self.columns.remove(last).title);
        }
        let text = self.paint(style);
        if left_out.is_empty() {
            return text;
        }
        let note = format!("no room in {} columns for: {}", style.width, left_out.join(", "));
        text + &wrap(style, "  ", &note) + "\n"
    }

    fn paint(&self, style: Style) -> String {
        let widths = self.widths(usize::from(style.width));
        let fitted = |text: &str, index: usize| broken(text, widths[index]).join("\n");
        let mut table = Table::new();
        table
            .force_no_tty()
            .load_style(style.lines())
            .set_content_arrangement(ContentArrangement::Disabled);
        let titles = self.columns.iter().enumerate();
        table.set_header(titles.map(|(index, column)| fitted(&column.title, index)));
        let rows = self.columns.first().map_or(0, |column| column.cells.len());
        for row in 0..rows {
            let cells = self.columns.iter().enumerate();
            table.add_row(cells.map(|(index, column)| fitted(&column.cells[row], index)));
        }
        let last = self.columns.len().saturating_sub(1);
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((if index == 0 { 2 } else { 0 }, u16::from(index < last)));
            if self.columns[index].shape == Shape::Number {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
            .lines()
            .map(|line| line.trim_end().to_owned() + "\n")
            .collect()
    }

    /// Columns of text share what the others leave, so that the table has the fewest lines.
    fn widths(&self, width: usize) -> Vec<usize> {
        let natural: Vec<usize> = self.columns.iter().map(Column::natural).collect();
        let free = |index: &usize| self.columns[*index].shape == Shape::Text;
        let (texts, fixed): (Vec<usize>, Vec<usize>) = (0..natural.len()).partition(free);
        let used = frame(natural.len()) + fixed.iter().map(|index| natural[*index]).sum::<usize>();
        let room = width.saturating_sub(used);
        let mut widths = natural;
        if texts.iter().map(|index| widths[*index]).sum::<usize>() > room {
            let columns: Vec<Heights> = texts
                .iter()
                .map(|index| Heights::of(&self.columns[*index], room))
                .collect();
            for (index, width) in texts.into_iter().zip(share(&columns, room)) {
                widths[index] = width;
            }
        }
        widths
    }
}

impl Column {
    fn texts(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.title.as_str()).chain(self.cells.iter().map(String::as_str))
    }

    fn natural(&self) -> usize {
        self.texts().map(columns_of).max().unwrap_or(0)
    }

    /// Narrowest width: that of the longest piece of a text, unless that is very long.
    fn least(&self) -> usize {
        if self.shape != Shape::Text {
            return self.natural();
        }
        let words = self.texts().flat_map(|text| text.split(' '));
        let longest = words.flat_map(pieces).map(columns_of).max().unwrap_or(0);
        longest.min(LONGEST_PIECE)
    }
}

/// How many lines every cell of a column takes at each width.
struct Heights {
    least: usize,
    /// By width from `least` on, then by row.
    by_width: Vec<Vec<usize>>,
}

impl Heights {
    fn of(column: &Column, room: usize) -> Self {
        let least = column.least();
        let most = column.natural().min(room).max(least);
        let heights = |width| column.texts().map(|text| broken(text, width).len()).collect();
        Self {
            least,
            by_width: (least..=most).map(heights).collect(),
        }
    }
}

/// The widths with the fewest lines in all; of equal ones those that are widest on the left.
fn share(columns: &[Heights], room: usize) -> Vec<usize> {
    fn search(columns: &[Heights], room: usize, above: &[usize]) -> (usize, Vec<usize>) {
        let Some((column, others)) = columns.split_first() else {
            return (above.iter().sum(), Vec::new());
        };
        let reserved: usize = others.iter().map(|other| other.least).sum();
        let most = room.saturating_sub(reserved).max(column.least);
        let widths = column.least..=most.min(column.least + column.by_width.len() - 1);
        let candidates = widths.rev().map(|width| {
            let heights = &column.by_width[width - column.least];
            let higher: Vec<usize> = heights
                .iter()
                .enumerate()
                .map(|(row, height)| *height.max(above.get(row).unwrap_or(&1)))
                .collect();
            let (lines, mut rest) = search(others, room.saturating_sub(width), &higher);
            rest.insert(0, width);
            (lines, rest)
        });
        candidates
            .min_by_key(|(lines, _)| *lines)
            .expect("a column has at least one width")
    }
    search(columns, room, &[]).1
}

fn frame(columns: usize) -> usize {
    INDENT + GAP * columns.saturating_sub(1)
}

/// Columns of the terminal that a text takes at most: signs outside ASCII may take two.
fn columns_of(text: &str) -> usize {
    text.chars().map(|char| if char.is_ascii() { 1 } else { 2 }).sum()
}

/// Text in lines of the width: broken at spaces, a longer word into pieces, and a longer piece of that is cut.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    if columns_of(text) <= width {
        return vec![text.to_owned()];
    }
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if columns_of(word) <= width {
            add(&mut lines, " ", word, width);
            continue;
        }
        for (index, piece) in pieces(word).into_iter().enumerate() {
            let piece = if columns_of(piece) > width {
                cut(piece, width)
            } else {
                piece.to_owned()
            };
            add(&mut lines, if index == 0 { " " } else { "" }, &piece, width);
        }
    }
    lines
}

fn add(lines: &mut Vec<String>, space: &str, piece: &str, width: usize) {
    match lines.last_mut() {
        Some(line) if line.is_empty() => line.push_str(piece),
        Some(line) if columns_of(line) + space.len() + columns_of(piece) <= width => {
            line.push_str(space);
            line.push_str(piece);
        }
        _ => lines.push(piece.to_owned()),
    }
}

/// A word in pieces that end after `_`, `=`, and `-` before a letter: never within a number.
fn pieces(word: &str) -> Vec<&str> {
    let mut ends: Vec<usize> = word
        .char_indices()
        .zip(word.chars().skip(1))
        .filter(|((_, char), next)| matches!(char, '_' | '=') || *char == '-' && next.is_alphabetic())
        .map(|((index, _), _)| index + 1)
        .collect();
    ends.push(word.len());
    let mut start = 0;
    ends.into_iter()
        .map(|end| &word[std::mem::replace(&mut start, end)..end])
        .collect()
}

fn cut(piece: &str, width: usize) -> String {
    let mut shown = String::new();
    for char in piece.chars() {
        let char = char.encode_utf8(&mut [0; 4]).to_owned();
        if columns_of(&shown) + columns_of(&char) + CUT.len() > width {
            break;
        }
        shown += &char;
    }
    shown + CUT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let mut grid = Grid::default()
            .text("name")
            .text("of")
            .number("value")
            .spare("min")
            .spare("max")
            .word("unit");
        for (name, of) in [
            ("latency_of_a_long_name", "phase=decode peak=measured"),
            ("a", ""),
        ] {
            let numbers = ["1.234e-5", "-1,234", "123,456"].map(str::to_owned);
            grid.push(
                [name.to_owned(), of.to_owned()]
                    .into_iter()
                    .chain(numbers)
                    .chain([String::new()]),
            );
        }
        grid
    }

    fn at(width: u16) -> String {
        grid().render(Style {
            width,
            ..Style::PLAIN
        })
    }

    #[test]
    fn text_in_one_piece_where_there_is_room() {
        assert_eq!(
            at(79),
            "  name                    of                             value     min      max\n\
             -------------------------------------------------------------------------------\n  \
             latency_of_a_long_name  phase=decode peak=measured  1.234e-5  -1,234  123,456\n  \
             a                                                   1.234e-5  -1,234  123,456\n"
        );
    }

    #[test]
    fn labels_break_at_spaces_before_names_do() {
        assert_eq!(
            at(78),
            "  name                    of                value     min      max\n\
             ------------------------------------------------------------------\n  \
             latency_of_a_long_name  phase=decode   1.234e-5  -1,234  123,456\n  \
             \u{20}                       peak=measured\n  \
             a                                      1.234e-5  -1,234  123,456\n"
        );
    }

    #[test]
    fn spare_columns_go_where_nothing_else_helps_and_numbers_never_break() {
        let text = at(30);
        assert!(
            text.ends_with("no room in 30 columns for:\n  min, max\n"),
            "{text}"
        );
        assert_eq!(text.matches("1.234e-5").count(), 2, "{text}");
        assert!(text.lines().all(|line| line.len() <= 30), "{text}");
    }

    #[test]
    fn breaks_come_at_spaces_then_after_underscores_and_a_piece_too_long_is_cut() {
        assert_eq!(broken("a bc def", 4), ["a bc", "def"]);
        assert_eq!(broken("x ab_cd_ef", 6), ["x ab_", "cd_ef"]);
        assert_eq!(broken("kv-cache=1e-5", 9), ["kv-cache=", "1e-5"]);
        assert_eq!(broken("kv-cache", 6), ["kv-", "cache"]);
        assert_eq!(broken("abcdefgh", 6), ["abcd.."]);
        assert_eq!(broken("你好你好", 6), ["你好.."]);
        assert_eq!(broken("", 6), [""]);
    }
}
