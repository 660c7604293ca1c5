//! The macro that declares the columns of a kind once, for the subscription and for reading.

/// Declares a struct with the columns that a collector reads of one kind, with `want()`, what to subscribe to, and
/// `resolve()`, which finds the columns in the answer. The kind is a module with `KIND` and `COLUMNS`, such as those of
/// [`kinds`](crate::kinds); the fields are named like its columns. Columns under `optional` are `None` where the host does
/// not have them. A field `kind` holds the [`Batch::kind`](crate::Batch::kind).
///
/// ```
/// use lm_bench_plugin::kinds::step;
/// use lm_bench_plugin::{Fault, Resolved, Subscription, columns};
///
/// columns! {
///     /// What is read of a step.
///     struct Columns of step {
///         phase: u8,
///         host_ns: u64,
///     } optional {
///         graph: u8,
///     }
/// }
///
/// fn subscribe() -> Subscription {
///     Subscription::new([Columns::want()])
/// }
///
/// fn new(resolved: &Resolved) -> Result<Columns, Fault> {
///     Columns::resolve(resolved)
/// }
/// # assert_eq!(subscribe().wants[0].columns, ["phase", "host_ns"]);
/// # assert!(new(&Resolved::default()).is_err());
/// ```
#[macro_export]
macro_rules! columns {
    (
        $(#[$about:meta])*
        $visible:vis struct $name:ident of $kind:ident {
            $( $column:ident: $cell:ty ),* $(,)?
        } $( optional {
            $( $optional:ident: $optional_cell:ty ),* $(,)?
        } )?
    ) => {
        $(#[$about])*
        $visible struct $name {
            $visible kind: u16,
            $( $visible $column: $crate::Col<$cell>, )*
            $($( $visible $optional: ::core::option::Option<$crate::Col<$optional_cell>>, )*)?
        }

        impl $name {
            /// What to subscribe to.
            $visible fn want() -> $crate::Want {
                $crate::Want::kind($kind::KIND)
                    $( .column($kind::COLUMNS.$column) )*
                    $($( .optional($kind::COLUMNS.$optional) )*)?
            }

            /// Finds the columns in the answer to a subscription.
            $visible fn resolve(resolved: &$crate::Resolved) -> ::core::result::Result<Self, $crate::Fault> {
                let kind = resolved.kind($kind::KIND)?;
                Ok(Self {
                    kind: kind.id,
                    $( $column: kind.column($kind::COLUMNS.$column)?, )*
                    $($( $optional: kind.optional($kind::COLUMNS.$optional), )*)?
                })
            }
        }
    };
}
