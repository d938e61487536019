//! Tries one target until its time is over or a property is broken.

use std::{
    any::Any,
    fmt, io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    time::{Duration, Instant},
};

use fastrand::Rng;

use crate::{
    Target,
    coverage::Coverage,
    minimise::minimise,
    mutation::{mutate, one},
    watch::Watch,
};

/// The process ends with this code when one input takes far too long.
pub const TOO_LONG: i32 = 3;

/// Inputs that are kept to go on from, and their bytes in all.
const MOST_KEPT: usize = 20_000;
const MOST_KEPT_BYTES: usize = 64 * 1024 * 1024;

/// When a campaign is over.
#[derive(Debug, Clone, Copy)]
pub enum Until {
    /// After this time.
    Elapsed(Duration),
    /// After so many inputs, which are the same ones every time.
    Tried(u64),
}

/// Result of a campaign.
#[derive(Debug)]
pub struct Report {
    /// Inputs that were tried.
    pub tried: u64,
    /// Inputs that reached something new.
    pub kept: usize,
    /// Places of the code that were reached; 0 if nothing counts.
    pub reached: usize,
    /// Duration of the campaign.
    pub took: Duration,
    /// The first failure, if there is one.
    pub failure: Option<Failure>,
}

/// An input for which a property does not hold.
#[derive(Debug)]
pub struct Failure {
    /// Made as short as it could be.
    pub input: Vec<u8>,
    /// The property that does not hold.
    pub why: String,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report {
            tried,
            kept,
            reached,
            took,
            ..
        } = self;
        let speed = *tried as f64 / took.as_secs_f64().max(0.001);
        write!(f, "{tried} inputs, {speed:.0} a second, ")?;
        match reached {
            0 => write!(f, "not guided by coverage"),
            _ => write!(f, "{kept} of them reached something new, {reached} places"),
        }
    }
}

/// Tries one input.
pub fn try_one<T: Target>(target: &T, input: &[u8]) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| target.check(input)))
        .unwrap_or_else(|panic| Err(told(&*panic)))
}

fn told(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied());
    format!("it panics: {}", text.unwrap_or("without a word"))
}

/// Tries a target. `note` is the file that names the input being tried.
///
/// # Errors
/// The note cannot be written.
pub fn run<T: Target>(target: &T, seed: u64, until: Until, note: &Path) -> io::Result<Report> {
    let start = Instant::now();
    let watch = Watch::new(note)?;
    let mut random = Rng::with_seed(seed);
    let mut coverage = Coverage::new();
    let words = target.words();
    let mut kept = target.seeds();
    let mut bytes: usize = kept.iter().map(Vec::len).sum();
    // Without counters there is nothing to learn from them.
    let seeds = if coverage.is_guided() { kept.len() } else { 0 };
    let mut tried = 0;
    let mut new = 0;
    let mut failure = None;
    loop {
        let over = match until {
            Until::Elapsed(time) => start.elapsed() >= time,
            Until::Tried(most) => tried >= most,
        };
        if over {
            break;
        }
        let at = usize::try_from(tried).unwrap_or(usize::MAX);
        let input = if at < seeds {
            kept[at].clone()
        } else {
            let parent = chosen(&kept, &mut random);
            mutate(parent, &kept, &words, target.longest(), &mut random)
        };
        watch.note(&input)?;
        let mut outcome = Ok(());
        let is_new = coverage.is_new(|| outcome = try_one(target, &input));
        tried += 1;
        if let Err(why) = outcome {
            failure = Some(Failure { input, why });
            break;
        }
        if is_new && at >= seeds && kept.len() < MOST_KEPT && bytes < MOST_KEPT_BYTES {
            new += 1;
            bytes += input.len();
            kept.push(input);
        }
    }
    drop(watch);
    let failure = failure.map(|failure| {
        let input = minimise(&failure.input, |input| try_one(target, input).is_err());
        let why = try_one(target, &input).err().unwrap_or(failure.why);
        Failure { input, why }
    });
    Ok(Report {
        tried,
        kept: new,
        reached: if coverage.is_guided() {
            coverage.reached()
        } else {
            0
        },
        took: start.elapsed(),
        failure,
    })
}

/// An input to go on from; half of the time one of those found last.
fn chosen<'a>(kept: &'a [Vec<u8>], random: &mut Rng) -> &'a Vec<u8> {
    const LAST: usize = 200;
    let from = match random.usize(..2) {
        0 => kept.len().saturating_sub(LAST),
        _ => 0,
    };
    one(random, &kept[from..])
}
