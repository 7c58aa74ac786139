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
| call | server | in flight | connections | CPU µs a call | of the echo's | of the first referee's | calls/s | of the echo's | core busy | p50 µs | p99 µs | of the echo's | bytes |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|";

/// A row of the table of calls: a server's samples beside those of the echo and of the first referee, taken in turn.
pub(crate) fn row(head: &str, own: &[Sample], echo: &[Sample], first: &[Sample]) -> String {
    let middle = |figure: fn(&Sample) -> f64| Middle::of(own.iter().map(figure)).map_or(0.0, Middle::middle);
    let both_busy = |own: &Sample, echo: &Sample| own.busy >= BUSY && echo.busy >= BUSY;
    format!(
        "| {head} | {:.2} | {} | {} | {:.0} | {} | {:.0} % | {:.0} | {:.0} | {} | {:.0} |",
        middle(|sample| micros(sample.cpu)),
        paired(own, echo, |sample| micros(sample.cpu), |_, _| true),
        paired(own, first, |sample| micros(sample.cpu), |_, _| true),
        middle(|sample| 1.0 / sample.took.as_secs_f64()),
        paired(own, echo, |sample| 1.0 / sample.took.as_secs_f64(), both_busy),
        middle(|sample| sample.busy * 100.0),
        middle(|sample| micros(sample.half)),
        middle(|sample| micros(sample.most)),
        paired(own, echo, |sample| micros(sample.most), |_, _| true),
        middle(|sample| as_figure(sample.size)),
    )
}

/// The ratios of a figure in the pairs that count.
fn paired(
    own: &[Sample],
    other: &[Sample],
    figure: fn(&Sample) -> f64,
    counts: impl Fn(&Sample, &Sample) -> bool,
) -> String {
    let pairs = own.iter().zip(other).filter(|(own, other)| counts(own, other));
    let ratios = Middle::of(pairs.map(|(own, other)| figure(own) / figure(other)));
    ratios.map_or_else(|| "–".to_owned(), Middle::with_range)
}

/// A count as a figure.
#[expect(clippy::cast_precision_loss, reason = "no count here comes near 2^52")]
pub(crate) fn as_figure(count: usize) -> f64 {
    count as f64
}
