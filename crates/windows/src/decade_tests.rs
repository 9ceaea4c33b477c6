//! Compares the edges of windows with a slow oracle, through ten years in twenty zones.
//!
//! The oracle asks the zone for the wall clock of each minute, and reads the fields of cron as sets
//! of texts. It shares the database of zones with the code, and nothing else.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::compiled::{CompiledWindow, find_zone};
use super::schedule::MAX_JOINED;
use moorline_api::{ChangeWindowSpec, WindowEffect};

/// Zones with all kinds of clock changes: none, half an hour, at midnight, in the south, at sea.
const ZONES: [&str; 20] = [
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Dublin",
    "Africa/Casablanca",
    "Africa/Cairo",
    "Asia/Seoul",
    "Asia/Kathmandu",
    "Asia/Tehran",
    "Asia/Beirut",
    "Asia/Gaza",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Pacific/Auckland",
    "Pacific/Chatham",
    "Pacific/Kiritimati",
    "America/New_York",
    "America/St_Johns",
    "America/Santiago",
    "America/Havana",
];

/// Schedules and their lengths in minutes.
const SCHEDULES: [(&str, i64); 10] = [
    ("30 2 * * *", 60),
    ("0 22 * * MON-FRI", 120),
    ("0 0 * * *", 1),
    ("0 0 29 FEB *", 180),
    ("0 2 13 * FRI", 45),
    ("*/20 1-3 * * *", 7),
    ("15 */6 * * *", 90),
    ("0 3 * 3,10 SUN", 30),
    ("59 23 31 12 *", 2),
    ("0 * * * *", 60),
];

const FROM: i64 = 1_767_225_600; // 2026-01-01
const MINUTE: i64 = 60;
const YEARS: i64 = 10;
const YEAR: i64 = 365 * 24 * 3600;

/// The texts that one field stands for.
fn texts(field: &str, from: i64, to: i64, names: &[(&str, i64)]) -> BTreeSet<String> {
    let value = |text: &str| {
        let named = names.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
        named.unwrap_or_else(|| text.parse().unwrap())
    };
    let mut all = BTreeSet::new();
    for item in field.split(',') {
        let (range, step) = item.split_once('/').unwrap_or((item, "1"));
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (value(first), value(last)),
            None if range == "*" => (from, to),
            None => (value(range), value(range)),
        };
        let mut number = first;
        while number <= last {
            all.insert(number.to_string());
            number += step.parse::<i64>().unwrap();
        }
    }
    all
}

/// The oracle: a schedule in a zone.
struct Oracle {
    fields: [BTreeSet<String>; 5],
    either_day: bool,
    zone: TimeZone,
    length: i64,
}

impl Oracle {
    fn new(schedule: &str, length: i64, zone: TimeZone) -> Self {
        let parts: Vec<&str> = schedule.split(' ').collect();
        let fields = [
            texts(parts[0], 0, 59, &[]),
            texts(parts[1], 0, 23, &[]),
            texts(parts[2], 1, 31, &[]),
            texts(parts[3], 1, 12, &[("FEB", 2)]),
            texts(parts[4], 0, 6, &[("SUN", 0), ("MON", 1), ("FRI", 5)]),
        ];
        Self { fields, either_day: parts[2] != "*" && parts[4] != "*", zone, length }
    }

    /// Minutes since 1970 that the wall clock shows.
    fn clock(&self, at: i64) -> i64 {
        let time = Timestamp::from_second(at).unwrap();
        (at + i64::from(self.zone.to_offset(time).seconds())).div_euclid(MINUTE)
    }

