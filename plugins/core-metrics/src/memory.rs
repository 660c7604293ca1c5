//! How much memory is used.

use lm_bench_plugin::kinds::memory;
use lm_bench_plugin::math::Moments;
use lm_bench_plugin::{
    Batch, Col, Collector, Cx, Direction, Fault, Info, MetricDef, Resolved, RunInfo, Sink, Subscription,
    columns,
};

use crate::NoConfig;

const fn bytes(name: &'static str) -> MetricDef {
    MetricDef::gauge(name, "By").better(Direction::Lower)
}

const RSS: MetricDef = bytes("peak_rss_bytes")
    .formula("max of memory.rss over samples")
    .about("Highest resident set size of the process at a sample; pages shared with others count in full.");

const PSS: MetricDef = bytes("peak_pss_bytes")
    .formula("max of memory.pss over samples")
    .about("Highest proportional set size of the process at a sample; shared pages count in part.");

const DEVICE: MetricDef = bytes("peak_device_memory_bytes")
    .formula("max of memory.device_peak and memory.device_used over samples")
    .about("Most bytes in use on the device at any time.");

const RESERVED: MetricDef = bytes("peak_device_reserved_bytes")
    .formula("max of memory.device_reserved over samples")
    .about("Most bytes that the allocator held on the device at a sample.");

const FRAGMENTATION: MetricDef = MetricDef::gauge("device_memory_fragmentation_ratio", "1")
    .better(Direction::Lower)
    .labels(&["stat"])
    .formula("1 - device_used / device_reserved of each sample with device_reserved > 0; stat=mean: mean, stat=max: largest")
    .about("Share of the memory held on the device that nothing uses.");

const LARGEST_FREE: MetricDef = MetricDef::gauge("device_largest_free_min_bytes", "By")
    .better(Direction::Higher)
    .formula("min of memory.device_largest_free over samples with device_reserved > 0")
    .about("The largest block that could still be allocated on the device when it was scarcest.");

const H2D: MetricDef = MetricDef::gauge("copy_host_to_device_bytes", "By")
    .better(Direction::Lower)
    .formula("sum of memory.h2d_bytes over samples")
    .about("Bytes copied to the device in the measured part.");

const D2H: MetricDef = MetricDef::gauge("copy_device_to_host_bytes", "By")
    .better(Direction::Lower)
    .formula("sum of memory.d2h_bytes over samples")
    .about("Bytes copied from the device in the measured part.");

const COPY_TIME: MetricDef = MetricDef::gauge("copy_time_ms", "ms")
    .better(Direction::Lower)
    .formula("sum of memory.copy_ns / 1e6 over samples")
    .about("Time spent copying between host and device in the measured part.");

const NO_SAMPLE: &str = "no memory sample was recorded";
const NO_DEVICE: &str = "no device";

columns! {
    struct Columns of memory {
        device_reserved: u64,
        device_used: u64,
        device_peak: u64,
        device_largest_free: u64,
        rss: u64,
        pss: u64,
        h2d_bytes: u64,
        d2h_bytes: u64,
        copy_ns: u64,
    }
}

/// Highest values of the columns.
#[derive(Clone, Copy, Debug, Default)]
struct Peaks {
    rss: u64,
    pss: u64,
    device: u64,
    reserved: u64,
}

/// Sums over samples.
#[derive(Clone, Copy, Debug, Default)]
struct Copied {
    h2d: u64,
    d2h: u64,
    copy_ns: u64,
}

/// The collector.
pub struct Memory {
    columns: Columns,
    samples: u64,
    peaks: Peaks,
    copied: Copied,
    largest_free: Option<u64>,
    fragmentation: Moments,
    fragmentation_max: f64,
    contradictions: u64,
}

