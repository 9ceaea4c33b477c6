//! Line diff with bounded time and memory.
//!
//! In: two lists of lines.
//! Out: runs of [`Edit`]s that turn the first into the second. Myers' algorithm finds the shortest
//! script within a budget of steps. Texts that exceed it are split at lines that occur once in
//! both; a part that exceeds it again is replaced as a whole. Every script is correct; only its
//! length suffers.

use std::collections::HashMap;

/// Maximum number of differing lines in one search: its memory grows with the square.
const MAX_DISTANCE: usize = 1000;

/// Steps of one search: a constant, and a number for each line.
const BUDGET: (usize, usize) = (1 << 20, 16);

/// Change of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    /// Both lists have it.
    Keep,
    /// Only the old list has it.
    Remove,
    /// Only the new list has it.
    Add,
}

/// Runs of edits, each with its number of lines. Neighbours differ, and removals precede additions.
pub type Script = Vec<(Edit, usize)>;

/// Returns the edits that turn `old` into `new`.
pub fn edits(old: &[&str], new: &[&str]) -> Script {
    let (old, new) = numbered(old, new);
    let mut writer = ScriptWriter::default();
    let mut steps = budget(&old, &new);
    if !part(&old, &new, &mut steps, &mut writer) {
        let mut steps = budget(&old, &new);
        for ((old, new), anchors) in between(&old, &new) {
            if !part(old, new, &mut steps, &mut writer) {
                writer.replace(old.len(), new.len());
            }
            writer.push(Edit::Keep, anchors);
        }
    }
    writer.finish()
}

fn budget(old: &[u32], new: &[u32]) -> usize {
    BUDGET.0 + BUDGET.1 * (old.len() + new.len())
}

/// Numbers the lines so that equal lines compare in one step.
fn numbered<'a>(old: &[&'a str], new: &[&'a str]) -> (Vec<u32>, Vec<u32>) {
    let mut known: HashMap<&'a str, u32> = HashMap::with_capacity(old.len() + new.len());
    let mut number = |line: &&'a str| {
        let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
        *known.entry(line).or_insert(next)
    };
    (old.iter().map(&mut number).collect(), new.iter().map(&mut number).collect())
}

/// Writes the script of a part without its equal ends; false, with nothing written, if the budget
/// is exhausted.
fn part(old: &[u32], new: &[u32], steps: &mut usize, writer: &mut ScriptWriter) -> bool {
    let start = old.iter().zip(new).take_while(|(one, other)| one == other).count();
    let (old, new) = (&old[start..], &new[start..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(one, other)| one == other).count();
    let (old, new) = (&old[..old.len() - end], &new[..new.len() - end]);
    let Some(middle) = myers(old, new, steps) else { return false };
    writer.push(Edit::Keep, start);
    middle.into_iter().rev().for_each(|(edit, count)| writer.push(edit, count));
    writer.push(Edit::Keep, end);
    true
}

/// Returns the shortest script, from its end to its start; none if the budget is exhausted.
fn myers(old: &[u32], new: &[u32], steps: &mut usize) -> Option<Script> {
    if old.is_empty() || new.is_empty() {
        return Some(vec![(Edit::Remove, old.len()), (Edit::Add, new.len())]);
    }
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    for distance in 0..=MAX_DISTANCE.min(old.len() + new.len()) {
        let mut round = Vec::with_capacity(distance + 1);
        // Diagonals differ by two; the one at `at` is `2 * at - distance`.
        for at in 0..=distance {
            let mut x = match rounds.last() {
                Some(before) => from(before, at, distance).0,
                None => 0,
            };
            let y = |x: usize| (x + distance).checked_sub(2 * at);
            let mut taken = 1;
            while let Some(y) = y(x)
                && let (Some(one), Some(other)) = (old.get(x), new.get(y))
                && one == other
            {
                (x, taken) = (x + 1, taken + 1);
            }
            *steps = steps.checked_sub(taken)?;
            round.push(x);
            if x >= old.len() && y(x).is_some_and(|y| y >= new.len()) {
                rounds.push(round);
                return Some(traced(&rounds, old.len(), new.len()));
            }
        }
        rounds.push(round);
    }
    None
}

/// Returns the start of a diagonal after one edit, and that edit.
fn from(before: &[usize], at: usize, distance: usize) -> (usize, Edit) {
    let removed = at.checked_sub(1).and_then(|at| before.get(at)).map(|x| x + 1);
    let added = before.get(at).copied().filter(|_| at < distance);
    match (removed, added) {
        (Some(removed), Some(added)) if removed > added => (removed, Edit::Remove),
        (_, Some(added)) => (added, Edit::Add),
        (Some(removed), None) => (removed, Edit::Remove),
        (None, None) => (0, Edit::Keep),
    }
}

/// Follows the rounds back to the start.
fn traced(rounds: &[Vec<usize>], old: usize, new: usize) -> Script {
    let (mut x, mut script) = (old, Vec::new());
    // The end is on the diagonal `old - new`.
    let mut at = (old + rounds.len() - 1).saturating_sub(new) / 2;
    for distance in (0..rounds.len()).rev() {
        let (start, edit) = match distance {
            0 => (0, Edit::Keep),
            _ => from(&rounds[distance - 1], at, distance),
        };
        script.push((Edit::Keep, x - start));
        match edit {
            Edit::Remove => {
                script.push((edit, 1));
                (x, at) = (start - 1, at - 1);
            }
            Edit::Add => {
                script.push((edit, 1));
                x = start;
            }
            Edit::Keep => {}
        }
    }
    script
}

/// Returns the parts between the lines that occur once in both lists, each with the number of
/// anchors after it (0 or 1).
#[expect(clippy::type_complexity, reason = "a pair of slices and a number, named where they are used")]
fn between<'a>(old: &'a [u32], new: &'a [u32]) -> Vec<((&'a [u32], &'a [u32]), usize)> {
    let (mut parts, mut x, mut y) = (Vec::new(), 0, 0);
    for (next_x, next_y) in anchors(old, new) {
        parts.push(((&old[x..next_x], &new[y..next_y]), 1));
        (x, y) = (next_x + 1, next_y + 1);
    }
    parts.push(((&old[x..], &new[y..]), 0));
    parts
}