    /// True if a wall clock that shows this minute starts a window. The date is counted by hand.
    fn matches(&self, minute: i64) -> bool {
        let (days, of_day) = (minute.div_euclid(1440), minute.rem_euclid(1440));
        let has = |field: usize, number: i64| self.fields[field].contains(&number.to_string());
        if !has(0, of_day % 60) || !has(1, of_day / 60) {
            return false;
        }
        let (mut year, mut left) = (1970, days);
        let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        while left >= 365 + i64::from(is_leap(year)) {
            left -= 365 + i64::from(is_leap(year));
            year += 1;
        }
        let lengths = [31, 28 + i64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let mut month = 1;
        for length in lengths {
            if left < length {
                break;
            }
            left -= length;
            month += 1;
        }
        let (day, weekday) = (has(2, left + 1), has(4, (days + 4) % 7));
        has(3, month) && if self.either_day { day || weekday } else { day && weekday }
    }

    /// True if a window starts in this minute: the clock came to a time that matches, or past it.
    fn starts(&self, at: i64) -> bool {
        let (before, now) = (self.clock(at - MINUTE), self.clock(at));
        let first = if now > before { before + 1 } else { now };
        (first..=now).any(|minute| self.matches(minute))
    }

    fn is_active(&self, at: i64) -> bool {
        let minute = at - at.rem_euclid(MINUTE);
        (0..self.length).any(|back| self.starts(minute - back * MINUTE))
    }
}

#[test]
fn a_decade_in_twenty_zones_is_as_the_oracle_says() {
    let mut chance: u64 = 29;
    let mut random = |below: i64| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((chance >> 33) % u64::try_from(below).unwrap()).unwrap()
    };
    let (mut edges, mut active) = (0, 0);
    for (number, name) in ZONES.iter().enumerate() {
        let zone = find_zone(name).unwrap();
        let start = Timestamp::from_second(FROM).unwrap();
        let end = FROM + YEARS * YEAR;
        let changes = zone.following(start).map(|it| it.timestamp().as_second());
        let changes: Vec<i64> = changes.take_while(|at| *at < end).collect();
        for (schedule, length) in SCHEDULES {
            let spec = ChangeWindowSpec {
                effect: WindowEffect::Deny,
                schedule: Some(schedule.to_owned()),
                duration: Some(format!("{length}m")),
                time_zone: Some((*name).to_owned()),
                namespace_selector: None,
                sync_selector: None,
                reason: None,
            };
            let window = CompiledWindow::compile(None, "w", spec);
            let oracle = Oracle::new(schedule, length, zone.clone());
            let check = |at: i64| {
                let is_active = window.activity(at, &mut MAX_JOINED.clone()).is_active;
                assert_eq!(
                    is_active,
                    oracle.is_active(at),
                    "{name} {schedule} {}",
                    Timestamp::from_second(at).unwrap()
                );
                is_active
            };
            // Around one change of the clock for each schedule, and at random.
            let picked = changes.get(random(20) as usize % changes.len().max(1));
            if let Some(change) = picked {
                (-4..=4).for_each(|part: i64| {
                    active += usize::from(check(change + part * 1_260 + 59 * (part % 2)))
                });
            }
            active += (0..4).filter(|_| check(FROM + random(YEARS * YEAR))).count();
            // From a random time through some edges: the state changes there and nowhere before.
            let mut at = FROM + random(YEARS * YEAR);
            for _ in 0..3 {
                let now = window.activity(at, &mut MAX_JOINED.clone());
                let Some(next) = now.until else { break };
                assert!(next > at && next % MINUTE == 0);
                let is_joined = schedule == "0 * * * *";
                if !is_joined {
                    assert_ne!(
                        window.activity(next, &mut MAX_JOINED.clone()).is_active,
                        now.is_active,
                        "{name} {schedule}"
                    );
                }
                assert_eq!(check(next - 1), now.is_active);
                check(next);
                let between = at + random(next - at);
                assert_eq!(check(between), now.is_active, "{name} {schedule}");
                at = next;
                edges += 1;
            }
        }
        // Each night of ten years has its window: the edges of one zone are counted.
        if number % 10 == 1 {
            assert_eq!(count_starts(&zone, name), (YEARS * 365 + 2) as usize, "{name}");
        }
    }
    assert!(edges > 500 && active > 20, "{edges} {active}");
}

/// Counts the windows `0 12 * * *` of ten years and two leap days.
fn count_starts(zone: &TimeZone, name: &str) -> usize {
    let spec = ChangeWindowSpec {
        effect: WindowEffect::Allow,
        schedule: Some("0 12 * * *".to_owned()),
        duration: Some("1h".to_owned()),
        time_zone: Some(name.to_owned()),
        namespace_selector: None,
        sync_selector: None,
        reason: None,
    };
    let window = CompiledWindow::compile(None, "w", spec);
    let first = zone.to_timestamp("2026-01-01T00:00".parse().unwrap()).unwrap().as_second();
    let end = zone.to_timestamp("2036-01-01T00:00".parse().unwrap()).unwrap().as_second();
    let (mut at, mut count) = (first, 0);
    while let Some(next) = window.activity(at, &mut MAX_JOINED.clone()).until.filter(|next| *next < end) {
        count += usize::from(window.activity(next, &mut MAX_JOINED.clone()).is_active);
        at = next;
    }
    count
}
