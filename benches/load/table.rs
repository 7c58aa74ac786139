//! What was measured, in figures that can be compared, and as tables of Markdown.

use std::time::Duration;

/// The share of its core that a server must be busy for a throughput to count.
pub(crate) const BUSY: f64 = 0.95;

/// One measurement of one server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// The processor time of a call.
    pub(crate) cpu: Duration,
    /// The time from call to call.
    pub(crate) took: Duration,
    /// The share of the server's core that was busy.
    pub(crate) busy: f64,
    /// How long half of the calls took at most.
    pub(crate) half: Duration,
    /// How long 99 of 100 calls took at most.
    pub(crate) most: Duration,
    /// The bytes of an answer, on average.
    pub(crate) size: usize,
}

/// What lies at this share of what is sorted.
pub(crate) fn percentile(sorted: &[Duration], share: f64) -> Duration {
    let last = sorted.len().saturating_sub(1);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index"
    )]
    let index = (last as f64 * share).round() as usize;
    sorted.get(index).copied().unwrap_or_default()
}

/// The middle of some figures, the least and the most of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Middle {
    middle: f64,
    least: f64,
    most: f64,
}

impl Middle {
    /// Of these figures; `None` without any.
    pub(crate) fn of(figures: impl Iterator<Item = f64>) -> Option<Self> {
        let mut figures: Vec<f64> = figures.collect();
        figures.sort_by(f64::total_cmp);
        let (least, most) = (*figures.first()?, *figures.last()?);
        let half = figures.len() / 2;
        let middle = if figures.len().is_multiple_of(2) {
            f64::midpoint(figures[half - 1], figures[half])
        } else {
            figures[half]
        };
        Some(Self { middle, least, most })
    }

    /// The middle.
    pub(crate) fn middle(self) -> f64 {
        self.middle
    }

    /// As `1.10 (1.05-1.20)`.
    pub(crate) fn with_range(self) -> String {
        format!("{:.2} ({:.2}–{:.2})", self.middle, self.least, self.most)
    }
}

/// Micros, as a figure.
pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The head of the table of calls.
pub(crate) const CALLS: &str = "\
| call | server | in flight | connections | CPU µs a call | of the echo's | calls/s | of the echo's | core busy | p50 µs | p99 µs | p99 of the echo's | bytes |
|---|---|---|---|---|---|---|---|---|---|---|---|---|";

/// A row of the table of calls: a server's samples beside those of the echo, taken in turn.
pub(crate) fn row(head: &str, own: &[Sample], echo: &[Sample]) -> String {
    let middle = |figure: fn(&Sample) -> f64| Middle::of(own.iter().map(figure)).map_or(0.0, |found| found.middle);
    let paired = |figure: fn(&Sample) -> f64, wanted: fn(&Sample) -> bool| {
        let pairs = own.iter().zip(echo).filter(|(own, echo)| wanted(own) && wanted(echo));
        let ratios = Middle::of(pairs.map(|(own, echo)| figure(own) / figure(echo)));
        ratios.map_or_else(|| "–".to_owned(), Middle::with_range)
    };
    let speed = |sample: &Sample| 1.0 / sample.took.as_secs_f64();
    let most = |sample: &Sample| micros(sample.most);
    format!(
        "| {head} | {:.2} | {} | {:.0} | {} | {:.0} % | {:.0} | {:.0} | {} | {:.0} |",
        middle(|sample| micros(sample.cpu)),
        paired(|sample| micros(sample.cpu), |_| true),
        middle(speed),
        paired(speed, |sample| sample.busy >= BUSY),
        middle(|sample| sample.busy * 100.0),
        middle(|sample| micros(sample.half)),
        middle(most),
        paired(most, |_| true),
        middle(|sample| as_figure(sample.size)),
    )
}

/// A count as a figure.
#[expect(clippy::cast_precision_loss, reason = "no count here comes near 2^52")]
pub(crate) fn as_figure(count: usize) -> f64 {
    count as f64
}