/// Returns the longest increasing sequence of positions of lines that occur once in both lists.
fn anchors(old: &[u32], new: &[u32]) -> Vec<(usize, usize)> {
    let (in_old, in_new) = (once(old), once(new));
    let mut pairs: Vec<(usize, usize)> =
        in_old.iter().filter_map(|(line, x)| Some((*x, *in_new.get(line)?))).collect();
    pairs.sort_unstable();
    // `ends` holds the last pair of the best sequence of each length; `before` links a pair to its
    // predecessor.
    let (mut ends, mut before): (Vec<usize>, Vec<Option<usize>>) = (Vec::new(), Vec::new());
    for (index, (_, y)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < *y);
        before.push(length.checked_sub(1).map(|length| ends[length]));
        match ends.get_mut(length) {
            Some(end) => *end = index,
            None => ends.push(index),
        }
    }
    let mut row: Vec<(usize, usize)> = std::iter::successors(ends.last().copied(), |index| before[*index])
        .map(|index| pairs[index])
        .collect();
    row.reverse();
    row
}

/// Returns the lines that occur once, with their positions.
fn once(lines: &[u32]) -> HashMap<u32, usize> {
    let mut places: HashMap<u32, Option<usize>> = HashMap::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        places.entry(*line).and_modify(|place| *place = None).or_insert(Some(at));
    }
    places.into_iter().filter_map(|(line, place)| Some((line, place?))).collect()
}

/// Joins runs, and puts the removals of a change before its additions.
#[derive(Debug, Default)]
struct ScriptWriter {
    script: Script,
    removed: usize,
    added: usize,
}

impl ScriptWriter {
    fn push(&mut self, edit: Edit, count: usize) {
        match edit {
            _ if count == 0 => {}
            Edit::Remove => self.removed += count,
            Edit::Add => self.added += count,
            Edit::Keep => {
                self.flush();
                match self.script.last_mut() {
                    Some((Edit::Keep, before)) => *before += count,
                    _ => self.script.push((Edit::Keep, count)),
                }
            }
        }
    }

    fn replace(&mut self, removed: usize, added: usize) {
        self.push(Edit::Remove, removed);
        self.push(Edit::Add, added);
    }

    fn flush(&mut self) {
        for (edit, count) in [(Edit::Remove, &mut self.removed), (Edit::Add, &mut self.added)] {
            if *count > 0 {
                self.script.push((edit, std::mem::take(count)));
            }
        }
    }

