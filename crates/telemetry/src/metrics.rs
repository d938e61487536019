//! Metrics of a run: histograms of the conventions for generative AI, and counters of our own.
//!
//! They are folded from the journal, one set of series for each run. A cumulative value is therefore
//! the same however often it is sent, and goes on after a crash where it was.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::{
    common::v1::KeyValue,
    metrics::v1::{
        AggregationTemporality, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum,
        metric::Data, number_data_point,
    },
};

use crate::attributes::{flag, text};

/// Whether values count from the start of the run, or from the last export.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Temporality {
    /// Values count from the start of the run.
    #[default]
    Cumulative,
    /// Values count from the last export.
    Delta,
}

/// Maximum number of series of one metric; further ones are counted together.
const MAX_SERIES: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Instrument {
    /// Tokens of requests to models.
    TokenUsage,
    /// Durations of requests to models in seconds.
    OperationDuration,
    /// Runs that came into a state.
    Runs,
    /// Number of settled tool calls.
    ToolCalls,
}

/// Bucket bounds of the conventions for tokens: 4 to the power of 0 to 13.
const TOKEN_BOUNDS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// Bucket bounds of the conventions for seconds.
const SECOND_BOUNDS: [f64; 14] = [
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];

impl Instrument {
    /// Returns name, unit and description, and the bounds of a histogram.
    fn about(self) -> (&'static str, &'static str, &'static str, &'static [f64]) {
        match self {
            Instrument::TokenUsage => (
                "gen_ai.client.token.usage",
                "{token}",
                "Number of input and output tokens used.",
                &TOKEN_BOUNDS,
            ),
            Instrument::OperationDuration => (
                "gen_ai.client.operation.duration",
                "s",
                "GenAI operation duration.",
                &SECOND_BOUNDS,
            ),
            Instrument::Runs => (
                "gyrus.runs",
                "{run}",
                "Number of times that a run came into a state.",
                &[],
            ),
            Instrument::ToolCalls => (
                "gyrus.tool.calls",
                "{call}",
                "Number of settled tool calls.",
                &[],
            ),
        }
    }
}

/// Attributes of a series, in a fixed order.
pub(crate) type Series = Vec<(&'static str, String)>;

#[derive(Debug, Clone, Default)]
struct SeriesHistogram {
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
    buckets: Vec<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct RunMetrics {
    series: BTreeMap<Instrument, BTreeMap<Series, SeriesHistogram>>,
    start_ns: u64,
}

impl RunMetrics {
    pub(crate) fn record(&mut self, instrument: Instrument, mut of: Series, value: f64) {
        let all = self.series.entry(instrument).or_default();
        if all.len() >= MAX_SERIES && !all.contains_key(&of) {
            of = Vec::new();
        }
        let (_, _, _, bounds) = instrument.about();
        let recorded = all.entry(of).or_insert_with(|| SeriesHistogram {
            min: value,
            max: value,
            buckets: vec![0; bounds.len() + 1],
            ..SeriesHistogram::default()
        });
        recorded.count += 1;
        recorded.sum += value;
        recorded.min = recorded.min.min(value);
        recorded.max = recorded.max.max(value);
        recorded.buckets[bounds.partition_point(|bound| *bound < value)] += 1;
    }

    /// Sets the time from which values count.
    pub(crate) fn starting(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
    }

    /// Removes the values until `now_ns`, which were sent.
    pub(crate) fn reset(&mut self, now_ns: u64) {
        self.series.clear();
        self.start_ns = now_ns;
    }

    pub(crate) fn at(&self, now_ns: u64, temporality: Temporality) -> Vec<Metric> {
        let temporality = match temporality {
            Temporality::Cumulative => AggregationTemporality::Cumulative,
            Temporality::Delta => AggregationTemporality::Delta,
        };
        let metrics = self.series.iter().map(|(instrument, series)| {
            let (name, unit, description, bounds) = instrument.about();
            let data = if bounds.is_empty() {
                Data::Sum(Sum {
                    data_points: series
                        .iter()
                        .map(|(of, recorded)| self.counted(of, recorded, now_ns))
                        .collect(),
                    aggregation_temporality: temporality.into(),
                    is_monotonic: true,
                })
            } else {
                Data::Histogram(Histogram {
                    data_points: series
                        .iter()
                        .map(|(of, recorded)| self.distributed(of, recorded, bounds, now_ns))
                        .collect(),
                    aggregation_temporality: temporality.into(),
                })
            };
            Metric {
                name: name.to_owned(),
                description: description.to_owned(),
                unit: unit.to_owned(),
                data: Some(data),
                ..Metric::default()
            }
        });
        metrics.collect()
    }

    fn counted(&self, of: &Series, recorded: &SeriesHistogram, now_ns: u64) -> NumberDataPoint {
        let value = i64::try_from(recorded.count).unwrap_or(i64::MAX);
        NumberDataPoint {
            attributes: attributes(of),
            start_time_unix_nano: self.start_ns,
            time_unix_nano: now_ns,
            value: Some(number_data_point::Value::AsInt(value)),
            ..NumberDataPoint::default()
        }
    }

    fn distributed(
        &self,
        of: &Series,
        recorded: &SeriesHistogram,
        bounds: &[f64],
        now_ns: u64,
    ) -> HistogramDataPoint {
        HistogramDataPoint {
            attributes: attributes(of),
            start_time_unix_nano: self.start_ns,
            time_unix_nano: now_ns,
            count: recorded.count,
            sum: Some(recorded.sum),
            bucket_counts: recorded.buckets.clone(),
            explicit_bounds: bounds.to_vec(),
            min: Some(recorded.min),
            max: Some(recorded.max),
            ..HistogramDataPoint::default()
        }
    }
}

fn attributes(of: &Series) -> Vec<KeyValue> {
    if of.is_empty() {
        return vec![flag("otel.metric.overflow", true)];
    }
    of.iter().map(|(key, value)| text(key, value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_bounded() {
        let mut metrics = RunMetrics::default();
        for tool in 0..=MAX_SERIES {
            metrics.record(Instrument::ToolCalls, vec![("a", tool.to_string())], 1.0);
            metrics.record(Instrument::ToolCalls, vec![("a", tool.to_string())], 1.0);
        }
        let all = metrics.at(2, Temporality::Cumulative);
        let Some(Data::Sum(sum)) = &all[0].data else {
            panic!("{all:?}");
        };
        assert_eq!(sum.data_points.len(), MAX_SERIES + 1);
        assert_eq!(sum.data_points[0].attributes[0].key, "otel.metric.overflow");
    }

    #[test]
    fn bounds_belong_to_the_bucket_below() {
        let mut metrics = RunMetrics::default();
        for value in [0.0, 1.0, 1.5, 4.0, 1e12] {
            metrics.record(Instrument::TokenUsage, vec![("a", String::new())], value);
        }
        let all = metrics.at(2, Temporality::Delta);
        let Some(Data::Histogram(histogram)) = &all[0].data else {
            panic!("{all:?}");
        };
        let point = &histogram.data_points[0];
        assert_eq!((point.count, point.bucket_counts.len()), (5, 15));
        assert_eq!(point.bucket_counts[..3], [2, 2, 0]);
        assert_eq!(point.bucket_counts[14], 1);
    }
}
