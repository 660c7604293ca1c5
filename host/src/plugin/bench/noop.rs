//! A collector that does nothing: what the host's own side of a delivery costs.

use lm_bench_plugin::{Batch, Resolved, Subscription, Want};

use crate::clock::Clock;
use crate::events::KindTable;
use crate::plugin::failure::Failure;
use crate::plugin::gather::Report;
use crate::plugin::limits::Limits;
use crate::plugin::log::LogBook;
use crate::plugin::session::{HostSide, Session};

pub(super) struct Noop {
    subscription: Subscription,
    host: HostSide,
    limits: Limits,
}

impl Noop {
    /// One that takes all columns of some kinds.
    pub(super) fn new(kinds: &[usize], table: &KindTable, limits: &Limits) -> Self {
        let wants = kinds.iter().filter_map(|kind| table.get(*kind)).map(|kind| Want {
            columns: kind
                .columns
                .iter()
                .map(|column| column.name.to_string())
                .collect(),
            ..Want::kind(&kind.name)
        });
        Self {
            subscription: Subscription::new(wants),
            host: HostSide::new(LogBook::new(limits, Clock::start())),
            limits: limits.clone(),
        }
    }
}

impl Session for Noop {
    fn describe(&mut self) -> Result<String, Failure> {
        Ok("{}".to_owned())
    }

    fn subscribe(&mut self, _: &str, _: &str) -> Result<Subscription, Failure> {
        Ok(self.subscription.clone())
    }

    fn open(&mut self, _: &str, _: &str, _: &Resolved) -> Result<(), Failure> {
        Ok(())
    }

    fn on_batch(&mut self, batch: &Batch<'_>) -> Result<(), Failure> {
        std::hint::black_box(batch);
        Ok(())
    }

    fn lost_after(&mut self, _: u16, _: u64) -> Result<(), Failure> {
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<Report, Failure> {
        Ok(Report::new(&self.limits))
    }

    fn finish(&mut self) -> Result<Report, Failure> {
        self.checkpoint()
    }

    fn host(&mut self) -> &mut HostSide {
        &mut self.host
    }

    fn peak_memory(&self) -> Option<u64> {
        None
    }
}
