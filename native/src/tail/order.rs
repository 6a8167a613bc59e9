//! Which rows of a tail count, and what a tail's order forbids to conclude from
//! them. Rows that are found elsewhere need not be those of the entry: an earlier
//! entry may hold another state of the same key and wait in a generation that no
//! manifest names yet. What is found then stands for an even older state, and the
//! entry is still needed, to come after the one that waits.

use std::collections::hash_map::Entry as Slot;
use std::collections::{HashMap, HashSet};

use super::content::Content;
use super::entry::Entry;

/// Rows that count, by position: the newest of their key.
pub type Own = HashMap<u64, Vec<(u128, Content)>>;

#[derive(Debug, Default)]
pub struct Order {
    pub own: Own,
    /// Entries before which another state of one of their keys is not accounted for.
    returning: HashSet<u64>,
    /// By position: the last entry that has another state of one of its keys.
    until: HashMap<u64, u64>,
    /// The first entry that could not be read: it may have any key.
    unread: Option<u64>,
}

/// What is known of a key, looking backwards.
struct Newest {
    position: u64,
    content: Content,
    /// The last entry before that has another state.
    other: Option<u64>,
}

impl Order {
    /// Takes the rows out of the entries. `told`: it is known otherwise what became
    /// of an entry, so none of its rows wait.
    pub fn of(entries: &mut [Entry], keyed: bool, told: impl Fn(&Entry) -> bool) -> Self {
        let unread = entries.iter().find(|one| one.rows.is_none() && !told(one));
        let mut order = Self {
            unread: unread.map(|one| one.position),
            ..Self::default()
        };
        let mut keys = HashMap::new();
        for entry in entries.iter_mut().rev() {
            let told = told(entry);
            let Some(rows) = entry.rows.as_mut() else {
                continue;
            };
            let rows = std::mem::take(rows);
            let own = match keyed {
                true => order.newest(entry.position, rows, told, &mut keys),
                false => rows,
            };
            order.own.insert(entry.position, own);
        }
        order
    }

    fn newest(
        &mut self,
        position: u64,
        rows: Vec<(u128, Content)>,
        told: bool,
        keys: &mut HashMap<u128, Newest>,
    ) -> Vec<(u128, Content)> {
        let (mut own, mut inside) = (Vec::new(), HashSet::new());
        for (key, content) in rows.into_iter().rev() {
            if !inside.insert(key) {
                continue;
            }
            let newest = match keys.entry(key) {
                Slot::Vacant(unseen) => {
                    own.push((key, content));
                    unseen.insert(Newest {
                        position,
                        content,
                        other: None,
                    });
                    continue;
                }
                Slot::Occupied(seen) => seen.into_mut(),
            };
            let same = newest.content.same_as(content);
            let last = match same {
                true => newest.other,
                false => Some(newest.position),
            };
            if let (Some(last), false) = (last, told) {
                let until = self.until.entry(position).or_default();
                *until = last.max(*until);
            }
            if !same {
                newest.other.get_or_insert(position);
                if !told {
                    self.returning.insert(newest.position);
                }
            }
        }
        own
    }

    /// Whether rows of this entry that are found elsewhere are its own: nothing
    /// before it may have to come first.
    pub fn is_plain(&self, position: u64) -> bool {
        !self.returning.contains(&position) && self.unread.is_none_or(|unread| position < unread)
    }

    /// The entry is not to be stepped over without all up to this one. 0: alone.
    pub fn until(&self, position: u64) -> u64 {
        self.until.get(&position).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries from position 1 with keys and values; 0 deletes.
    fn tail(entries: &[&[(u128, u128)]]) -> Vec<Entry> {
        let content = |value| match value {
            0 => Content::Deleted,
            value => Content::Row(value),
        };
        let row = |&(key, value): &(u128, u128)| (key, content(value));
        let entry = |(index, rows): (usize, &&[(u128, u128)])| Entry {
            position: 1 + index as u64,
            count: rows.len() as i64,
            rows: Some(rows.iter().map(row).collect()),
            ..Entry::default()
        };
        entries.iter().enumerate().map(entry).collect()
    }

    fn plain(order: &Order, positions: std::ops::RangeInclusive<u64>) -> Vec<u64> {
        positions.filter(|one| order.is_plain(*one)).collect()
    }

    #[test]
    fn only_the_newest_row_of_a_key_counts() {
        let mut entries = tail(&[&[(1, 5), (1, 6)], &[(1, 7), (2, 7)], &[(2, 8)]]);
        let order = Order::of(&mut entries, true, |_| false);
        assert_eq!(order.own[&1], []);
        assert_eq!(order.own[&2], [(1, Content::Row(7))]);
        assert_eq!(order.own[&3], [(2, Content::Row(8))]);
    }

    #[test]
    fn a_key_that_had_another_state_before_ties_its_entries_together() {
        let mut entries = tail(&[&[(1, 5)], &[(1, 0)], &[(1, 5)], &[(2, 5)]]);
        let order = Order::of(&mut entries, true, |_| false);
        assert_eq!(plain(&order, 1..=4), [1, 2, 4]);
        assert_eq!([1, 2, 3, 4].map(|one| order.until(one)), [2, 3, 0, 0]);
    }

    #[test]
    fn equal_states_do_not() {
        let mut entries = tail(&[&[(1, 5), (2, 1)], &[(1, 5)], &[(1, 5), (2, 1)]]);
        let order = Order::of(&mut entries, true, |_| false);
        assert_eq!(plain(&order, 1..=3), [1, 2, 3]);
        assert_eq!([1, 2, 3].map(|one| order.until(one)), [0, 0, 0]);
    }

    #[test]
    fn an_entry_of_which_it_is_known_waits_nowhere() {
        let mut entries = tail(&[&[(1, 5)], &[(1, 0)]]);
        let order = Order::of(&mut entries, true, |one| one.position == 1);
        assert_eq!(plain(&order, 1..=2), [1, 2]);
        assert_eq!(order.until(1), 0);
    }

    #[test]
    fn behind_an_entry_that_could_not_be_read_nothing_is_plain() {
        let mut entries = tail(&[&[(1, 5)], &[], &[(2, 5)]]);
        entries[1].rows = None;
        let order = Order::of(&mut entries, true, |_| false);
        assert_eq!(plain(&order, 1..=3), [1]);
    }
}
