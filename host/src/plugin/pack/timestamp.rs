//! Times in files that people read: seconds since 1970 in memory, `2026-12-01T17:30:00Z` in a file.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

const DAY: u64 = 86_400;
/// 9999-12-31T23:59:59Z.
const LAST: u64 = 253_402_300_799;

/// A time in whole seconds since 1970-01-01T00:00:00Z, before the year 10000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Timestamp(u64);

impl Timestamp {
    /// The time so many seconds after 1970; times after the year 9999 become its end.
    pub fn from_unix(seconds: u64) -> Self {
        Self(seconds.min(LAST))
    }

    /// Seconds since 1970.
    pub fn unix(self) -> u64 {
        self.0
    }

    /// The time so many days later.
    pub fn after_days(self, days: u32) -> Self {
        Self::from_unix(self.0 + u64::from(days) * DAY)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.0 / DAY);
        let second = self.0 % DAY;
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
        )
    }
}

impl From<Timestamp> for String {
    fn from(time: Timestamp) -> Self {
        time.to_string()
    }
}

/// A text is no time of this form.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no time such as 2026-12-01T17:30:00Z")]
pub struct TimestampError(String);

impl TryFrom<String> for Timestamp {
    type Error = TimestampError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let time = parse(text).filter(|time| time.to_string() == text);
        time.ok_or_else(|| TimestampError(text.chars().take(40).collect()))
    }
}

/// Reads digits at their fixed places; that the rest fits, and that there is such a day, shows when it is written again.
fn parse(text: &str) -> Option<Timestamp> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if year < 1970 || !(1..=12).contains(&month) || day == 0 || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = days_from_civil(year, month, day) * DAY + hour * 3_600 + minute * 60 + second;
    Some(Timestamp::from_unix(seconds))
}

/// Days since 1970 of a date from then on, after Hinnant, "chrono-Compatible Low-Level Date Algorithms": years start in
/// March, so that the leap day is the last one.
fn days_from_civil(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The inverse of [`days_from_civil`].
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times() {
        // date -u -d @N +%Y-%m-%dT%H:%M:%SZ
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (1_772_323_200, "2026-03-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (LAST, "9999-12-31T23:59:59Z"),
        ];
        for (seconds, text) in cases {
            assert_eq!(Timestamp::from_unix(seconds).to_string(), text);
            assert_eq!(text.parse::<Timestamp>().expect("a time").unix(), seconds);
        }
    }

    #[test]
    fn each_day_of_four_centuries_is_the_same_there_and_back() {
        for day in 0..146_097 {
            let time = Timestamp::from_unix(day * DAY);
            assert_eq!(time.to_string().parse::<Timestamp>().expect("a time"), time);
        }
    }

    #[test]
    fn what_is_no_time_of_this_form_is_refused() {
        for text in [
            "",
            "2026-12-01",
            "2026-02-30T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-12-01T24:00:00Z",
            "2026-12-01T17:30:00+01:00",
            "2026-12-01 17:30:00Z",
            "1969-12-31T23:59:59Z",
            "+026-12-01T17:30:00Z",
            "2026-12-01T17:30:00Zx",
        ] {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }
}
