//! Schedules in the five fields of cron, in the local time of a zone.
//!
//! A schedule that names hours fires by the clock on the wall: a local time that daylight saving
//! skips fires once, right after the gap, and one that comes twice fires at its first coming. A
//! schedule of every hour (`*`) goes by time that really passes, so it neither pauses nor doubles.

use std::str::FromStr;

use jiff::{
    Timestamp, ToSpan as _,
    civil::{Date, DateTime, Time, Weekday},
    tz::TimeZone,
};

/// Years within which a schedule must fire: the longest time between two 29ths of February.
const YEARS: i16 = 8;

/// Maximum number of hours by which a change of the clock moves local time.
const JUMP_HOURS: i64 = 3;

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The reason why a text is not a schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid cron `{given}`: {reason}")]
pub struct CronError {
    given: String,
    reason: String,
}

/// A schedule: sets of minutes, hours, days and months.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronSchedule {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    is_every_hour: bool,
    /// Whether a day must match both fields for days, because one of them is open.
    is_both_days: bool,
}

/// A field: its name, its smallest and largest value, and names of values.
struct CronField {
    name: &'static str,
    from: u32,
    to: u32,
    names: &'static [&'static str],
}

const FIELDS: [CronField; 5] = [
    CronField::new("minute", 0, 59, &[]),
    CronField::new("hour", 0, 23, &[]),
    CronField::new("day of the month", 1, 31, &[]),
    CronField::new("month", 1, 12, &MONTHS),
    // Sunday is 0 and 7.
    CronField::new("day of the week", 0, 7, &DAYS),
];

impl FromStr for CronSchedule {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Self, CronError> {
        Self::parse(text).map_err(|reason| CronError {
            given: text.chars().take(80).collect(),
            reason,
        })
    }
}

impl CronSchedule {
    fn parse(text: &str) -> Result<Self, String> {
        let text = match text.trim() {
            "@hourly" => "0 * * * *",
            "@daily" | "@midnight" => "0 0 * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            "@yearly" | "@annually" => "0 0 1 1 *",
            word if word.starts_with('@') => {
                let known = "@hourly, @daily, @weekly, @monthly and @yearly";
                return Err(format!("of these words there are {known}"));
            }
            fields => fields,
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = words[..] else {
            let count = words.len();
            return Err(format!(
                "there are {count} fields instead of minute, hour, day, month and day of the week"
            ));
        };
        let weekdays = FIELDS[4].parse(weekday)?;
        let schedule = Self {
            minutes: FIELDS[0].parse(minute)?,
            hours: FIELDS[1].parse(hour)?,
            days: FIELDS[2].parse(day)?,
            months: FIELDS[3].parse(month)?,
            weekdays: (weekdays | weekdays >> 7) & 0x7f,
            is_every_hour: hour == "*",
            is_both_days: day.starts_with('*') || weekday.starts_with('*'),
        };
        let begin = Date::constant(2000, 1, 1);
        match schedule.next_date(begin) {
            Some(_) => Ok(schedule),
            None => Err("there is no such day".to_owned()),
        }
    }

    /// Returns the first instant after `after` at which the schedule fires; `None` at the end of
    /// what the calendar knows.
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        if self.is_every_hour {
            self.next_elapsed(after, zone)
        } else {
            self.next_local(after, zone)
        }
    }

    /// The instants of local times never go back from one local time to the next, so the first one
    /// that is later is the answer.
    fn next_local(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let local = zone.to_datetime(after);
        let mut date = local.date();
        let mut earliest = local.time();
        loop {
            date = self.next_date(date)?;
            if date != local.date() {
                earliest = Time::midnight();
            }
            for hour in bits(self.hours).filter(|hour| *hour >= earliest.hour()) {
                for minute in bits(self.minutes) {
                    let time = date.at(hour, minute, 0, 0);
                    let instant = instant(time, zone)?;
                    if instant > after {
                        return Some(instant);
                    }
                }
            }
            date = date.tomorrow().ok()?;
        }
    }

    /// Searches every minute of the matching days by elapsed time.
    fn next_elapsed(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let minute = |seconds: i64| Timestamp::from_second(seconds - seconds.rem_euclid(60)).ok();
        let mut instant = minute(after.as_second().checked_add(60)?)?;
        loop {
            let local = zone.to_datetime(instant);
            if !self.has_date(local.date()) {
                let date = self.next_date(local.date())?;
                let begin = date.to_zoned(zone.clone()).ok()?.timestamp();
                let before = minute(begin.checked_sub(JUMP_HOURS.hours()).ok()?.as_second())?;
                if before > instant {
                    instant = before;
                    continue;
                }
            } else if has(self.minutes, local.minute()) {
                return Some(instant);
            }
            instant = instant.checked_add(1.minute()).ok()?;
        }
    }