impl Collector for Memory {
    const INFO: Info = Info {
        id: "memory",
        version: env!("CARGO_PKG_VERSION"),
        about: "Peak memory of process and device, fragmentation and copies",
        license: "MIT OR Apache-2.0",
    };
    const METRICS: &'static [MetricDef] = &[
        RSS,
        PSS,
        DEVICE,
        RESERVED,
        FRAGMENTATION,
        LARGEST_FREE,
        H2D,
        D2H,
        COPY_TIME,
    ];
    type Config = NoConfig;

    fn subscribe(_: &NoConfig, _: &RunInfo) -> Result<Subscription, Fault> {
        Ok(Subscription::new([Columns::want()]))
    }

    fn new(_: NoConfig, _: &RunInfo, resolved: &Resolved) -> Result<Self, Fault> {
        Ok(Self {
            columns: Columns::resolve(resolved)?,
            samples: 0,
            peaks: Peaks::default(),
            copied: Copied::default(),
            largest_free: None,
            fragmentation: Moments::default(),
            fragmentation_max: 0.0,
            contradictions: 0,
        })
    }

    fn on_batch(&mut self, batch: &Batch<'_>, _: &mut Cx<'_>) -> Result<(), Fault> {
        if batch.kind != self.columns.kind {
            return Ok(());
        }
        let most = |column: Col<u64>| batch.get(column).iter().copied().max().unwrap_or(0);
        let (of, had) = (&self.columns, self.peaks);
        self.samples += u64::from(batch.rows);
        self.peaks = Peaks {
            rss: had.rss.max(most(of.rss)),
            pss: had.pss.max(most(of.pss)),
            device: had.device.max(most(of.device_peak)).max(most(of.device_used)),
            reserved: had.reserved.max(most(of.device_reserved)),
        };
        let sum = |column: Col<u64>, before: u64| {
            batch.get(column).iter().fold(before, |a, &b| a.saturating_add(b))
        };
        self.copied = Copied {
            h2d: sum(of.h2d_bytes, self.copied.h2d),
            d2h: sum(of.d2h_bytes, self.copied.d2h),
            copy_ns: sum(of.copy_ns, self.copied.copy_ns),
        };
        let (reserved, used) = (batch.get(of.device_reserved), batch.get(of.device_used));
        let largest_free = batch.get(of.device_largest_free);
        for row in (0..batch.len()).filter(|&row| reserved[row] > 0) {
            let free = largest_free[row];
            self.largest_free = Some(self.largest_free.map_or(free, |least| least.min(free)));
            if used[row] > reserved[row] {
                self.contradictions += 1;
                continue;
            }
            let fragmentation = 1.0 - used[row] as f64 / reserved[row] as f64;
            self.fragmentation.add(fragmentation);
            self.fragmentation_max = self.fragmentation_max.max(fragmentation);
        }
        Ok(())
    }

    fn checkpoint(&mut self, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let peaks = self.peaks;
        let known = |bytes: u64, reason: &'static str| match bytes {
            _ if self.samples == 0 => Err(NO_SAMPLE),
            0 => Err(reason),
            bytes => Ok(bytes as f64),
        };
        sink.value(
            &RSS,
            &[],
            self.samples,
            known(peaks.rss, "the system does not tell it"),
        );
        sink.value(
            &PSS,
            &[],
            self.samples,
            known(peaks.pss, "the system does not tell it"),
        );
        sink.value(&DEVICE, &[], self.samples, known(peaks.device, NO_DEVICE));
        sink.value(&RESERVED, &[], self.samples, known(peaks.reserved, NO_DEVICE));
        // With a device, no copy is a value.
        let copied = |amount: u64| known(peaks.device, NO_DEVICE).map(|_| amount as f64);
        sink.value(&H2D, &[], self.samples, copied(self.copied.h2d));
        sink.value(&D2H, &[], self.samples, copied(self.copied.d2h));
        sink.value(
            &COPY_TIME,
            &[],
            self.samples,
            copied(self.copied.copy_ns).map(|ns| ns / 1e6),
        );
        let free = known(peaks.reserved, NO_DEVICE).and(self.largest_free.ok_or(NO_DEVICE));
        sink.value(&LARGEST_FREE, &[], self.samples, free.map(|bytes| bytes as f64));
        self.report_fragmentation(sink);
        Ok(())
    }
}