    fn finish(mut self) -> Script {
        self.flush();
        self.script
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Applies the script to the old lines.
    fn applied<'a>(script: &Script, old: &[&'a str], new: &[&'a str]) -> Vec<&'a str> {
        let (mut x, mut out): (usize, Vec<&str>) = (0, Vec::new());
        for (edit, count) in script {
            match edit {
                Edit::Keep => out.extend(&old[x..x + count]),
                Edit::Add => out.extend(&new[out.len()..out.len() + count]),
                Edit::Remove => {}
            }
            x += if *edit == Edit::Add { 0 } else { *count };
        }
        assert_eq!(x, old.len(), "every old line is kept or removed: {script:?}");
        out
    }

    fn changed(script: &Script) -> usize {
        script.iter().filter(|(edit, _)| *edit != Edit::Keep).map(|(_, count)| count).sum()
    }

    /// Length of the shortest script, from the table of the longest common subsequence.
    fn shortest(old: &[&str], new: &[&str]) -> usize {
        let mut row = vec![0_usize; new.len() + 1];
        for one in old {
            let mut diagonal = 0;
            for (at, other) in new.iter().enumerate() {
                let above = row[at + 1];
                row[at + 1] = if one == other { diagonal + 1 } else { above.max(row[at]) };
                diagonal = above;
            }
        }
        old.len() + new.len() - 2 * row[new.len()]
    }

    #[test]
    fn one_changed_line_is_one_removal_and_one_addition() {
        let check =
            |old: &[&str], new: &[&str], expect: &[(Edit, usize)]| assert_eq!(edits(old, new), expect);
        check(&[], &[], &[]);
        check(&["a"], &["a"], &[(Edit::Keep, 1)]);
        check(
            &["a", "b", "c"],
            &["a", "x", "c"],
            &[(Edit::Keep, 1), (Edit::Remove, 1), (Edit::Add, 1), (Edit::Keep, 1)],
        );
        check(&[], &["a", "b"], &[(Edit::Add, 2)]);
        check(&["a", "b"], &[], &[(Edit::Remove, 2)]);
        check(&["a", "b"], &["b", "a"], &[(Edit::Remove, 1), (Edit::Keep, 1), (Edit::Add, 1)]);
    }

    #[test]
    fn hostile_texts_cost_no_more_than_their_length_allows() {
        // Two symbols in two orders: nearly every diagonal has matches, and no line is unique.
        let pseudo = |seed: u32, count: usize| -> Vec<String> {
            let mut state = seed;
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                ((state >> 16) % 2).to_string()
            };
            (0..count).map(|_| next()).collect()
        };
        let (old, new) = (pseudo(1, 250_000), pseudo(2, 250_000));
        let old: Vec<&str> = old.iter().map(String::as_str).collect();
        let new: Vec<&str> = new.iter().map(String::as_str).collect();
        let mut steps = budget(&numbered(&old, &new).0, &numbered(&old, &new).1);
        let (one, other) = numbered(&old, &new);
        assert!(myers(&one, &other, &mut steps).is_none(), "the budget ends the search");
        assert_eq!(applied(&edits(&old, &new), &old, &new), new);
    }

    #[test]
    fn unique_lines_split_what_is_too_long_for_one_search() {
        let old: Vec<String> = (0..6000).map(|at| format!("line {at}")).collect();
        let mut new = old.clone();
        // Every other line changes, which exceeds one search.
        new.iter_mut().step_by(2).for_each(|line| line.push('!'));
        let old: Vec<&str> = old.iter().map(String::as_str).collect();
        let new: Vec<&str> = new.iter().map(String::as_str).collect();
        let script = edits(&old, &new);
        assert_eq!(applied(&script, &old, &new), new);
        assert_eq!(changed(&script), 6000);
    }

    proptest! {
        #[test]
        fn the_script_makes_the_new_lines_and_is_the_shortest(
            old in proptest::collection::vec(0..5_u8, 0..40), new in proptest::collection::vec(0..5_u8, 0..40),
        ) {
            const LINES: [&str; 5] = ["a", "b", "c", "", "d"];
            let old: Vec<&str> = old.iter().map(|at| LINES[usize::from(*at)]).collect();
            let new: Vec<&str> = new.iter().map(|at| LINES[usize::from(*at)]).collect();
            let script = edits(&old, &new);
            prop_assert_eq!(applied(&script, &old, &new), new.clone());
            prop_assert_eq!(changed(&script), shortest(&old, &new));
        }

        #[test]
        fn a_script_that_is_split_at_anchors_makes_the_new_lines(
            old in proptest::collection::vec(0..30_u32, 0..60), new in proptest::collection::vec(0..30_u32, 0..60),
        ) {
            let mut writer = ScriptWriter::default();
            for ((old, new), anchors) in between(&old, &new) {
                writer.replace(old.len(), new.len());
                writer.push(Edit::Keep, anchors);
            }
            let script = writer.finish();
            let text = |lines: &[u32]| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
            let (old, new) = (text(&old), text(&new));
            let old: Vec<&str> = old.iter().map(String::as_str).collect();
            let new: Vec<&str> = new.iter().map(String::as_str).collect();
            prop_assert_eq!(applied(&script, &old, &new), new.clone());
        }
    }
}
