//! The tools `get_time` and `get_date`: the current time and date in any time zone.

use helve_core::{ToolError, tool};
use jiff::Zoned;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Serialize;

/// A time of day.
#[derive(Serialize, JsonSchema)]
struct Clock {
    /// Hours, minutes and seconds.
    time: String,
    /// The time zone.
    timezone: String,
    /// Offset from UTC.
    utc_offset: String,
    /// The same time as an RFC 3339 timestamp.
    timestamp: String,
}

/// A calendar day.
#[derive(Serialize, JsonSchema)]
struct Day {
    /// Year, month and day.
    date: String,
    /// The day of the week.
    weekday: String,
    /// ISO 8601 week number.
    week: u8,
    /// The time zone.
    timezone: String,
}

/// Returns the current time.
#[tool(crate = helve_core, idempotent, output)]
async fn get_time(
    /// IANA time zone such as `Asia/Shanghai`; the time zone of this machine if omitted.
    timezone: Option<String>,
) -> Result<Clock, ToolError> {
    now(timezone).map(|now| clock(&now))
}

/// Returns the current date.
#[tool(crate = helve_core, idempotent, output)]
async fn get_date(
    /// IANA time zone such as `Asia/Shanghai`; the time zone of this machine if omitted.
    timezone: Option<String>,
) -> Result<Day, ToolError> {
    now(timezone).map(|now| day(&now))
}

fn now(timezone: Option<String>) -> Result<Zoned, ToolError> {
    let Some(name) = timezone else { return Ok(Zoned::now()) };
    let zone = TimeZone::get(&name).map_err(|error| {
        let known = jiff::tz::db().available().map(|name| name.to_string()).collect::<Vec<_>>();
        let hint = helve_core::suggest::did_you_mean(&name, known.iter().map(String::as_str));
        ToolError::invalid_parameters(format!("unknown time zone `{name}`{hint}")).caused_by(error)
    })?;
    Ok(Zoned::now().with_time_zone(zone))
}

fn clock(now: &Zoned) -> Clock {
    Clock {
        time: now.strftime("%H:%M:%S").to_string(),
        timezone: zone_name(now),
        utc_offset: now.strftime("%:z").to_string(),
        timestamp: now.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
    }
}

fn day(now: &Zoned) -> Day {
    Day {
        date: now.strftime("%Y-%m-%d").to_string(),
        weekday: now.strftime("%A").to_string(),
        week: now.date().iso_week_date().week().unsigned_abs(),
        timezone: zone_name(now),
    }
}

fn zone_name(now: &Zoned) -> String {
    now.time_zone().iana_name().map_or_else(|| now.strftime("%:z").to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_reads_as_clock_and_calendar_show_it() {
        let moment: Zoned = "2026-01-01T00:30:00+08:00[Asia/Shanghai]".parse().expect("a moment");
        let clock = clock(&moment);
        assert_eq!((clock.time.as_str(), clock.utc_offset.as_str()), ("00:30:00", "+08:00"));
        assert_eq!((clock.timezone.as_str(), clock.timestamp.as_str()), ("Asia/Shanghai", "2026-01-01T00:30:00+08:00"));
        let day = day(&moment);
        assert_eq!((day.date.as_str(), day.weekday.as_str(), day.week), ("2026-01-01", "Thursday", 1));
    }

    #[tokio::test]
    async fn a_zone_that_does_not_exist_is_a_wrong_argument() {
        let error = get_time(Some("Europe/Berln".into())).await.map(|_| ()).expect_err("no such zone");
        assert_eq!(error.message(), "unknown time zone `Europe/Berln`; did you mean `Europe/Berlin`?");
        assert!(get_date(Some("Europe/Berlin".into())).await.is_ok());
        assert!(get_time(None).await.is_ok());
    }
}
