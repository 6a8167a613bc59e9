//! What of a plan fits into one pass. Pure.

use lance::dataset::optimize::TaskData;
use lance_table::format::Fragment;

/// Limits of one pass. The first task moves however big its fragments are.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    fragments: usize,
    bytes: i64,
}

impl Budget {
    /// 0: no limit.
    pub fn new(fragments: usize, bytes: i64) -> Self {
        Self {
            fragments: if fragments == 0 {
                usize::MAX
            } else {
                fragments
            },
            bytes: if bytes <= 0 { i64::MAX } else { bytes },
        }
    }
}

/// What a fragment, or several, bring into a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Live rows.
    pub rows: i64,
    /// None: some file's size is not in the manifest.
    pub bytes: Option<i64>,
}

impl Source {
    pub fn none() -> Self {
        Self {
            rows: 0,
            bytes: Some(0),
        }
    }

    pub fn of(fragment: &Fragment) -> Self {
        let sizes = fragment.referenced_lance_files().map(|file| {
            let size = file.file_size_bytes.get()?;
            i64::try_from(size.get()).ok()
        });
        Self {
            rows: fragment.num_rows().unwrap_or(0) as i64,
            bytes: sizes.sum(),
        }
    }

    pub fn and(self, other: Self) -> Self {
        Self {
            rows: self.rows + other.rows,
            bytes: self
                .bytes
                .zip(other.bytes)
                .map(|(a, b)| a.saturating_add(b)),
        }
    }
}

/// The tasks of one pass, in order. A task that is too big for a whole pass is cut
/// down to some of its fragments.
pub fn within(tasks: Vec<TaskData>, budget: Budget) -> Vec<TaskData> {
    let (mut chosen, mut left) = (Vec::new(), budget);
    for task in tasks {
        let sources: Vec<Source> = task.fragments.iter().map(Source::of).collect();
        if fits(&sources, left) {
            left = less(left, &sources);
            chosen.push(task);
            continue;
        }
        if chosen.is_empty() {
            let (start, end) = cut(&sources, budget);
            let fragments = task.fragments[start..end].to_vec();
            chosen.push(TaskData { fragments });
        }
        break;
    }
    chosen
}

fn bytes(sources: &[Source]) -> i64 {
    let sum = |sum: i64, source: &Source| sum.saturating_add(source.bytes.unwrap_or(0));
    sources.iter().fold(0, sum)
}

fn fits(sources: &[Source], left: Budget) -> bool {
    sources.len() <= left.fragments && bytes(sources) <= left.bytes
}

fn less(left: Budget, sources: &[Source]) -> Budget {
    Budget {
        fragments: left.fragments - sources.len(),
        bytes: left.bytes - bytes(sources),
    }
}

/// Which fragments of a task that is too big go first. Never fewer than two,
/// unless it has only one. What earlier passes made at its beginning is stepped
/// over while it has more rows than all that would be added to it, so that many
/// small fragments are not paid for by rewriting the same big one each time.
fn cut(sources: &[Source], budget: Budget) -> (usize, usize) {
    let window = |start: usize| {
        let mut end = (start + 2).min(sources.len());
        while end < sources.len() && fits(&sources[start..=end], budget) {
            end += 1;
        }
        end
    };
    for start in 0..sources.len().saturating_sub(1) {
        let end = window(start);
        let added: i64 = sources[start + 1..end].iter().map(|one| one.rows).sum();
        if sources[start].rows <= added {
            return (start, end);
        }
    }
    (0, window(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(rows: &[i64]) -> Vec<Source> {
        let source = |rows: &i64| Source {
            rows: *rows,
            bytes: Some(*rows * 10),
        };
        rows.iter().map(source).collect()
    }

    fn task(id: u64, fragments: usize) -> TaskData {
        let fragment = |number| Fragment {
            physical_rows: Some(10),
            ..Fragment::new(id * 100 + number)
        };
        TaskData {
            fragments: (0..fragments as u64).map(fragment).collect(),
        }
    }

    fn sizes(tasks: &[TaskData]) -> Vec<usize> {
        tasks.iter().map(|task| task.fragments.len()).collect()
    }

    #[test]
    fn whole_tasks_are_taken_while_there_is_room() {
        let tasks = vec![task(1, 3), task(2, 4), task(3, 1)];
        let some = within(tasks.clone(), Budget::new(7, 0));
        assert_eq!(sizes(&some), [3, 4]);
        assert_eq!(sizes(&within(tasks.clone(), Budget::new(6, 0))), [3]);
        assert_eq!(sizes(&within(tasks, Budget::new(0, 0))), [3, 4, 1]);
        assert!(within(vec![], Budget::new(0, 0)).is_empty());
    }

    #[test]
    fn a_first_task_that_is_too_big_is_cut_and_still_moves() {
        let tasks = vec![task(1, 30), task(2, 2)];
        assert_eq!(sizes(&within(tasks.clone(), Budget::new(8, 0))), [8]);
        assert_eq!(sizes(&within(tasks, Budget::new(1, 0))), [2]);
        assert_eq!(sizes(&within(vec![task(1, 1)], Budget::new(0, 1))), [1]);
    }

    #[test]
    fn a_cut_keeps_to_the_bytes_but_takes_two_at_least() {
        let equal = sources(&[5; 10]);
        assert_eq!(cut(&equal, Budget::new(0, 150)), (0, 3));
        assert_eq!(cut(&equal, Budget::new(0, 1)), (0, 2));
    }

    #[test]
    fn what_earlier_passes_made_is_not_rewritten_with_every_few_small_ones() {
        let grown = sources(&[40, 5, 5, 5, 5, 5]);
        assert_eq!(cut(&grown, Budget::new(4, 0)), (1, 5));
        // Until as much comes together.
        let grown = sources(&[15, 5, 5, 5, 5, 5]);
        assert_eq!(cut(&grown, Budget::new(4, 0)), (0, 4));
        // Where every next one is smaller, the first two go.
        let falling = sources(&[40, 20, 5]);
        assert_eq!(cut(&falling, Budget::new(2, 0)), (0, 2));
    }

    #[test]
    fn the_smallest_sum_of_passes_ends_with_one_fragment() {
        let mut rows = vec![1_i64; 500];
        let mut moved = 0;
        while rows.len() > 1 {
            let (start, end) = cut(&sources(&rows), Budget::new(10, 0));
            let made: i64 = rows.drain(start..end).sum();
            moved += made;
            rows.insert(start, made);
        }
        assert_eq!(rows, [500]);
        // Rewriting the grown one each time would move over 13,000.
        assert!(moved < 3_000, "{moved}");
    }
}
