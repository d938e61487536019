//! Measures a model and shows how far it is: a status line on a terminal, plain lines elsewhere.
//!
//! A model may take minutes for an answer, so no time is fixed here: a person sees what is being
//! tried and for how long, and ends it with Ctrl-C.

use std::{
    io::{self, IsTerminal},
    time::{Duration, Instant},
};

use gyrus_contract::Model;
use gyrus_models::{Effort, Measurements, ProbeStep, check};
use gyrus_surfaces::{
    SurfaceError,
    console::{clear_status, put, put_status},
};
use gyrus_text::visible;
use parking_lot::Mutex;

use crate::failure::Failure;

/// Interval between two status lines on a terminal.
const ON_A_TERMINAL: Duration = Duration::from_secs(1);

/// Interval between two lines elsewhere.
const ELSEWHERE: Duration = Duration::from_secs(30);

pub(crate) async fn measure(
    model: &dyn Model,
    effort: Effort,
    plain: bool,
    mut show: impl FnMut(&str) -> Result<(), SurfaceError> + Send,
) -> Result<Measurements, Failure> {
    let current = Mutex::new((String::new(), Instant::now()));
    let mut lost = None;
    let mut progress = |step: ProbeStep<'_>| match step {
        ProbeStep::Begins(probe) => {
            *current.lock() = (probe.to_owned(), Instant::now());
        }
        ProbeStep::Ends(probe, came) => {
            let line = visible(&format!("  {probe:<20} {came}")).into_owned() + "\n";
            // A reader that has gone must not stop what is being measured.
            if let Err(error) = clear_status().and_then(|()| show(&line)) {
                lost.get_or_insert(error);
            }
        }
    };
    let is_terminal = !plain && io::stderr().is_terminal();
    let period = if is_terminal {
        ON_A_TERMINAL
    } else {
        ELSEWHERE
    };
    let measured = {
        let measuring = check(model, effort, &mut progress);
        tokio::pin!(measuring);
        loop {
            match tokio::time::timeout(period, &mut measuring).await {
                Ok(measured) => break measured,
                Err(_) => {
                    let (probe, since) = &*current.lock();
                    let seconds = since.elapsed().as_secs();
                    // Whoever does not see it misses nothing but the time.
                    let _ = if is_terminal {
                        put_status(&format!("  {probe:<20} {seconds} s so far; Ctrl-C ends it"))
                    } else {
                        put(&format!("  {probe:<20} {seconds} s so far\n"))
                    };
                }
            }
        }
    };
    if let Some(speed) = measured.speed() {
        show(&format!("  {:<20} {speed}\n", "speed"))?;
    }
    match lost {
        Some(error) => Err(error.into()),
        None => Ok(measured),
    }
}
