//! Days.

/// The UTC day of a moment in seconds since 1970, as `2026-11-21`.
pub fn date(unix_s: u64) -> String {
    // Howard Hinnant's civil_from_days: years begin in March, so that the leap day comes last, and
    // days are counted from the year 0 in eras of 400 years.
    let days = unix_s / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn days() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(951_782_400), "2000-02-29");
        assert_eq!(date(1_795_275_000), "2026-11-21");
        assert_eq!(date(4_107_542_400), "2100-03-01");
    }
}
