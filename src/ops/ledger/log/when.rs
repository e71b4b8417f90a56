use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// Parses a point in time: a day in the person's zone, `today`, `yesterday`, an RFC 3339 time stamp, or a duration back
/// from now: `90s`, `45m`, `2h`, `3d`, `1w`.
pub(crate) fn since(text: &str, now: impl Fn() -> Timestamp, zone: &TimeZone) -> Result<Timestamp, String> {
    let text = text.trim();
    if let Some(ago) = ago(text) {
        return Ok(now().checked_sub(ago).unwrap_or(Timestamp::MIN));
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    let today = || now().to_zoned(zone.clone()).date();
    let day = match text {
        "today" => Some(today()),
        "yesterday" => today().yesterday().ok(),
        day => day.parse::<Date>().ok(),
    };
    let day = day.and_then(|day| day.to_zoned(zone.clone()).ok());
    day.map(|day| day.timestamp()).ok_or_else(|| format!("`{text}` is not a time"))
}

fn ago(text: &str) -> Option<SignedDuration> {
    let number = text.get(..text.len().checked_sub(1)?)?;
    let seconds = match text.chars().last()? {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return None,
    };
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
    Some(SignedDuration::from_secs(number.parse::<i64>().ok()?.saturating_mul(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let now: Timestamp = "2026-01-05T09:00:00Z".parse().expect("a time stamp");
        let read = |text: &str| since(text, || now, &TimeZone::UTC).map(|at| at.to_string());
        for (text, at) in [
            ("2h", "2026-01-05T07:00:00Z"),
            (" 3d ", "2026-01-02T09:00:00Z"),
            ("1w", "2025-12-29T09:00:00Z"),
            ("0s", "2026-01-05T09:00:00Z"),
            ("2026-01-04", "2026-01-04T00:00:00Z"),
            ("today", "2026-01-05T00:00:00Z"),
            ("yesterday", "2026-01-04T00:00:00Z"),
            ("2026-01-04T10:00:00+02:00", "2026-01-04T08:00:00Z"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(at), "{text}");
        }
        // East of Greenwich the day began earlier.
        let tokyo = TimeZone::fixed(jiff::tz::offset(9));
        let yesterday = since("yesterday", || now, &tokyo).map(|at| at.to_string());
        assert_eq!(yesterday.as_deref(), Ok("2026-01-03T15:00:00Z"));
        assert_eq!(read(&format!("{}d", i64::MAX)), Ok(Timestamp::MIN.to_string()));
        for text in ["", "h", "2x", "-2h", "tomorrow", "2026-13-01", "2h3", "²h", "é"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
