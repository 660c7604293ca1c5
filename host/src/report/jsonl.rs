//! One metric per line, the headline numbers first.

use super::record::{MetricRecord, RunRecord, headline_metrics};

/// Each metric as one line of JSON in the form of the record's `metrics`; the headline numbers come first, as metrics of the
/// plugin `lm-bench`.
pub fn render(record: &RunRecord) -> String {
    let headline = headline_metrics(record);
    let lines = headline.iter().chain(&record.metrics).map(MetricRecord::to_json);
    lines.map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::super::record::sample;
    use super::*;

    #[test]
    fn every_line_is_a_metric() {
        let record = sample::record();
        let text = render(&record);
        let metrics: Vec<MetricRecord> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(metrics.len(), record.metrics.len() + 7);
        assert_eq!(&metrics[7..], record.metrics);
        let names: Vec<&str> = metrics[..4].iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "decode_latency_per_token_ms",
                "peak_gpu_mem_gb",
                "prefill_latency_ms",
                "total_tokens_per_second"
            ]
        );
        assert!(
            metrics[4..7]
                .iter()
                .all(|metric| metric.name == "observer_effect_pct")
        );
        assert_eq!(metrics[4].labels["of"], "prefill_latency");
        assert!(text.lines().any(|line| line.contains(r#""name":"achieved_flops""#) && line.contains(r#""partial":true"#)));
        assert!(metrics[1].value.is_none() && metrics[1].reason.is_some());
    }
}
