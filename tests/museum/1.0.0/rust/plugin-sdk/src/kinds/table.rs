//! Makes definitions, typed columns and rows of one table.

macro_rules! may_be_nonfinite {
    () => {
        false
    };
    (nonfinite) => {
        true
    };
}

macro_rules! kinds {
    ($(
        $(#[doc = $about:literal])+
        $kind:ident $level:ident {
            $( $(#[doc = $column_about:literal])+ $column:ident: $cell:ty, $unit:literal $(, $flag:ident)?; )*
        }
    )*) => {
        #[expect(non_camel_case_types, reason = "variants are the kinds' own names")]
        enum Index { $($kind),* }

        /// All kinds of contract version 1.0, in a fixed order.
        pub const KINDS: &[KindDef] = &[$( KindDef {
            name: Cow::Borrowed(stringify!($kind)),
            level: Level::$level,
            since: Cow::Borrowed("1.0"),
            about: Cow::Borrowed(concat!($($about),+)),
            columns: Cow::Borrowed(&[
                ColumnDef {
                    name: Cow::Borrowed("t_ns"),
                    element: <u64 as Cell>::ELEMENT,
                    list: false,
                    unit: Cow::Borrowed("ns"),
                    since: Cow::Borrowed("1.0"),
                    nonfinite: false,
                    about: Cow::Borrowed(" Time of the event since the run started, monotonic."),
                },
                $( ColumnDef {
                    name: Cow::Borrowed(stringify!($column)),
                    element: <$cell as Cell>::ELEMENT,
                    list: <$cell as Cell>::LIST,
                    unit: Cow::Borrowed($unit),
                    since: Cow::Borrowed("1.0"),
                    nonfinite: may_be_nonfinite!($($flag)?),
                    about: Cow::Borrowed(concat!($($column_about),+)),
                }, )*
            ]),
        } ),*];

        $(
            $(#[doc = $about])+
            pub mod $kind {
                #[allow(unused_imports, reason = "not every kind has symbols or lists")]
                use super::{Cell, Column, ColumnBuf, EventRow, Index, List, Sym};

                /// Name of the kind.
                pub const KIND: &str = stringify!($kind);
                /// Position of the kind in [`KINDS`](super::KINDS).
                pub const INDEX: usize = Index::$kind as usize;

                /// The kind's columns with their types.
                #[derive(Debug)]
                pub struct Columns {
                    /// Time of the event since the run started, monotonic, in ns.
                    pub t_ns: Column<u64>,
                    $( $(#[doc = $column_about])+ pub $column: Column<$cell>, )*
                }

                /// The kind's columns with their types.
                pub const COLUMNS: Columns = Columns {
                    t_ns: Column::new(KIND, "t_ns"),
                    $( $column: Column::new(KIND, stringify!($column)), )*
                };

                /// One event.
                #[derive(Clone, Copy, Debug, Default)]
                pub struct Row<'a> {
                    /// Time of the event since the run started, monotonic, in ns.
                    pub t_ns: <u64 as Cell>::Value<'a>,
                    $( $(#[doc = $column_about])+ pub $column: <$cell as Cell>::Value<'a>, )*
                }

                impl EventRow for Row<'_> {
                    const INDEX: usize = INDEX;
                    const HAS_LISTS: bool = false $(|| <$cell as Cell>::LIST)*;

                    fn widths(&self, visit: &mut dyn FnMut(usize, usize)) {
                        let mut index = 0;
                        $(
                            index += 1;
                            visit(index, <$cell as Cell>::width(self.$column));
                        )*
                    }

                    #[inline]
                    fn append(&self, columns: &mut [ColumnBuf]) {
                        let mut columns = columns.iter_mut();
                        if let Some(column) = columns.next() {
                            <u64 as Cell>::append(self.t_ns, column);
                        }
                        $(
                            if let Some(column) = columns.next() {
                                <$cell as Cell>::append(self.$column, column);
                            }
                        )*
                    }
                }
            }
        )*
    };
}

pub(super) use kinds;
pub(super) use may_be_nonfinite;
