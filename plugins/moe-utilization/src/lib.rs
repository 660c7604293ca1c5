//! smoke
use lm_bench_plugin::*;
#[derive(serde::Deserialize, schemars::JsonSchema)] #[serde(default, deny_unknown_fields)] #[derive(Default)]
struct Config { a: u32 }
struct C { n: u64, col: Col<u32>, id: u16 }
const M: MetricDef = MetricDef::counter("tokens");
impl Collector for C {
    const INFO: Info = Info { id: "moe-utilization", version: env!("CARGO_PKG_VERSION"), about: "x", license: "MIT OR Apache-2.0" };
    const METRICS: &'static [MetricDef] = &[M];
    type Config = Config;
    fn subscribe(_c: &Config, _r: &RunInfo) -> Result<Subscription, Fault> { Ok(Subscription::new([Want::kind(kinds::moe_route::KIND).column(kinds::moe_route::COLUMNS.tokens)])) }
    fn new(c: Config, _r: &RunInfo, r: &Resolved) -> Result<Self, Fault> { let k = r.kind(kinds::moe_route::KIND)?; Ok(C { n: u64::from(c.a), col: k.column(kinds::moe_route::COLUMNS.tokens)?, id: k.id }) }
    fn on_batch(&mut self, b: &Batch<'_>, _cx: &mut Cx<'_>) -> Result<(), Fault> { if b.kind == self.id { for t in b.get(self.col) { self.n += u64::from(*t); } } Ok(()) }
    fn checkpoint(&mut self, s: &mut Sink<'_>) -> Result<(), Fault> { s.counter(&M, &[], self.n); Ok(()) }
}
export!(C);
