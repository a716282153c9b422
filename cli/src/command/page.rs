//! Pages of a listing: how many rows, and where the next page starts.

use crate::failure::Failure;
use crate::limits::PAGE;

/// Which rows to show.
#[derive(Debug, clap::Args)]
pub(crate) struct PageArgs {
    /// Rows of one page
    #[arg(long, value_name = "N", default_value_t = PAGE, value_parser = page_size)]
    pub(crate) limit: usize,

    /// Where to go on: `next_cursor` of the page before
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
}

fn page_size(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|size| (1..=10_000).contains(size)).ok_or_else(|| "from 1 to 10000".to_owned())
}

impl PageArgs {
    /// One page of `rows`, which stand in a stable order, and the cursor of the next page if there is one. `key` names
    /// a row; rows may come and go between two pages.
    ///
    /// # Errors
    /// A usage error for a cursor that is none.
    pub(crate) fn cut<T, K>(
        &self,
        rows: Vec<T>,
        key: impl Fn(&T) -> K,
    ) -> Result<(Vec<T>, Option<String>), Failure>
    where
        K: Ord + CursorKey,
    {
        let after = match &self.cursor {
            Some(text) => Some(K::parse(text).ok_or_else(|| {
                Failure::usage(
                    "the cursor is not one of this listing",
                    "Take it from `next_cursor`, or leave it out.",
                )
            })?),
            None => None,
        };
        let mut left: Vec<T> =
            rows.into_iter().filter(|row| after.as_ref().is_none_or(|after| key(row) > *after)).collect();
        let more = left.len() > self.limit;
        left.truncate(self.limit);
        let next = left.last().filter(|_| more).map(|last| key(last).print());
        Ok((left, next))
    }
}

/// The name of a row, in order of the listing.
pub(crate) trait CursorKey: Sized {
    /// As text.
    fn print(&self) -> String;
    /// From its text.
    fn parse(text: &str) -> Option<Self>;
}

impl<I: ToString + std::str::FromStr> CursorKey for (protocol::time::UnixMillis, I) {
    fn print(&self) -> String {
        format!("{}.{}", self.0.0, self.1.to_string())
    }

    fn parse(text: &str) -> Option<Self> {
        let (at, id) = text.split_once('.')?;
        Some((protocol::time::UnixMillis(at.parse().ok()?), id.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use protocol::ids::RunId;
    use protocol::time::UnixMillis;

    use super::*;

    #[test]
    fn pages_together_are_the_whole_listing() {
        let rows: Vec<_> = (0..7_u8).map(|n| (UnixMillis(u64::from(n) / 2), RunId([n; 16]))).collect();
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let (page, next) = PageArgs { limit: 3, cursor }.cut(rows.clone(), |row| *row).unwrap();
            seen.extend(page);
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, rows);
    }

    #[test]
    fn a_cursor_that_is_none_is_a_usage_error() {
        for text in ["", "x", "1", "1.run_x", ".run_"] {
            let args = PageArgs { limit: 3, cursor: Some(text.to_owned()) };
            assert!(args.cut(vec![(UnixMillis(1), RunId([0; 16]))], |row| *row).is_err(), "{text}");
        }
    }
}