    fn next_date(&self, from: Date) -> Option<Date> {
        let mut date = from;
        while date.year() <= from.year().saturating_add(YEARS) {
            if self.has_date(date) {
                return Some(date);
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    fn has_date(&self, date: Date) -> bool {
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, number(date.weekday()));
        let is_day = if self.is_both_days {
            day && weekday
        } else {
            day || weekday
        };
        is_day && has(self.months, date.month())
    }
}

impl CronField {
    const fn new(name: &'static str, from: u32, to: u32, names: &'static [&'static str]) -> Self {
        Self {
            name,
            from,
            to,
            names,
        }
    }

    /// Returns the set of values in a list of values, ranges and steps.
    fn parse(&self, text: &str) -> Result<u64, String> {
        let mut set = 0;
        for part in text.split(',') {
            let (range, step) = match part.split_once('/') {
                Some((range, step)) => (range, Some(self.step(step)?)),
                None => (part, None),
            };
            let (from, to) = match range.split_once('-') {
                _ if range == "*" => (self.from, self.to),
                Some((from, to)) => (self.value(from)?, self.value(to)?),
                // `5/10` begins at 5 and goes on to the end.
                None if step.is_some() => (self.value(range)?, self.to),
                None => (self.value(range)?, self.value(range)?),
            };
            if from > to {
                return Err(format!("the {} `{part}` ends before it begins", self.name));
            }
            for value in (from..=to).step_by(step.unwrap_or(1)) {
                set |= 1 << value;
            }
        }
        Ok(set)
    }

    fn step(&self, text: &str) -> Result<usize, String> {
        let step = text.parse().ok().filter(|step| (1..=59).contains(step));
        step.ok_or_else(|| format!("the step `{text}` of the {} is not 1 to 59", self.name))
    }

    fn value(&self, text: &str) -> Result<u32, String> {
        let word = text.to_ascii_lowercase();
        let named = self.names.iter().position(|name| *name == word);
        let value = match named {
            Some(index) => u32::try_from(index).ok().map(|index| index + self.from),
            None => text.parse().ok(),
        };
        let value = value.filter(|value| (self.from..=self.to).contains(value));
        value.ok_or_else(|| {
            let (name, from, to) = (self.name, self.from, self.to);
            format!("the {name} `{text}` is not {from} to {to}")
        })
    }
}

fn number(day: Weekday) -> i8 {
    day.to_sunday_zero_offset()
}

fn has(set: u64, value: i8) -> bool {
    u32::try_from(value).is_ok_and(|value| set >> value & 1 == 1)
}

fn bits(set: u64) -> impl Iterator<Item = i8> {
    (0..60).filter(move |value| has(set, *value))
}

/// Returns the instant of a local time: the first of two, and the end of a gap that it falls into.
fn instant(local: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let ambiguous = zone.to_ambiguous_timestamp(local);
    if !matches!(ambiguous.offset(), jiff::tz::AmbiguousOffset::Gap { .. }) {
        return ambiguous.earlier().ok();
    }
    // The offset from after the gap leads to an instant before it.
    let before = ambiguous.earlier().ok()?;
    let gap = zone.following(before).next()?;
    Some(gap.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(text: &str) -> CronSchedule {
        text.parse().unwrap()
    }

    /// Returns the instants in a span by looking at each minute: those whose local time, or one
    /// that was skipped, had not come yet.
    fn slow(
        schedule: &CronSchedule,
        zone: &TimeZone,
        from: Timestamp,
        minutes: i64,
    ) -> Vec<Timestamp> {
        let matches = |local: DateTime| {
            schedule.has_date(local.date())
                && has(schedule.hours, local.hour())
                && has(schedule.minutes, local.minute())
        };
        let mut latest = zone.to_datetime(from - 49.hours());
        let mut fired = Vec::new();
        for minute in -2 * 1440..=minutes {
            let instant = from + minute.minutes();
            let local = zone.to_datetime(instant);
            let fires = if schedule.is_every_hour {
                matches(local)
            } else {
                let mut time = latest;
                let mut fires = false;
                while time < local {
                    time = time.checked_add(1.minute()).unwrap();
                    fires |= matches(time);
                }
                fires
            };
            latest = latest.max(local);
            if fires && minute > 0 {
                fired.push(instant);
            }
        }
        fired
    }

    #[test]
    fn instants_are_those_of_a_look_at_every_minute() {
        let schedules = [
            "* * * * *",
            "30 2 * * *",
            "*/20 * * * *",
            "0 */2 * * *",
            "15 0-3 * * *",
            "@hourly",
            "@daily",
            "0 3 * * sun",
            "59 23 1,15 * *",
            "0 0 31 * fri",
            "0 8 * mar-oct 1-5",
        ];
        let zones = [
            ("UTC", "2024-02-27T11:07:00Z"),
            ("Europe/Berlin", "2024-03-29T20:00:00Z"),
            ("Europe/Berlin", "2024-10-25T22:00:00Z"),
            ("America/New_York", "2024-11-01T00:00:00Z"),
            // Half an hour.
            ("Australia/Lord_Howe", "2024-04-05T00:00:00Z"),
            ("Australia/Lord_Howe", "2024-10-04T12:00:00Z"),
            // At midnight, so that a day begins at one.
            ("America/Santiago", "2024-09-06T12:00:00Z"),
            ("America/Santiago", "2024-04-05T12:00:00Z"),
            // A minute after midnight, back into the day before.
            ("America/St_Johns", "2010-11-06T00:00:00Z"),
            // A whole day is skipped.
            ("Pacific/Apia", "2011-12-29T00:00:00Z"),
        ];
        for (name, from) in zones {
            let zone = TimeZone::get(name).unwrap();
            let from: Timestamp = from.parse().unwrap();
            for text in schedules {
                let schedule = schedule(text);
                let minutes = 3 * 1440;
                let expected = slow(&schedule, &zone, from, minutes);
                let until = from + minutes.minutes();
                let found: Vec<Timestamp> =
                    std::iter::successors(schedule.next(from, &zone), |last| {
                        schedule.next(*last, &zone)
                    })
                    .take_while(|instant| *instant <= until)
                    .collect();
                assert_eq!(found, expected, "{text} in {name} from {from}");
            }
        }
    }

    #[test]
    fn random_schedules_agree_with_a_look_at_every_minute() {
        let mut random = fastrand::Rng::with_seed(17);
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        for _ in 0..60 {
            let mut field = |from: u32, to: u32| match random.u32(0..4) {
                0 => "*".to_owned(),
                1 => format!("*/{}", random.u32(1..=9)),
                2 => random.u32(from..=to).to_string(),
                _ => {
                    let low = random.u32(from..=to);
                    format!("{low}-{}", random.u32(low..=to))
                }
            };
            let fields = [
                field(0, 59),
                field(0, 23),
                field(1, 28),
                field(1, 12),
                field(0, 6),
            ];
            let text = fields.join(" ");
            let schedule = schedule(&text);
            let day = random.i64(0..700);
            let from = "2024-01-01T00:00:30Z".parse::<Timestamp>().unwrap() + (day * 24).hours();
            let whole = from - 30.seconds();
            let expected = slow(&schedule, &zone, whole, 1440);
            let found: Vec<Timestamp> =
                std::iter::successors(schedule.next(whole, &zone), |last| {
                    schedule.next(*last, &zone)
                })
                .take_while(|instant| *instant <= whole + 1440.minutes())
                .collect();
            assert_eq!(found, expected, "{text} from {whole}");
        }
    }

    #[test]
    fn rare_days_are_found_and_impossible_ones_refused() {
        let utc = TimeZone::UTC;
        let leap = schedule("0 0 29 2 *").next("2096-03-01T00:00:00Z".parse().unwrap(), &utc);
        assert_eq!(leap, Some("2104-02-29T00:00:00Z".parse().unwrap()));
        let hourly = schedule("0 * 29 feb *").next("2096-03-01T00:00:00Z".parse().unwrap(), &utc);
        assert_eq!(hourly, leap);
        for (text, reason) in [
            ("0 0 30 2 *", "there is no such day"),
            ("60 * * * *", "the minute `60` is not 0 to 59"),
            ("* * * *", "there are 4 fields"),
            ("* * * * mun", "the day of the week `mun` is not 0 to 7"),
            ("5-1 * * * *", "ends before it begins"),
            ("*/0 * * * *", "the step `0` of the minute"),
            ("@noon", "of these words there are"),
            ("", "there are 0 fields"),
        ] {
            let error = text.parse::<CronSchedule>().unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
