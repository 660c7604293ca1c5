//! What the guide shows of the SDK and no project has, compiled.

use lm_bench_plugin::kinds::moe_route;
use lm_bench_plugin::{Fault, List, Sampling, Subscription, Want, columns};

columns! {
    struct Columns of moe_route {
        counts: List<u32>,
    } optional {
        prob_sum: List<f32>,
    }
}

// The guide's layout, not that of the formatter.
#[rustfmt::skip]
fn subscribe() -> Result<Subscription, Fault> {
    let want = Want::kind(moe_route::KIND)
        .column(moe_route::COLUMNS.counts)        // without it the collector cannot run
        .optional(moe_route::COLUMNS.prob_sum)    // `None` in `new` where the program does not have it
        .sampling(Sampling::EveryNth(4));         // the first of each 4 rows
    Ok(Subscription::new([want]).max_rows(512))   // batches of at most 512 rows; 4,096 if not said
}

/// The two ways of the guide to name columns want the same ones.
pub(crate) fn do_what_they_say() {
    let subscription = subscribe().expect("a subscription");
    assert_eq!(subscription.max_rows, 512);
    let [want] = &subscription.wants[..] else {
        panic!("{subscription:?}");
    };
    let by_macro = Columns::want();
    assert_eq!((&want.kind, &want.columns), (&by_macro.kind, &by_macro.columns));
    assert_eq!(want.optional, by_macro.optional);
}