impl Memory {
    fn report_fragmentation(&self, sink: &mut Sink<'_>) {
        let contradiction = format!(
            "device_used exceeds device_reserved in {} samples",
            self.contradictions
        );
        let reason = match (self.samples, self.contradictions) {
            (0, _) => NO_SAMPLE,
            (_, 0) => NO_DEVICE,
            _ => contradiction.as_str(),
        };
        let sound = self.contradictions == 0;
        let mean = self.fragmentation.mean().filter(|_| sound);
        let samples = self.fragmentation.count();
        for (stat, value) in [("mean", mean), ("max", mean.map(|_| self.fragmentation_max))] {
            sink.value(&FRAGMENTATION, &[("stat", stat)], samples, value.ok_or(reason));
        }
    }
}

lm_bench_plugin::export_builtin!(Memory);

#[cfg(test)]
mod tests {
    use super::*;
    use lm_bench_plugin::testing::CollectorTest;

    type Test = CollectorTest<Memory>;

    fn device(reserved: u64, used: u64, peak: u64) -> memory::Row<'static> {
        memory::Row {
            device_reserved: reserved,
            device_used: used,
            device_peak: peak,
            device_largest_free: 2 * (1000 - reserved),
            rss: 50,
            pss: 40,
            h2d_bytes: used,
            ..Default::default()
        }
    }

    #[test]
    fn peaks_and_fragmentation_of_a_device() {
        let mut test = Test::new();
        test.row(&device(400, 300, 350)).row(&device(800, 400, 700));
        let metrics = test.metrics();
        metrics.assert("peak_rss_bytes", &[], 50.0);
        metrics.assert("peak_pss_bytes", &[], 40.0);
        metrics.assert("peak_device_memory_bytes", &[], 700.0);
        metrics.assert("peak_device_reserved_bytes", &[], 800.0);
        // 1 - 3/4 and 1 - 1/2
        metrics.assert("device_memory_fragmentation_ratio", &[("stat", "mean")], 0.375);
        metrics.assert("device_memory_fragmentation_ratio", &[("stat", "max")], 0.5);
        metrics.assert("device_largest_free_min_bytes", &[], 400.0);
        // 300 and 400 more.
        metrics.assert("copy_host_to_device_bytes", &[], 700.0);
        metrics.assert("copy_device_to_host_bytes", &[], 0.0);
        metrics.assert("copy_time_ms", &[], 0.0);
    }

    #[test]
    fn without_a_device_its_metrics_say_so() {
        let mut test = Test::new();
        test.row(&memory::Row {
            rss: 70,
            ..Default::default()
        });
        let metrics = test.metrics();
        metrics.assert("peak_rss_bytes", &[], 70.0);
        assert_eq!(
            metrics.unavailable("peak_pss_bytes", &[]),
            "the system does not tell it"
        );
        for name in [
            "peak_device_memory_bytes",
            "copy_host_to_device_bytes",
            "device_largest_free_min_bytes",
        ] {
            assert_eq!(metrics.unavailable(name, &[]), "no device");
        }
        let fragmentation = metrics.unavailable("device_memory_fragmentation_ratio", &[("stat", "max")]);
        assert_eq!(fragmentation, "no device");
    }

    #[test]
    fn without_samples_nothing_is_known() {
        let metrics = Test::new().metrics();
        for name in ["peak_rss_bytes", "peak_device_memory_bytes", "copy_time_ms"] {
            assert_eq!(metrics.unavailable(name, &[]), "no memory sample was recorded");
        }
    }

    #[test]
    fn more_used_than_reserved_gives_no_fragmentation() {
        let mut test = Test::new();
        test.row(&device(400, 300, 350)).row(&device(400, 401, 401));
        let metrics = test.metrics();
        let told = metrics.unavailable("device_memory_fragmentation_ratio", &[("stat", "mean")]);
        assert_eq!(told, "device_used exceeds device_reserved in 1 samples");
        metrics.assert("peak_device_memory_bytes", &[], 401.0);
    }
}
